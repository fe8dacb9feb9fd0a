"""The certificate authority's life: which step is the next one, and what it writes.

    an authority signs      ca.crt, ca.key                    bundle: ca
    two thirds gone         + next.crt, next.key              bundle: ca, next
    trusted everywhere      next becomes ca, ca is previous   bundle: the same
    every leaf signed anew  no leaf of previous is served     bundle: ca

A leaf is signed by an authority that every bundle has carried for a while, or whose leaves are served already, so whoever
calls a pod trusts it at every moment. Nothing is remembered between steps: each starts from what really stands there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from cryptography import x509

from webhook.certificates import (
    Signed,
    certificates_in,
    holds_names,
    is_fresh,
    is_issued_by,
    is_valid,
    new_authority,
    new_leaf,
    pem,
    renewal,
)
from webhook.cluster.trust import (
    PREVIOUS,
    RETIRED,
    Leaf,
    Lifetimes,
    Seen,
    State,
    in_order,
    issued_at,
    look,
)

USUAL = Lifetimes()
NAME = "fieldwarden authority"
_LOOK_AGAIN = dt.timedelta(minutes=10)  # while something is on its way that only the world can tell


class Make(Enum):
    """Stands for a pair that is made when it is written."""

    NEW = "new"


@dataclass(frozen=True, slots=True)
class WriteAuthority:
    """Write the authority's Secret, if it is still as it was read; `written` has what to write."""

    current: Signed | Make | None = field(repr=False)
    next: Signed | Make | None = field(repr=False)
    previous: frozenset[x509.Certificate] = field(repr=False)
    retired: dt.datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Put a bundle into a webhook configuration, if that is still as it was read."""

    configuration: str
    pem: bytes = field(repr=False)
    reason: str


@dataclass(frozen=True, slots=True)
class IssueLeaf:
    """Write a leaf's Secret, if it is still as it was read; `issued` has what to write."""

    secret: str
    names: tuple[str, ...]
    authority: Signed = field(repr=False)
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done until then, unless something is changed from outside."""

    until: dt.datetime
    reason: str


Action = WriteAuthority | Publish | IssueLeaf | Wait


def step(state: State, now: dt.datetime, lifetimes: Lifetimes = USUAL) -> list[Action]:
    """What to do now, in this order; at the first that fails, and after all of them, look again."""
    seen = look(state, now)
    wanted = _authority(seen, state, lifetimes)
    if wanted is not None:
        return [wanted]
    actions: list[Action] = [*_publications(seen, _bundle(seen)), *_leaves(seen, state, lifetimes)]
    return actions or [_wait(seen, state, lifetimes)]


def follow(state: State, now: dt.datetime) -> list[Publish]:
    """What to publish where somebody else, as cert-manager, keeps the leaves' Secrets with their ca.crt.

    Authorities of before stay for as long as a pod serves by them, cannot be asked, or shows what others signed for them.
    """
    seen = look(state, now)
    given = {each for leaf in state.leaves.values() for each in certificates_in((leaf.data or {}).get("ca.crt", b""))}
    known = given | seen.published
    doubtful = seen.unknown or not all(any(is_issued_by(leaf, each) for each in known) for leaf in seen.shown)
    kept = {each for each in seen.published if doubtful or seen.has_live_leaf(each)}
    return list(_publications(seen, given | kept)) if given else []


def faults(state: State, now: dt.datetime) -> tuple[str, ...]:
    """What is damaged in the Secrets and bundles: names of Secrets and keys, no content."""
    return look(state, now).faults


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The DNS names by which a Service's pods are called.

    >>> service_names("webhook", "policies")[-2:]
    ('webhook.policies.svc', 'webhook.policies.svc.cluster.local')
    """
    inside = f"{service}.{namespace}"
    return service, inside, f"{inside}.svc", f"{inside}.svc.cluster.local"


def written(action: WriteAuthority, now: dt.datetime, lifetimes: Lifetimes = USUAL) -> dict[str, bytes]:
    """The authority's Secret's data, with keys made where the action asks for them."""
    data: dict[str, bytes] = {}
    for name, pair in (("ca", action.current), ("next", action.next)):
        made = new_authority(NAME, now, lifetimes.authority) if isinstance(pair, Make) else pair
        if made is not None:
            data |= {f"{name}.crt": made.certificate_pem, f"{name}.key": made.key_pem}
    if action.previous:
        data[PREVIOUS] = pem(in_order(action.previous))
    if action.previous and action.retired is not None:
        data[RETIRED] = action.retired.isoformat(timespec="seconds").encode()
    return data


