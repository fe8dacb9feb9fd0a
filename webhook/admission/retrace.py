"""Our own rewrite, seen in what the API server sends: in the validating call, and where the mutating one is called again.

A claim that a rewrite moved looks edited, and what it returned looks as if nobody had written it. So the request is taken
back to what it must have been, by undoing what the server's rules do not explain; and only what the policies then do again,
exactly so, is believed to have been theirs. Nothing is remembered between two calls, which may reach two processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from webhook.admission.draft import Draft, item_prefixes
from webhook.admission.evidence import LAST_APPLIED, Evidence
from webhook.admission.explanations import ancient_changes
from webhook.admission.hypotheses import nobody, updater
from webhook.admission.understand import Understood, evidence_of
from webhook.fields import (
    ABSENT,
    Change,
    Claim,
    FieldPath,
    FieldSet,
    Identity,
    ManagedFields,
    Request,
)
from webhook.fields.editing import Editor
from webhook.fields.fieldset import EMPTY
from webhook.fields.lookup import Values
from webhook.fields.values import same

Steps = tuple[str, ...]


class Moved(NamedTuple):
    """What was undone at one claim: the paths put back into it, and those taken out."""

    back: FieldSet = EMPTY
    away: FieldSet = EMPTY


@dataclass(frozen=True, slots=True)
class Earlier:
    """A request as it may have been before it was rewritten."""

    request: Request
    moved: Mapping[Identity, Moved]
    values: tuple[Steps, ...] = ()  # put back as well

    def done_again(self, wanted: Mapping[str, Any], came: Mapping[str, Any]) -> dict[Identity, Moved]:
        """Of what was undone: that of which a rewritten object says the same as the one that came, claims and values."""
        undone = EMPTY
        for item in self.moved.values():
            undone = undone | item.back | item.away
        one, other = ManagedFields.of(wanted), ManagedFields.of(came)
        differing = EMPTY
        for identity in {*one, *other}:
            held, holds = (claims[identity].held_of(undone) if identity in claims else EMPTY for claims in (one, other))
            differing = differing | (held - holds) | (holds - held)
        made, found = Values(wanted), Values(came)
        differing = differing | FieldSet.from_paths(path for path in undone if not same(made.at(path), found.at(path)))
        parts = {name: Moved(item.back - differing, item.away - differing) for name, item in self.moved.items()}
        return {identity: item for identity, item in parts.items() if item != Moved()}

    def as_stored(self, wanted: Mapping[str, Any], came: Mapping[str, Any]) -> Mapping[str, Any]:
        """A rewritten object in which the server has set to their defaults again what was taken away.

        It does so after each patch; such a value is claimed by nobody. No default stands in the metadata.
        """
        editor, made, found = Editor(wanted), Values(wanted), Values(came)
        for path in {path: None for item in self.moved.values() for path in item.back.leaves()}:
            if path[0] != "f:metadata" and made.at(path) is ABSENT:
                value = found.at(path)
                if value is not ABSENT:
                    editor.put(path, value, came)
        stored: Mapping[str, Any] = editor.value
        return stored

    def values_gone_again(self, obj: Mapping[str, Any]) -> bool:
        found = Values(obj)
        return all(found.at(path) is ABSENT for path in self.values)  # of the policies' making, before defaults


def shows_traces(seen: Understood) -> bool:
    """Whether anything about a change could be a rewrite's doing."""
    if seen.change.tampering or seen.change.foreign:
        return True
    return seen.evidence is not None and bool(_pruned(seen.evidence))


def earlier_requests(seen: Understood) -> Iterator[Callable[[Mapping[Identity, Moved] | None], Earlier | None]]:
    """The ways to take a request back. Each is asked for all of it first, and then perhaps for a part only."""
    if seen.evidence is None:
        yield partial(_uncreated, seen.change)
        return
    evidence = seen.evidence
    if pruned := _pruned(evidence):
        base, moved, values = _unpruned(evidence, pruned)
        yield from _ways(base, moved, values)
    yield from _ways(evidence, {}, ())


