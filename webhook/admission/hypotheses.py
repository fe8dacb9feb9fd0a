"""The two ways in which a write can have come about, and which one the claims bear out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from webhook.admission.cap import folded_at_once, swallowed
from webhook.admission.evidence import LAST_APPLIED, Evidence
from webhook.admission.explanations import (
    ancient_changes,
    given_up,
    is_bucket,
    migration,
    put_back,
    schema_change,
    set_anew,
)
from webhook.fields import (
    ABSENT,
    Claim,
    ClaimChange,
    Explanation,
    FieldPath,
    FieldSet,
    Identity,
    Migration,
    Request,
    Requester,
    Tampering,
)
from webhook.fields.fieldset import EMPTY

Explained = dict[Identity, tuple[Explanation, ...]]


class Outcome(NamedTuple):
    """A hypothesis, and what it leaves over."""

    requester: Requester
    tampering: tuple[Tampering, ...] = ()
    elsewhere: FieldSet = EMPTY  # written, but by neither requester nor client: the server or another webhook
    foreign: FieldSet = EMPTY  # the part of `elsewhere` that other claims hold
    explained: Mapping[Identity, tuple[Explanation, ...]] = MappingProxyType({})
    migration: Migration | None = None


def best(evidence: Evidence) -> Outcome:
    """The hypothesis that leaves least over; an apply where both fit, an update where none does."""
    moved = migration(evidence)
    if moved is not None:
        return _migrated(evidence, moved)
    applied = apply(evidence)
    if applied is not None and not applied.tampering and not applied.foreign:
        return applied
    updated = update(evidence)
    fits = [outcome for outcome in (applied, updated) if outcome is not None and not outcome.tampering]
    return min(fits, key=lambda outcome: len(outcome.foreign), default=updated)


def named(evidence: Evidence) -> Identity | None:
    """Whose a write is that changed nothing, so that only the name given tells."""
    request = evidence.request
    if request.field_manager is None:
        return None
    applier = Identity(request.field_manager, "Apply", request.subresource)
    return applier if applier in evidence.new_claims else updater(evidence)


def apply(evidence: Evidence) -> Outcome | None:
    """A server-side apply by `options.fieldManager`, which an apply always names."""
    request = evidence.request
    if request.field_manager is None:
        return None
    me = Identity(request.field_manager, "Apply", request.subresource)
    before = _born_before(evidence)
    if me not in evidence.new_claims and me not in evidence.old_claims and before is None:
        return None
    if _removed_for_others(evidence, me):
        return None
    explained: Explained = {}
    tampering = list(_altered(evidence, me))
    for change in evidence.changes.values():
        if change.identity == me:
            left = Tampering(me, EMPTY, _undroppable(evidence, change))
        elif change.identity == before:
            explained[change.identity] = ("before-first-apply",)
            continue
        else:
            left = _residue(evidence, change, me, explained)
        if left.gained or left.lost:
            tampering.append(left)
    foreign = _foreign(evidence, me)
    if LAST_APPLIED in foreign and evidence.is_annotated(me):
        foreign = foreign - FieldSet.from_paths([FieldPath(LAST_APPLIED)])
        holders = [identity for identity, held in evidence.holdings.items() if LAST_APPLIED in held and identity != me]
        explained.update(dict.fromkeys(holders, ("last-applied",)))
    return Outcome(Requester(me), tuple(tampering), _elsewhere(evidence, me, foreign), foreign, explained)


def _born_before(evidence: Evidence) -> Identity | None:
    """The before-first-apply claim of an object that had none: all that it holds was there before."""
    request = evidence.request
    before = Identity("before-first-apply", "Update", request.subresource, request.requested_version)
    claim = evidence.new_claims.get(before)
    if claim is None or evidence.old_claims:
        return None
    real = not evidence.comparable(before) or all(
        evidence.old_value(path) is not ABSENT for path in claim.fields.leaves()
    )
    return before if real or request.is_scale else None


def update(evidence: Evidence) -> Outcome:
    """An update: the server takes what is written from every other claim and gives it to one Update claim."""
    me = updater(evidence)
    explained: Explained = {}
    tampering = list(_altered(evidence, None))
    changes = dict(evidence.changes)
    holder = folded_at_once(evidence, me) or me or _unnamed(evidence)  # of what was written
    for identity in (*ancient_changes(evidence, me), *swallowed(evidence, me)):
        explained[identity] = ("ancient-changes",)
        changes.pop(identity, None)
        if is_bucket(identity) and identity in evidence.new_claims and me not in evidence.new_claims:
            holder = identity
    for change in changes.values():
        left = _residue(evidence, change, holder, explained)
        if left.gained or left.lost:
            tampering.append(left)
    if evidence.request.subresource and tampering:  # the server takes no claims from a body sent to a subresource
        for left in tampering:
            reasons: tuple[Explanation, ...] = (*explained.get(left.identity, ()), "another-webhook")
            explained[left.identity] = tuple(dict.fromkeys(reasons))
        tampering = []
    foreign = _foreign(evidence, holder)
    return Outcome(Requester(me), tuple(tampering), _elsewhere(evidence, holder, foreign), foreign, explained)


def nobody(request: Request) -> Identity:
    """The claim of a writer whose name is not known, in a request that is taken back: no client can have this name."""
    return Identity("", "Update", request.subresource, request.requested_version)


def _unnamed(evidence: Evidence) -> Identity | None:
    return nobody(evidence.request) if nobody(evidence.request) in evidence.new_claims else None


def _migrated(evidence: Evidence, moved: Migration) -> Outcome:
    me = Requester(updater(evidence))
    if moved.unproven:
        tampering = tuple(Tampering(item.identity, item.gained, item.lost) for item in evidence.changes.values())
        return Outcome(me, tampering, migration=moved)
    return Outcome(me, explained=dict.fromkeys((*moved.sources, moved.target), ("migration",)))


def updater(evidence: Evidence) -> Identity | None:
    """Whose Update this is: as named, else the one Update claim that holds what was written."""
    request = evidence.request
    if request.field_manager is not None:
        return Identity(request.field_manager, "Update", request.subresource, request.requested_version)
    candidates = [
        identity
        for identity in evidence.new_claims
        if identity.operation == "Update"
        and identity.manager
        and not is_bucket(identity)
        and identity.subresource == request.subresource
        and identity.api_version == request.requested_version
        and (identity in evidence.holdings or _gained(evidence, identity))
    ]
    return max(candidates, key=lambda identity: _weight(evidence, identity), default=None)


def _weight(evidence: Evidence, identity: Identity) -> int:
    """How much speaks for a claim as the requester's: what it holds of what was written, and gained."""
    return len(evidence.held_by(identity)) + sum(map(evidence.wrote, _gains(evidence, identity)))


