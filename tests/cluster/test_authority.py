"""The authority's steps, one sentence each."""

from __future__ import annotations

import dataclasses
import datetime as dt
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from cryptography.x509 import SubjectAlternativeName

from tests.cluster.trust_world import DAY, HOUR, LIFETIMES, MINUTE, NAMES, START, trusted
from webhook.certificates import Signed, certificates_in, new_authority, new_leaf, read_pair
from webhook.cluster import authority
from webhook.cluster.authority import Action, IssueLeaf, Make, Publish, Wait, WriteAuthority, issued, step, written
from webhook.cluster.trust import Data, Leaf, Lifetimes, Published, State, look

SETTLED = START + LIFETIMES.settle
NOTHING = State({"validating": Published(b"", START)}, {}, {"leaf": Leaf(NAMES, None)}, None)


def after(state: State, actions: Sequence[Action], now: dt.datetime) -> State:
    """The state once all actions are done and the pod serves what is in the Secret."""
    for action in actions:
        match action:
            case WriteAuthority():
                state = dataclasses.replace(state, authority=written(action, now, LIFETIMES))
            case IssueLeaf(secret, names):
                leaf = Leaf(names, issued(action, now, LIFETIMES))
                state = dataclasses.replace(state, leaves={**state.leaves, secret: leaf})
            case Publish(name, pem):
                state = dataclasses.replace(state, published={**state.published, name: Published(pem, now)})
    return state


def settle(state: State, now: dt.datetime) -> State:
    """Steps until it waits."""
    for _ in range(9):
        actions = step(state, now, LIFETIMES)
        if isinstance(actions[0], Wait):
            return state
        state = after(state, actions, now)
    raise AssertionError("it never waits")


def serving(state: State) -> State:
    data = state.leaves["leaf"].data
    assert data is not None
    return dataclasses.replace(state, serving={"pod": data["tls.crt"]})


@pytest.fixture(scope="module")
def standing() -> State:
    """Installed; one pod serves."""
    return serving(settle(NOTHING, START))


def with_authority(state: State, **changed: bytes | None) -> State:
    """With `ca_key=...` changed in the authority's Secret; None takes a key out."""
    data = {**(state.authority or {}), **{name.replace("_", "."): value for name, value in changed.items()}}
    return dataclasses.replace(state, authority={name: value for name, value in data.items() if value is not None})


def with_leaf(state: State, data: Data | None) -> State:
    return dataclasses.replace(state, leaves={"leaf": Leaf(NAMES, data)})


def leaf_data(state: State) -> dict[str, bytes]:
    data = state.leaves["leaf"].data
    assert data is not None
    return dict(data)


def only(actions: list[Action], kind: type[Action]) -> Action:
    [action] = actions
    assert isinstance(action, kind)
    return action


def signer(state: State) -> Signed:
    assert state.authority is not None
    return read_pair(state.authority["ca.crt"], state.authority["ca.key"])


def test_the_first_authority_signs_and_is_published_at_once() -> None:
    first = only(step(NOTHING, START, LIFETIMES), WriteAuthority)
    assert isinstance(first, WriteAuthority) and (first.current, first.next) == (Make.NEW, None)
    second = step(after(NOTHING, [first], START), START, LIFETIMES)
    assert [type(action) for action in second] == [Publish, IssueLeaf]


def test_the_leaf_is_for_every_name_of_the_service_in_its_first_moment(standing: State) -> None:
    leaf = leaf_data(standing)["tls.crt"]
    for at in (START - 5 * MINUTE, START, START + LIFETIMES.leaf):
        assert trusted(standing.published["validating"].pem, leaf, at)
    names = (
        "fieldwarden",
        "fieldwarden.policies",
        "fieldwarden.policies.svc",
        "fieldwarden.policies.svc.cluster.local",
    )
    assert names == NAMES
    held = certificates_in(leaf)[0].extensions.get_extension_for_class(SubjectAlternativeName).value
    assert {name.value for name in held} == set(NAMES)