def _ways(
    evidence: Evidence, moved: Mapping[Identity, Moved], values: tuple[Steps, ...]
) -> Iterator[Callable[[Mapping[Identity, Moved] | None], Earlier | None]]:
    for me in _writers(evidence):
        if not set(evidence.altered) <= {me}:
            continue
        seen = _without_last_applied(me, evidence)
        undone = _undone(me, seen)
        if undone or moved:
            yield partial(_taken_back, me, seen, undone, moved, values)


def _without_last_applied(me: Identity, evidence: Evidence) -> Evidence:
    """At an apply by kubectl the server itself writes that annotation anew, whoever claims it, and moves no claim."""
    written = evidence.comparison.written
    if LAST_APPLIED not in written or not evidence.is_annotated(me):
        return evidence
    less = written - FieldSet.from_paths([FieldPath(LAST_APPLIED)])
    return replace(evidence, comparison=evidence.comparison._replace(written=less))


def _writers(evidence: Evidence) -> Iterator[Identity]:
    """Whose write it may have been: as for the two hypotheses."""
    request = evidence.request
    if request.field_manager is not None:
        applier = Identity(request.field_manager, "Apply", request.subresource)
        if applier in evidence.new_claims or applier in evidence.old_claims:
            yield applier
    yield updater(evidence) or nobody(request)
    if request.field_manager is None:  # then he may have been one whose claim has another name now, or less in it
        yield from (name for name, moved in evidence.changes.items() if moved.lost and name.operation == "Update")


def _undone(me: Identity, evidence: Evidence) -> dict[Identity, Moved]:
    """What to undo if this was the writer, by claim: all that moved while no value shows why."""
    folded = ancient_changes(evidence, me)
    found: dict[Identity, Moved] = {}
    for identity, change in evidence.changes.items():
        if identity in folded or (identity == me and me.operation == "Apply"):
            continue
        back = change.lost
        if back and evidence.comparison:
            took = [path for path in back if _took(evidence, path, mine=identity == me)]
            back = back - FieldSet.from_paths(took) if took else back
        away = change.gained
        if identity == me and away:
            away = FieldSet.from_paths(path for path in away if not _wrote(evidence, path))
        if back or away:
            found[identity] = Moved(back, away)
    for identity, theirs in (*_held(me, evidence), *_elsewhere(me, evidence), *_thinned(me, evidence)):
        _undo_more(found, identity, Moved(away=theirs))
    given = _given(found, evidence)
    if given:
        for identity, claim in evidence.new_claims.items():  # in other versions too
            if identity != me and (theirs := claim.held_of(given)):
                _undo_more(found, identity, Moved(away=theirs))
        found = {name: item._replace(back=item.back.recursive_difference(given)) for name, item in found.items()}
    return found


def _undo_more(undone: dict[Identity, Moved], identity: Identity, more: Moved) -> None:
    before = undone.get(identity, Moved())
    undone[identity] = Moved(before.back | more.back, before.away | more.away)


def _took(evidence: Evidence, path: FieldPath, *, mine: bool) -> bool:
    """Whether the server takes a path from a claim: its value went away, or somebody else wrote it."""
    return evidence.differs(path) and (evidence.new_value(path) is ABSENT or (not mine and evidence.wrote(path)))


def _held(me: Identity, evidence: Evidence) -> Iterator[tuple[Identity, FieldSet]]:
    """What was written and stands in other claims than the writer's."""
    for identity, held in evidence.holdings.items():
        if identity != me:
            claim = evidence.new_claims[identity]
            yield identity, FieldSet.from_paths(_as_claimed(claim, path) for path in held)


def _elsewhere(me: Identity, evidence: Evidence) -> Iterator[tuple[Identity, FieldSet]]:
    """What was written and stands in claims of the version that the client wrote in, where the objects show another."""
    request, written = evidence.request, evidence.comparison.written
    if request.requested_version != request.api_version and written:
        for identity, claim in evidence.new_claims.items():
            if identity != me and claim.api_version == request.requested_version and (held := claim.held_of(written)):
                yield identity, held


def _thinned(me: Identity, evidence: Evidence) -> Iterator[tuple[Identity, FieldSet]]:
    """The atomic values that a part was taken out of, which the server gives to who did so."""
    removed = evidence.comparison.removed
    for identity, claim in evidence.new_claims.items() if removed else ():
        seats = {_as_claimed(claim, path) for path in removed} - set(removed)
        if identity != me and (wrote := [seat for seat in seats if evidence.wrote(seat)]):
            yield identity, FieldSet.from_paths(wrote)