def _gained(evidence: Evidence, identity: Identity) -> bool:
    """Whether a claim gained what was written; in another version any gain may be that."""
    return any(evidence.wrote(path) if evidence.shows(identity, path) else True for path in _gains(evidence, identity))


def _gains(evidence: Evidence, identity: Identity) -> FieldSet:
    change = evidence.changes.get(identity)
    return change.gained if change is not None else EMPTY


def _residue(evidence: Evidence, change: ClaimChange, me: Identity | None, explained: Explained) -> Tampering:
    """What of a claim's movement an update (or anybody's apply, for another claim than its own) does not account for."""
    identity = change.identity
    gained, lost = change.gained, change.lost
    if given_up(evidence):
        explained[identity] = ("version",)
        return Tampering(identity, EMPTY, EMPTY)
    exchanged = schema_change(evidence, change)
    if exchanged is not None:
        explained[identity] = ("schema",)
        gained, lost = gained - exchanged.gained, lost - exchanged.lost
    if not evidence.comparable(identity):
        hidden = FieldSet.from_paths(path for path in lost if not evidence.shows(identity, path))
        if hidden and (evidence.comparison or _applies(evidence, me)):
            explained[identity] = (*explained.get(identity, ()), "version")
            lost = lost - hidden
        if identity == me:
            gained = FieldSet.from_paths(path for path in gained if evidence.shows(identity, path))
    if identity == me and (gained := gained - evidence.comparison.written):
        gained = _not_put_back(evidence, [path for path in gained if not evidence.wrote(path)])
        stripped = FieldSet.from_paths(path for path in gained if evidence.absent(path))
        if stripped:  # written, then dropped by a webhook, or by the server as a feature that is off
            explained[identity] = (*explained.get(identity, ()), "another-webhook")
            gained = gained - stripped
    if lost and (lost := lost - evidence.comparison.removed - evidence.held_by(me)):
        lost = _not_put_back(evidence, [path for path in lost if not _taken(evidence, path, me)])
    return Tampering(identity, gained, lost)


def _not_put_back(evidence: Evidence, paths: list[FieldPath]) -> FieldSet:
    """What is left unexplained: nothing, where the server puts back all of it. A claim that lost more was edited."""
    return EMPTY if all(put_back(evidence, path) for path in paths) else FieldSet.from_paths(paths)


def _taken(evidence: Evidence, path: FieldPath, me: Identity | None) -> bool:
    """Whether the server takes a path from a claim in a write under `me`: it was written or removed."""
    if not evidence.differs(path):
        return _applied(evidence, path, me)
    if evidence.new_value(path) is ABSENT:
        return True
    if not evidence.wrote(path):
        return False  # a map or item is still there: the server takes the "." of what goes away only
    if evidence.holds_at_or_above(me, path) or (me is not None and evidence.came(path) and evidence.reaches(me, path)):
        return True
    return me is None or not any(True for _ in _claimants(evidence, path))


