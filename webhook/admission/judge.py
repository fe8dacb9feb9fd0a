"""judge: what a request did, what the policies find, and what they make of it. Before modes soften anything but rewrites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from webhook.admission.retrace import Earlier, earlier_requests, shows_traces, stands_as
from webhook.admission.rewrite import Rewriting, can_rewrite, in_force, rewrite
from webhook.admission.understand import Understood, examine, understand
from webhook.fields import ABSENT, Change, ManagedFields, Request, value_at
from webhook.fields.editing import with_value
from webhook.fields.values import same
from webhook.policy.compiled import Event, Mode, Verdict
from webhook.policy.evaluate import Phase, evaluate
from webhook.policy.policyset import PolicySet


@dataclass(frozen=True)
class Judgement:
    """A request judged as it was before our own rewrite, and the object that the policies in force make of it."""

    came: Request
    change: Change
    verdict: Verdict
    rewriting: Rewriting

    @property
    def is_retraced(self) -> bool:
        """Whether what came was a rewrite of what is judged."""
        return self.came is not self.change.request

    @cached_property
    def unfinished(self) -> bool:
        """Whether the policies want another object than the one that came."""
        return self.rewriting.changed and _differ(self.rewriting.obj, self.came.new)

    def landed(self, event: Event) -> bool:
        """Whether what an event asks for is there already, in what came."""
        if self.rewriting.blocked:
            return False
        if not self.unfinished:
            return True
        if event.kind == "tamper" or not self.is_retraced:
            return False
        wanted, found = self.rewriting.claims(), _claims(self.came.new)
        if event.kind == "rename":
            return all(identity not in found for identity in event.claims)
        return all(
            stands_as(path, self.rewriting.obj, self.came.new) and set(wanted.holders(path)) == set(found.holders(path))
            for path in event.fields
        )


def judge(policies: PolicySet, request: Request, phase: Phase, cap: Mode, known: Judgement | None = None) -> Judgement:
    """Judges a request. Raises FieldsError where its managedFields cannot be read.

    `known` is a judgement that the request may be the outcome of: then that is the judgement, and nothing is left to do.
    """
    seen = examine(request)
    if known is not None and _comes_of(seen, known):
        return replace(known, came=request)
    if shows_traces(seen.change) and rewriters(policies, request, cap):
        earlier = _retraced(policies, seen, phase, cap)
        if earlier is not None:
            return replace(earlier, came=request)
    return _judged(policies, seen.change, phase, cap)


def rewriters(policies: PolicySet, request: Request, cap: Mode) -> bool:
    """Whether any policy may rewrite this request."""
    return can_rewrite(request) and any(policy.rewrites and in_force(policy, cap) for policy in policies.about(request))


def _judged(policies: PolicySet, change: Change, phase: Phase, cap: Mode) -> Judgement:
    verdict = evaluate(policies, change, phase)
    return Judgement(change.request, change, verdict, rewrite(change, verdict, cap))


def _comes_of(seen: Understood, known: Judgement) -> bool:
    """Whether what is seen, taken back, is the known request: the policies would do the same to it again."""
    return any(
        (earlier := take_back(None)) is not None and earlier.request.new == known.change.request.new
        for take_back in earlier_requests(seen)
    )


def _retraced(policies: PolicySet, seen: Understood, phase: Phase, cap: Mode) -> Judgement | None:
    """The request before our own rewrite, if one is seen in it: all that is undone must be done again by the policies."""
    for take_back in earlier_requests(seen):
        earlier = take_back(None)
        if earlier is None:
            continue
        found = _judged(policies, understand(earlier.request), phase, cap)
        if not earlier.values_gone_again(found.rewriting.obj):
            continue
        again = earlier.done_again(found.rewriting.obj, seen.change.request.new)
        if again == earlier.moved:
            return _as_stored(found, earlier, seen.change.request)
        part = take_back(again) if again else None  # the rest was somebody else's doing
        if part is not None:
            found = _judged(policies, understand(part.request), phase, cap)
            again = part.done_again(found.rewriting.obj, seen.change.request.new)
            if again == part.moved and part.values_gone_again(found.rewriting.obj):
                return _as_stored(found, part, seen.change.request)
    return None


def _claims(obj: Mapping[str, Any]) -> ManagedFields:
    return ManagedFields.parse((obj.get("metadata") or {}).get("managedFields"))


def _as_stored(found: Judgement, earlier: Earlier, came: Request) -> Judgement:
    """What was taken away, and the server has set to its default again since, is not to be taken away once more."""
    obj: Any = found.rewriting.obj
    for path in {path: None for item in earlier.moved.values() for path in item.back.leaves()}:
        value = value_at(came.new, path)
        if value is not ABSENT and value_at(obj, path) is ABSENT:
            obj = with_value(obj, path, value, came.new)
    return replace(found, rewriting=replace(found.rewriting, obj=obj))


def _differ(wanted: Mapping[str, Any], came: Mapping[str, Any]) -> bool:
    """Times and order of claims apart, which a second look at a rewrite need not find again."""
    if same(wanted, came):
        return False
    names = (wanted.keys() | came.keys()) - {"metadata"}
    if any(not _is_same(wanted.get(name), came.get(name)) for name in names):
        return True
    metadata, had = wanted.get("metadata") or {}, came.get("metadata") or {}
    names = (metadata.keys() | had.keys()) - {"managedFields"}
    if any(not _is_same(metadata.get(name), had.get(name)) for name in names):
        return True
    one, other = _claims(wanted), _claims(came)
    return one.keys() != other.keys() or any(
        claim.entry != other[identity].entry and claim.fields != other[identity].fields
        for identity, claim in one.items()
    )


def _is_same(one: object, other: object) -> bool:
    return one is other or same(one, other)