def _as_claimed(claim: Claim, path: FieldPath) -> Steps:
    """A path, or the atomic value around it that a claim holds in its place."""
    return next((path[:length] for length in range(2, len(path)) if claim.holds_leaf(path[:length])), path)


def _given(undone: Mapping[Identity, Moved], evidence: Evidence) -> FieldSet:
    """What the writer must have claimed, as it was taken from him; the server took it from everybody else."""
    return FieldSet.from_paths(path for item in undone.values() for path in item.away if _wrote(evidence, path))


def _wrote(evidence: Evidence, path: FieldPath) -> bool:
    return evidence.wrote(path) or evidence.came(path) or evidence.absent(path)


def _taken_back(
    me: Identity,
    evidence: Evidence,
    undone: Mapping[Identity, Moved],
    before: Mapping[Identity, Moved],
    values: tuple[Steps, ...],
    only: Mapping[Identity, Moved] | None,
) -> Earlier | None:
    parts = undone if only is None else {name: only[name] for name in undone if name in only}
    draft = Draft(evidence.request, evidence.old_claims, evidence.new_claims)
    given = _given(parts, evidence)
    for identity, item in parts.items():
        draft.hold(identity, (draft.claim(identity) - item.away) | item.back)
    if given:
        draft.hold(me, draft.claim(me) | given)
    moved = dict(before)
    for identity, item in parts.items():
        _undo_more(moved, identity, item)
    return Earlier(replace(evidence.request, new=draft.rewritten()), moved, values)


def _uncreated(change: Change, only: Mapping[Identity, Moved] | None) -> Earlier | None:
    """A creation: what other claims hold than the creator's was the creator's, if that has none."""
    me = change.requester.identity
    if me is None or me in change.new_claims or only is not None:
        return None
    draft, moved = Draft(change.request, change.old_claims, change.new_claims), {}
    for item in change.tampering:
        draft.hold(item.identity, EMPTY)
        draft.hold(me, draft.claim(me) | item.gained)
        moved[item.identity] = Moved(away=item.gained)
    return Earlier(replace(change.request, new=draft.rewritten()), moved)


def _pruned(evidence: Evidence) -> dict[Identity, FieldSet]:
    """By claim: what it lost of values that went while the applier dropped them. An apply leaves what others claim."""
    request, comparison = evidence.request, evidence.comparison
    if request.field_manager is None or not comparison.removed:
        return {}
    own = evidence.changes.get(Identity(request.field_manager, "Apply", request.subresource))
    if own is None or not own.lost:
        return {}
    found = {}
    for identity, moved in evidence.changes.items():
        if identity != own.identity and moved.lost:
            lost = moved.lost.recursive_difference(comparison.written)  # what became another value is not gone
            gone = FieldSet.from_paths(
                path for path in lost if evidence.new_value(path) is ABSENT and evidence.old_value(path) is not ABSENT
            )
            if gone & own.lost:
                found[identity] = gone
    return found


def _unpruned(
    evidence: Evidence, pruned: Mapping[Identity, FieldSet]
) -> tuple[Evidence, dict[Identity, Moved], tuple[Steps, ...]]:
    """The request with the values back that only leftovers kept, and with their claims on them."""
    own = evidence.changes[Identity(evidence.request.field_manager or "", "Apply", evidence.request.subresource)]
    draft = Draft(evidence.request, evidence.old_claims, evidence.new_claims)
    values: dict[Steps, None] = {}
    for identity, lost in pruned.items():
        draft.hold(identity, draft.claim(identity) | lost)
        for path in lost.leaves():
            gone = (item for item in item_prefixes(path) if evidence.new_value(item) is ABSENT)
            values[next(gone, path)] = None
    draft.put_back(values)
    for path in own.lost.leaves():  # what the applier alone had in an item went by itself
        within = any(path[: len(region)] == region and len(path) > len(region) for region in values)
        if within and not any(path in lost or lost.has_prefix(path) for lost in pruned.values()):
            draft.remove(path)
    earlier = evidence_of(replace(evidence.request, new=draft.rewritten()))
    return earlier, {name: Moved(back=lost) for name, lost in pruned.items()}, tuple(values)