def issued(action: IssueLeaf, now: dt.datetime, lifetimes: Lifetimes = USUAL) -> dict[str, bytes]:
    """The data of a Secret of type kubernetes.io/tls, with a new key."""
    leaf = new_leaf(action.authority, action.names, now, lifetimes.leaf)
    return {"tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem, "ca.crt": action.authority.certificate_pem}


def _authority(seen: Seen, state: State, lifetimes: Lifetimes) -> WriteAuthority | None:
    """What the authority's Secret should say, where it says otherwise."""
    current = seen.current if seen.current and is_valid(seen.current.certificate, seen.now) else None
    following = seen.next if seen.next and is_fresh(seen.next.certificate, seen.now) else None
    signing: Signed | Make | None = current
    introduced: Signed | Make | None = following
    reason = "; ".join(seen.damage)
    if following is not None:
        if seen.is_idle or _is_trusted(following, seen, state, lifetimes):
            signing, introduced, reason = following, None, "the next authority is trusted everywhere"
    elif current is None or not is_fresh(current.certificate, seen.now):
        reason = reason or _why_new(seen, state)
        if seen.is_idle:
            signing = Make.NEW
        else:
            introduced = Make.NEW
    previous = _previous(seen, state, (signing, introduced), lifetimes)
    retired = seen.now if previous - seen.previous or seen.retired is None else seen.retired
    kept = (signing, introduced, previous) == (seen.current, seen.next, seen.previous)
    if kept and not seen.damage and (seen.retired is not None or not previous):
        return None
    return WriteAuthority(signing, introduced, previous, retired, reason or "an authority that signs no more is let go")


def _why_new(seen: Seen, state: State) -> str:
    if state.authority is None:
        return "there is no authority"
    if seen.current is None or not is_valid(seen.current.certificate, seen.now):
        return "the authority has ended"
    return "two thirds of the authority's life are gone"


def _is_trusted(authority: Signed, seen: Seen, state: State, lifetimes: Lifetimes) -> bool:
    """Whether every bundle has carried it for so long that every API server has noticed."""
    return all(
        authority.certificate in seen.bundles[name] and held.since + lifetimes.settle <= seen.now
        for name, held in state.published.items()
    )


def _previous(
    seen: Seen, state: State, pairs: tuple[Signed | Make | None, ...], lifetimes: Lifetimes
) -> frozenset[x509.Certificate]:
    """Authorities that sign no more and must still be trusted."""
    signing = {pair.certificate for pair in pairs if isinstance(pair, Signed)}
    retiring = {seen.current.certificate} if seen.current else seen.published  # lost: trust on as before
    found = (seen.previous | retiring | seen.published | _in_secrets(state)) - signing
    over = _is_over(seen, lifetimes)
    return frozenset(
        each
        for each in found
        if is_valid(each, seen.now)
        and (seen.has_live_leaf(each) or (not over if each in seen.previous else each in retiring))
    )


def _in_secrets(state: State) -> set[x509.Certificate]:
    """Authorities whose certificate stands somewhere, whatever became of the key."""
    secrets = [state.authority, *(leaf.data for leaf in state.leaves.values())]
    return {each for data in secrets if data for each in certificates_in(data.get("ca.crt", b""))}


def _is_over(seen: Seen, lifetimes: Lifetimes) -> bool:
    """Whether whoever is not seen to serve a leaf of a previous authority does not serve one."""
    if seen.retired is not None and seen.retired + lifetimes.leaf <= seen.now:
        return True  # the last leaf has ended
    if seen.unknown or seen.current is None:
        return False
    return all(
        leaf is not None
        and is_issued_by(leaf.certificate, seen.current.certificate)
        and issued_at(leaf.certificate) + lifetimes.margin <= seen.now
        for leaf in seen.leaves.values()
    )


def _bundle(seen: Seen) -> set[x509.Certificate]:
    """What the authority's Secret calls for."""
    return {pair.certificate for pair in (seen.current, seen.next) if pair} | seen.previous


def _publications(seen: Seen, wanted: set[x509.Certificate]) -> Iterator[Publish]:
    """Bundles that are not what is wanted."""
    bundle = [each for each in in_order(wanted) if is_valid(each, seen.now)]
    if not bundle:
        return
    for name, held in seen.bundles.items():
        if set(bundle) - held:
            yield Publish(name, pem(bundle), "an authority is missing in the bundle")
        elif held - set(bundle) or name in seen.torn:
            yield Publish(name, pem(bundle), "the bundle holds what is not to be trusted")


def _leaves(seen: Seen, state: State, lifetimes: Lifetimes) -> Iterator[IssueLeaf]:
    """Leaves that are to be signed, once nobody can be cut off by it."""
    authority = seen.current
    if authority is None or not is_valid(authority.certificate, seen.now):
        return
    signs_on = seen.is_idle or seen.has_live_leaf(authority.certificate)
    if not (signs_on or _is_trusted(authority, seen, state, lifetimes)):
        return
    for secret, leaf in state.leaves.items():
        reason = _why_leaf(secret, leaf, seen, authority)
        if reason:
            yield IssueLeaf(secret, leaf.names, authority, reason)


def _why_leaf(secret: str, leaf: Leaf, seen: Seen, authority: Signed) -> str:
    """Why a leaf must be signed; empty where it is good."""
    stored = seen.leaves[secret]
    if stored is None:
        damage = "; ".join(fault for fault in seen.faults if fault.startswith(f"{secret}: "))
        return damage or "there is no certificate"
    if not is_issued_by(stored.certificate, authority.certificate):
        return "it was signed by an authority that signs no more"
    if not is_valid(stored.certificate, seen.now):
        return "it has ended"
    if not is_fresh(stored.certificate, seen.now):
        return "two thirds of its life are gone"
    return "" if holds_names(stored.certificate, leaf.names) else "a name is missing"


def _wait(seen: Seen, state: State, lifetimes: Lifetimes) -> Wait:
    times = [(at, reason) for at, reason in _deadlines(seen, state, lifetimes) if at > seen.now]
    return Wait(*min(times, default=(seen.now + _LOOK_AGAIN, "the world is on its way")))


def _deadlines(seen: Seen, state: State, lifetimes: Lifetimes) -> Iterator[tuple[dt.datetime, str]]:
    if seen.current is not None:
        yield renewal(seen.current.certificate), "the authority grows old"
    for name, held in state.published.items():
        yield held.since + lifetimes.settle, f"the bundle of {name} settles"
    for secret, leaf in seen.leaves.items():
        if leaf is not None:
            yield renewal(leaf.certificate), f"{secret} grows old"
    if seen.previous:
        yield seen.now + _LOOK_AGAIN, "an authority that signs no more is still in use"