def _applies(evidence: Evidence, me: Identity | None) -> bool:
    """Whether an apply moved its own claim: what it wrote may be what is defaulted anew, so that no value shows it."""
    return me is not None and me.operation == "Apply" and me in evidence.changes


def _applied(evidence: Evidence, path: FieldPath, me: Identity | None) -> bool:
    """Whether an apply took a path whose value shows nothing of it.

    What is never stored is new every time: a Secret's stringData, an empty map. And one value of many parts looks the same
    once the server has filled in their defaults again.
    """
    claim = evidence.new_claims.get(me) if me is not None and me.operation == "Apply" else None
    if claim is None:
        return False
    if path[0] == "f:stringData":
        return bool(claim.reaches(path)) and evidence.new_value(path) is ABSENT
    return claim.holds_leaf(path) and ((value := evidence.new_value(path)) is ABSENT or isinstance(value, dict | list))


def _claimants(evidence: Evidence, path: FieldPath) -> Iterator[Identity]:
    for identity, claim in evidence.new_claims.items():
        if claim.reaches(path):
            yield identity


def _undroppable(evidence: Evidence, change: ClaimChange) -> FieldSet:
    """What an apply cannot have dropped: the server removes the value of what its sole claimant no longer applies."""
    if not change.lost or not evidence.comparable(change.identity):
        return EMPTY
    return FieldSet.from_paths(path for path in change.lost if not _dropped(evidence, change.new, path))


def _dropped(evidence: Evidence, mine: Claim | None, path: FieldPath) -> bool:
    value = evidence.new_value(path)
    if value is ABSENT or (mine is not None and mine.reaches(path)):
        return True
    if isinstance(value, dict | list):
        return True  # kept for its parts, which may be nobody's
    if path[0] != "f:metadata" or set_anew(evidence, path):
        return True  # gone, and defaulted anew
    return any(claim.reaches(path) or _leaf_above(claim, path) for claim in evidence.new_claims.values())


def _leaf_above(claim: Claim | None, path: FieldPath) -> bool:
    return claim is not None and any(claim.holds_leaf(path[:length]) for length in range(1, len(path)))


def _removed_for_others(evidence: Evidence, me: Identity) -> bool:
    """Whether claims lost values that went: an apply leaves what others claim, atomic values around it apart."""
    if not evidence.comparison.removed:
        return False
    now = evidence.new_claims.get(me)
    return any(
        evidence.new_value(path) is ABSENT
        and evidence.old_value(path) is not ABSENT
        and not (now is not None and now.holds(path))  # an empty value is applied, and not stored
        and not _leaf_above(now, path)
        and not _item_gone(evidence, me, path)
        for change in evidence.changes.values()
        if change.identity != me and change.lost and evidence.comparable(change.identity)
        for path in change.lost
    )


def _item_gone(evidence: Evidence, me: Identity, path: FieldPath) -> bool:
    """Whether a path went with a list item that the applier alone claimed, and dropped: parts of it keep no item alive."""
    before = evidence.old_claims.get(me)
    return before is not None and any(
        path[length - 1][:2] in ("k:", "v:")
        and before.holds(path[:length])
        and evidence.new_value(path[:length]) is ABSENT
        and not any(claim.holds(path[:length]) for identity, claim in evidence.old_claims.items() if identity != me)
        for length in range(2, len(path))
    )


def _altered(evidence: Evidence, applier: Identity | None) -> Iterable[Tampering]:
    """Claims whose version the request altered. An applier's own claim becomes the version that it applied."""
    for identity in evidence.altered:
        if identity != applier or evidence.new_claims[identity].api_version != evidence.request.requested_version:
            yield Tampering(identity, EMPTY, EMPTY, version=True)


def _foreign(evidence: Evidence, me: Identity | None) -> FieldSet:
    """What was written while a claim other than the requester's holds it: the server would have taken it away."""
    foreign = EMPTY
    for identity, held in evidence.holdings.items():
        if identity != me:
            foreign = foreign | held
    return foreign


def _elsewhere(evidence: Evidence, me: Identity | None, foreign: FieldSet) -> FieldSet:
    """What the server or another webhook wrote: held by nobody, or by a claim that is not the requester's."""
    request = evidence.request
    if evidence.untracked or request.is_scale:
        return EMPTY
    if me is not None and me in evidence.new_claims and not evidence.comparable(me):
        return EMPTY
    return (evidence.comparison.written - evidence.held_by(me)) | foreign