def test_what_stands_waits_for_two_thirds_of_the_leaf(standing: State) -> None:
    until = only(step(standing, SETTLED + HOUR, LIFETIMES), Wait)
    assert isinstance(until, Wait)
    assert abs(until.until - (START + LIFETIMES.leaf * 2 / 3)) < 5 * MINUTE
    assert step(standing, until.until - MINUTE, LIFETIMES) == [until]
    renewed = only(step(standing, until.until, LIFETIMES), IssueLeaf)
    assert renewed.reason == "two thirds of its life are gone"


def test_who_is_trusted_already_signs_on_while_configurations_change(standing: State) -> None:
    """Each change of a policy changes the rules beside the bundle."""
    now = START + LIFETIMES.leaf * 2 / 3
    changed = {"validating": dataclasses.replace(standing.published["validating"], since=now)}
    only(step(dataclasses.replace(standing, published=changed), now, LIFETIMES), IssueLeaf)


def test_a_name_that_is_missing_is_signed_for(standing: State) -> None:
    more = dataclasses.replace(standing.leaves["leaf"], names=(*NAMES, "more.example.com"))
    changed = dataclasses.replace(standing, leaves={"leaf": more})
    found = only(step(changed, SETTLED, LIFETIMES), IssueLeaf)
    assert isinstance(found, IssueLeaf) and found.names == more.names


def test_the_life_of_an_authority_in_order(standing: State) -> None:
    """Introduced, trusted, signing; the one before is let go once no pod serves by it and none can start on it."""
    old = signer(standing)
    now = START + LIFETIMES.authority * 2 / 3
    standing = settle(serving(settle(standing, now - DAY)), now - DAY)  # a young leaf
    introduced = settle(standing, now)
    assert introduced.authority is not None and signer(introduced) == old
    new = read_pair(introduced.authority["next.crt"], introduced.authority["next.key"])
    bundle = certificates_in(introduced.published["validating"].pem)
    assert set(bundle) == {old.certificate, new.certificate}
    assert leaf_data(introduced) == leaf_data(standing)

    now += LIFETIMES.settle
    signing = settle(introduced, now)
    assert signer(signing) == new
    assert signing.published == introduced.published
    assert trusted(new.certificate_pem, leaf_data(signing)["tls.crt"], now)

    served = serving(signing)
    for state, at in ((served, now + LIFETIMES.margin - MINUTE), (signing, now + DAY)):
        assert settle(state, at).published == signing.published, "not yet, or the pod still shows the old leaf"
    last = settle(served, now + LIFETIMES.margin)
    assert certificates_in(last.published["validating"].pem) == (new.certificate,)
    assert last.authority is not None and set(last.authority) == {"ca.crt", "ca.key"}


def test_a_pod_that_cannot_be_asked_is_waited_for_until_the_last_leaf_has_ended(standing: State) -> None:
    now = START + LIFETIMES.authority * 2 / 3
    standing = serving(settle(standing, now - DAY))
    now += LIFETIMES.settle
    signing = settle(settle(standing, now - LIFETIMES.settle), now)
    unknown = dataclasses.replace(serving(signing), serving={**serving(signing).serving, "lost": None})
    end = now + LIFETIMES.leaf
    assert len(certificates_in(settle(unknown, end - MINUTE).published["validating"].pem)) == 2
    assert len(certificates_in(settle(unknown, end).published["validating"].pem)) == 1


def test_while_a_bundle_cannot_be_written_the_old_authority_signs_on(standing: State) -> None:
    now = START + LIFETIMES.authority * 2 / 3
    standing = serving(settle(standing, now - DAY))
    for later in range(0, 12, 2):
        at = now + later * DAY
        for _ in range(9):
            actions = [action for action in step(standing, at, LIFETIMES) if not isinstance(action, Publish)]
            if not actions or isinstance(actions[0], Wait):
                break
            standing = after(standing, actions, at)
        standing = serving(standing)
        assert trusted(standing.published["validating"].pem, leaf_data(standing)["tls.crt"], at)
    assert standing.authority is not None and "next.crt" in standing.authority


