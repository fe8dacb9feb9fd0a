"""A Change beside the truth: what does not agree, one finding each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.histories.kinds import LAST_APPLIED
from tests.histories.shapes import Kind, Object
from tests.histories.truth import NOTHING, Claims, Difference, Held, Path, Paths, claims_of, covers, difference
from tests.histories.world import Seen
from webhook.admission.review import read_review
from webhook.admission.understand import understand
from webhook.fields import Change, FieldPath, FieldSet, Identity
from webhook.fields.steps import canonical_step


class Finding(NamedTuple):
    """One disagreement: about what, what is true, what was said."""

    about: str
    true: Any
    said: Any
    identity: Identity | None = None

    def __str__(self) -> str:
        where = f" of {self.identity}" if self.identity else ""
        return f"{self.about}{where}: true {shown(self.true)}, said {shown(self.said)}"


@dataclass(frozen=True, slots=True)
class Truth:
    """What a write really did."""

    old: Claims
    new: Claims
    honest: Claims  # what the new claims would be without forging
    values: Difference
    requester: Identity | None  # as far as the review can show it
    version: str  # of the objects shown
    writer: Identity  # who it was, shown or not

    @property
    def holder(self) -> Identity | None:
        """Whose claim has what was written: the requester's, or the bucket that it was folded into at once."""
        buckets = [name for name in self.new if name.manager == "ancient-changes" and self.writer not in self.new]
        for name in buckets:
            if self.values.written & (self.new[name].paths - self.old.get(name, Held("", NOTHING)).paths):
                return name
        return self.requester

    def tampered(self) -> dict[Identity, tuple[Paths, Paths]]:
        found: dict[Identity, tuple[Paths, Paths]] = {}
        for name in self.old.keys() | self.new.keys() | self.honest.keys():
            old, new, honest = (claims.get(name, Held("", NOTHING)) for claims in (self.old, self.new, self.honest))
            gained = (new.paths - honest.paths) - old.paths
            lost = (honest.paths - new.paths) & old.paths
            if name == self.writer and not self.honest:  # forged claims made the server follow an object without any
                gained = frozenset(path for path in gained if not covers(self.values.written, path))
            altered = bool(name in self.old and name in self.new and new.version not in (old.version, honest.version))
            if gained or lost or altered:
                found[name] = gained, lost
        return found


def truth_of(seen: Seen) -> Truth:
    request = seen.review["request"]
    new, old = request["object"], request.get("oldObject") or {}
    kind = request["kind"]
    version = f"{kind['group']}/{kind['version']}" if kind["group"] else kind["version"]
    claims, was = claims_of(new), claims_of(old)
    scale = seen.write.subresource == "scale"
    if scale:
        new, old = _parent(new), _parent(old)
    counted = seen.write.subresource == "status" or any(
        not name.subresource and any(path[0] == "f:status" for path in held.paths)
        for name, held in (*claims.items(), *was.items())
    )
    values = (
        difference(seen.kind, old, new, (claims, was), status=counted) if old else Difference(NOTHING, NOTHING, NOTHING)
    )
    return Truth(
        was,
        claims,
        seen.honest if seen.honest is not None else claims,
        values,
        _requester(seen, was, claims, values),
        version,
        seen.write.identity,
    )


def _parent(scale: Object) -> Object:
    return {"spec": {"replicas": scale["spec"]["replicas"]} if "replicas" in (scale.get("spec") or {}) else {}}


def _requester(seen: Seen, old: Claims, new: Claims, values: Difference) -> Identity | None:
    """Named, or to be seen by a claim on what was written."""
    me = seen.write.identity
    if seen.write.named or seen.review["request"]["operation"] == "CREATE":
        return me
    if me not in new:
        return None
    mine = new[me].paths
    if seen.honest is not None:
        mine &= seen.honest.get(me, Held("", NOTHING)).paths | values.written
    if mine - old.get(me, Held("", NOTHING)).paths:
        return me
    return me if any(holds(seen.kind, mine, path) for path in values.written) else None


def holds(kind: Kind, mine: Paths, path: Path) -> bool:
    """Whether a claim holds a path itself or as part of an atomic value."""
    if path in mine:
        return True
    for length in range(1, len(path)):
        above = path[:length]
        names = tuple(step[2:] for step in above if step[:2] == "f:")
        atomic = kind.atomic_maps if above[-1][:2] == "f:" else kind.atomic_items
        if above in mine and names in atomic:
            return True
    return False


def judge(seen: Seen) -> tuple[Truth, Change, list[Finding]]:
    request = read_review(json.dumps(seen.review).encode()).request
    assert request is not None
    truth = truth_of(seen)
    change = understand(request)
    if change.requester.identity == seen.write.identity:  # right, and by more than is asked for
        truth = replace(truth, requester=seen.write.identity)
    return truth, change, list(_findings(seen, truth, change))


def _findings(seen: Seen, truth: Truth, change: Change) -> Iterator[Finding]:
    creation = seen.review["request"]["operation"] == "CREATE"
    if change.requester.identity != truth.requester:
        yield Finding("requester", truth.requester, change.requester.identity)
    if change.request.user.name != seen.review["request"]["userInfo"]["username"]:
        yield Finding("user", seen.review["request"]["userInfo"]["username"], change.request.user.name)
    yield from _tampering(truth, change)
    if creation:
        return
    for about, true, said in (
        ("written", truth.values.written, paths(change.written)),
        ("removed", truth.values.removed, paths(change.removed)),
        ("reordered", truth.values.reordered, paths(change.reordered)),
    ):
        if true != said:
            yield Finding(about, true, said)
    yield from _changes(truth, change)
    yield from _takeover(seen, truth, change)
    yield from _elsewhere(seen, truth, change)
    yield from _no_op(seen, truth, change)
    if seen.honest is None:
        yield from _explained(seen, truth, change)


def _tampering(truth: Truth, change: Change) -> Iterator[Finding]:
    true = truth.tampered()
    said = {item.identity: (paths(item.gained), paths(item.lost)) for item in change.tampering}
    for name in true.keys() | said.keys():
        if name not in true:
            yield Finding("innocent blamed", None, said[name], name)
        elif name not in said:
            yield Finding("tampering missed", true[name], None, name)
        elif true[name] != said[name]:
            yield Finding("tampering", true[name], said[name], name)


def _changes(truth: Truth, change: Change) -> Iterator[Finding]:
    for name in truth.old.keys() | truth.new.keys() | change.changes.keys():
        old, new = (claims.get(name, Held("", NOTHING)).paths for claims in (truth.old, truth.new))
        said = change.changes.get(name)
        pair = (paths(said.gained), paths(said.lost)) if said else (NOTHING, NOTHING)
        if (new - old, old - new) != pair:
            yield Finding("gained and lost", (new - old, old - new), pair, name)


def _takeover(seen: Seen, truth: Truth, change: Change) -> Iterator[Finding]:
    me = truth.requester
    mine = truth.new[me].paths if me in truth.new else NOTHING
    true = {}
    for name, held in truth.old.items():
        taken = (held.paths - truth.new.get(name, Held("", NOTHING)).paths) & mine
        if taken and name != me:
            true[name] = taken
    said = {name: paths(taken) for name, taken in change.takeover.items()}
    if true != said:
        yield Finding("takeover", true, said)


def _elsewhere(seen: Seen, truth: Truth, change: Change) -> Iterator[Finding]:
    if seen.write.subresource == "scale" or not (truth.old or truth.new):
        true = NOTHING
    else:
        me = truth.holder
        mine = truth.new.get(me) if me is not None else None
        if mine is not None and mine.version != truth.version:
            return
        held = mine.paths if mine is not None else NOTHING
        true = frozenset(path for path in truth.values.written if not holds(seen.kind, held, path))
        foreign = frozenset(
            path
            for path in truth.values.written
            if any(
                holds(seen.kind, claim.paths, path)
                for name, claim in truth.new.items()
                if name != me and claim.version == truth.version
            )
        )
        true |= foreign
        if "kubectl" in (me.manager if me else ""):
            annotation = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
            if annotation in true ^ paths(change.elsewhere):
                true ^= {annotation}
    if true != paths(change.elsewhere):
        yield Finding("elsewhere", true, paths(change.elsewhere))


def _no_op(seen: Seen, truth: Truth, change: Change) -> Iterator[Finding]:
    moved = any(
        truth.old.get(name, Held("", NOTHING)).paths != truth.new.get(name, Held("", NOTHING)).paths
        for name in truth.old.keys() | truth.new.keys()
    )
    true = not (moved or any(truth.values) or truth.tampered())
    if true != change.no_op:
        yield Finding("no_op", true, change.no_op)
    before, after = (seen.before or {}).get("metadata", {}), seen.reply.body.get("metadata", {})
    gone = before.get("deletionTimestamp") and not seen.review["request"]["object"]["metadata"].get("finalizers")
    if (
        not seen.write.dry_run
        and not gone
        and before.get("resourceVersion") == after.get("resourceVersion")
        and not change.no_op
    ):
        yield Finding("no_op, and nothing was stored", True, False)


def _explained(seen: Seen, truth: Truth, change: Change) -> Iterator[Finding]:
    for name, why in change.explained.items():
        for word in why:
            if not _allowed(word, seen, truth, name):
                yield Finding("explained", None, word, name)


def _allowed(word: str, seen: Seen, truth: Truth, name: Identity) -> bool:
    held = truth.new.get(name) or truth.old[name]
    lost = truth.old.get(name, Held("", NOTHING)).paths - truth.new.get(name, Held("", NOTHING)).paths
    if word == "before-first-apply":
        return name.manager == word and not truth.old and seen.write.operation == "Apply"
    if word == "ancient-changes":
        return (name.manager == word or name not in truth.new) and seen.write.operation == "Update"
    if word == "version":
        return held.version != truth.version and bool(lost)
    if word == "migration":
        return seen.write.migration
    return word == "last-applied" and seen.write.manager == "kubectl" and seen.write.operation == "Apply"


def paths(fields: FieldSet) -> Paths:
    return frozenset(tuple(path) for path in fields)


def shown(value: Any) -> str:
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(str(FieldPath(tuple(map(canonical_step, path)))) for path in value)) + "}"
    if isinstance(value, tuple) and not isinstance(value, Identity):
        return "(" + ", ".join(map(shown, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {shown(item)}" for name, item in value.items()) + "}"
    return str(value)