def test_a_bundle_counts_once_every_configuration_has_carried_it_for_a_while(standing: State) -> None:
    now = START + LIFETIMES.authority * 2 / 3
    both = {**standing.published, "mutating": standing.published["validating"]}
    introduced = settle(dataclasses.replace(serving(settle(standing, now - DAY)), published=both), now)
    held = introduced.published["validating"]
    for other in (Published(both["mutating"].pem, START), Published(held.pem, now + MINUTE)):
        late = dataclasses.replace(introduced, published={"validating": held, "mutating": other})
        assert not any(isinstance(action, WriteAuthority) for action in step(late, now + LIFETIMES.settle, LIFETIMES))


# Damage


def other(now: dt.datetime = START) -> Signed:
    return new_authority("another", now, LIFETIMES.authority)


LEAF = new_leaf(other(), NAMES, START, 2 * DAY)

DAMAGES: Mapping[str, tuple[dict[str, bytes | None], str]] = {
    "a key of another": ({"ca_key": other().key_pem}, "authority: ca.key is not the key of ca.crt"),
    "a certificate cut in half": ({"ca_crt": other().certificate_pem[:99]}, "authority: ca.crt or ca.key is no unenc"),
    "no key": ({"ca_key": None}, "authority: ca.key is missing"),
    "an empty certificate": ({"ca_crt": b""}, "authority: ca.crt is missing"),
    "a leaf": ({"ca_crt": LEAF.certificate_pem, "ca_key": LEAF.key_pem}, "authority: ca.crt is not an authority's"),
    "nothing": ({"ca_key": None, "ca_crt": None}, "authority: the Secret is empty"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_authority_is_told_and_replaced_while_the_old_one_is_trusted_on(standing: State, damage: str) -> None:
    changes, said = DAMAGES[damage]
    now = START + DAY
    broken = with_authority(standing, **changes)
    assert any(fault.startswith(said) for fault in authority.faults(broken, now))
    found = only(step(broken, now, LIFETIMES), WriteAuthority)
    assert isinstance(found, WriteAuthority) and (found.current, found.next) == (None, Make.NEW)
    assert said in found.reason
    overlapping = settle(broken, now)
    assert leaf_data(overlapping) == leaf_data(standing)
    assert trusted(overlapping.published["validating"].pem, leaf_data(standing)["tls.crt"], now)
    healed = settle(overlapping, now + LIFETIMES.settle)
    assert trusted(overlapping.published["validating"].pem, leaf_data(healed)["tls.crt"], now)
    assert authority.faults(healed, now) == ()
    alone = settle(serving(healed), now + LIFETIMES.settle + LIFETIMES.margin)
    assert certificates_in(alone.published["validating"].pem) == (signer(alone).certificate,)


def test_a_deleted_authority_is_made_again_with_overlap(standing: State) -> None:
    now = START + DAY
    overlapping = settle(dataclasses.replace(standing, authority=None), now)
    assert leaf_data(overlapping) == leaf_data(standing)
    assert set(certificates_in(standing.published["validating"].pem)) < set(
        certificates_in(overlapping.published["validating"].pem)
    )


@pytest.mark.parametrize("odd", [b"9999-12-31T23:59:59-14:00", b"2999-01-01T00:00:00+00:00"])
def test_a_time_that_nobody_can_have_written_keeps_no_authority_for_longer(standing: State, odd: bytes) -> None:
    now = START + LIFETIMES.authority - DAY
    state = settle(standing, now)
    while not (state.authority or {}).get("previous.crt"):
        now += LIFETIMES.settle
        state = settle(state, now)
    forged = with_authority(state, retired=odd)
    found = step(forged, now, LIFETIMES)
    assert isinstance(found[0], WriteAuthority)
    assert found[0].retired in (now, None)


def test_with_all_secrets_gone_pods_that_cannot_be_asked_are_trusted_on(standing: State) -> None:
    now = START + DAY
    lost = dataclasses.replace(with_leaf(standing, None), authority=None, serving={"pod": None})
    overlapping = settle(lost, now)
    assert trusted(overlapping.published["validating"].pem, leaf_data(standing)["tls.crt"], now)
    assert overlapping.leaves["leaf"].data is None, "kubelets leave pods the last leaf until there is another"
    signing = settle(overlapping, now + LIFETIMES.settle)
    assert trusted(overlapping.published["validating"].pem, leaf_data(signing)["tls.crt"], now)


def test_the_last_leaf_of_each_authority_is_waited_for(standing: State) -> None:
    """Where a pod could not be asked at one replacement, the next one starts the waiting anew."""
    now, held = START + DAY, []
    for _ in range(2):
        standing = dataclasses.replace(standing, serving={"lost": None})
        made = other(now)
        brought = with_authority(standing, ca_crt=made.certificate_pem, ca_key=made.key_pem)
        standing = settle(settle(brought, now), now + LIFETIMES.settle)
        held.append(signer(standing).certificate)
        now += LIFETIMES.leaf - DAY
    bundle = settle(standing, now - 5 * DAY).published["validating"].pem
    assert set(held) <= set(certificates_in(bundle))


def test_a_next_authority_that_grew_old_unused_is_not_taken(standing: State) -> None:
    old = new_authority("old", START - LIFETIMES.authority * 3 / 4, LIFETIMES.authority)
    aged = with_authority(standing, next_crt=old.certificate_pem, next_key=old.key_pem)
    found = only(step(aged, SETTLED, LIFETIMES), WriteAuthority)
    assert isinstance(found, WriteAuthority) and (found.current, found.next) == (signer(standing), None)


@pytest.mark.parametrize(
    "data, said",
    [
        ({}, "the Secret is empty"),
        ({"tls.crt": b"", "tls.key": b""}, "tls.crt is missing"),
        ({"tls.crt": b"x"}, "tls.key is missing"),
        ({"tls.crt": b"x", "tls.key": b"y"}, "tls.crt or tls.key is no unencrypted PEM"),
    ],
)
def test_a_damaged_leaf_is_told_and_signed_again(standing: State, data: Data, said: str) -> None:
    broken = with_leaf(standing, data)
    assert authority.faults(broken, SETTLED) == (f"leaf: {said}",)
    found = only(step(broken, SETTLED, LIFETIMES), IssueLeaf)
    assert found.reason == f"leaf: {said}"
    healed = after(broken, [found], SETTLED)
    assert trusted(standing.published["validating"].pem, leaf_data(healed)["tls.crt"], SETTLED)


def test_a_deleted_leaf_is_signed_again(standing: State) -> None:
    assert only(step(with_leaf(standing, None), SETTLED, LIFETIMES), IssueLeaf).reason == "there is no certificate"


def test_an_authority_of_ones_own_is_taken_with_overlap(standing: State) -> None:
    """Put into the Secret by hand: it signs once it is trusted."""
    own, now = other(), START + DAY
    brought = with_authority(standing, ca_crt=own.certificate_pem, ca_key=own.key_pem)
    overlapping = settle(brought, now)
    assert leaf_data(overlapping) == leaf_data(standing)
    assert trusted(overlapping.published["validating"].pem, leaf_data(standing)["tls.crt"], now)
    signing = settle(overlapping, now + LIFETIMES.settle)
    assert trusted(own.certificate_pem, leaf_data(signing)["tls.crt"], now)


@pytest.mark.parametrize("pem", [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_a_bundle_that_was_wiped_or_torn_is_published_again(standing: State, pem: bytes) -> None:
    wiped = dataclasses.replace(standing, published={"validating": Published(pem, SETTLED)})
    found = only(step(wiped, SETTLED, LIFETIMES), Publish)
    assert isinstance(found, Publish) and found.pem == standing.published["validating"].pem
    said = ("validating: the bundle holds what is no certificate",) if pem else ()
    assert authority.faults(wiped, SETTLED) == said


def test_a_stranger_in_the_bundle_is_not_trusted_on(standing: State) -> None:
    held = standing.published["validating"].pem
    for extra in (other().certificate_pem, b"rubbish -----BEGIN "):
        more = dataclasses.replace(standing, published={"validating": Published(held + extra, SETTLED)})
        found = only(step(more, SETTLED, LIFETIMES), Publish)
        assert isinstance(found, Publish) and found.pem == held


def test_after_years_without_a_controller_all_is_made_anew_at_once(standing: State) -> None:
    now = START + 2 * LIFETIMES.authority
    healed = settle(standing, now)
    assert certificates_in(healed.published["validating"].pem) == (signer(healed).certificate,)
    assert trusted(healed.published["validating"].pem, leaf_data(healed)["tls.crt"], now)


def test_of_secrets_that_others_keep_the_authority_is_followed(standing: State) -> None:
    """Until no pod serves by the one before, or might."""
    new, old = other(), signer(standing).certificate
    leaf = new_leaf(new, NAMES, START, LIFETIMES.leaf)
    given = {"ca.crt": new.certificate_pem, "tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
    renewed = dataclasses.replace(with_leaf(standing, given), authority=None)
    for shown, kept in ((renewed.serving, {old}), ({"pod": None}, {old}), ({"pod": leaf.certificate_pem}, set())):
        now = dataclasses.replace(renewed, serving=shown)
        [found] = authority.follow(now, START)
        assert set(certificates_in(found.pem)) == {new.certificate} | kept
        assert authority.follow(after(now, [found], START), START) == []
    assert authority.follow(with_leaf(renewed, None), START) == []


def test_no_repr_shows_a_key(standing: State) -> None:
    actions = [*step(NOTHING, START, LIFETIMES), *step(with_leaf(standing, None), SETTLED, LIFETIMES)]
    signing = WriteAuthority(signer(standing), None, frozenset(), None, "")
    for shown in (repr(standing), repr(actions), repr(signing), repr(look(standing, START))):
        assert "PRIVATE" not in shown


def test_lives_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="three times"):
        Lifetimes(authority=30 * DAY, leaf=11 * DAY)


def test_a_real_client_trusts_old_and_new_leaf_by_the_bundle_of_the_overlap(tmp_path: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    begun = now - LIFETIMES.authority * 2 / 3 - HOUR
    standing = settle(serving(settle(NOTHING, begun)), now - DAY)
    introduced = settle(serving(standing), now - LIFETIMES.settle)
    signing = settle(introduced, now)
    assert leaf_data(signing)["tls.crt"] != leaf_data(standing)["tls.crt"]
    for state in (standing, signing):
        pair = tmp_path / "pair.pem"
        pair.write_bytes(leaf_data(state)["tls.key"] + leaf_data(state)["tls.crt"])
        serves = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serves.load_cert_chain(pair)
        asks = ssl.create_default_context(cadata=introduced.published["validating"].pem.decode())
        shake_hands(asks, serves)
    stranger = new_leaf(other(now), NAMES, now, LIFETIMES.leaf)
    (tmp_path / "pair.pem").write_bytes(stranger.key_pem + stranger.certificate_pem)
    serves.load_cert_chain(tmp_path / "pair.pem")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(asks, serves)


def shake_hands(asks: ssl.SSLContext, serves: ssl.SSLContext) -> None:
    """In memory. Raises SSLError where the client does not trust the server."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    waiting = [
        asks.wrap_bio(down, up, server_hostname="fieldwarden.policies.svc"),
        serves.wrap_bio(up, down, server_side=True),
    ]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
