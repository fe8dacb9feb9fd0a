"""judge: what a request did, what the policies find, and what they make of it. Before modes soften anything but rewrites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from webhook.admission.retrace import Earlier, Moved, earlier_requests, shows_traces
from webhook.admission.rewrite import Rewriting, can_rewrite, in_force, rewrite
from webhook.admission.understand import Understood, examine, understand
from webhook.fields import Change, Identity, ManagedFields, Request
from webhook.fields.lookup import Values
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
        wanted, found = ManagedFields.of(self.rewriting.obj), ManagedFields.of(self.came.new)
        if event.kind == "rename":
            return all(identity not in found for identity in event.claims)
        made, stored = Values(self.rewriting.obj), Values(self.came.new)
        return all(
            same(made.at(path), stored.at(path)) and set(wanted.holders(path)) == set(found.holders(path))
            for path in event.fields
        )


def judge(policies: PolicySet, request: Request, phase: Phase, cap: Mode, known: Judgement | None = None) -> Judgement:
    """Judges a request. Raises FieldsError where its managedFields cannot be read.

    `known` is a judgement that the request may be the outcome of: then that is the judgement, and nothing is left to do.
    """
    seen = examine(request, known.change if known is not None else None)
    if known is not None and _comes_of(seen, known):
        return replace(known, came=request)
    if shows_traces(seen) and rewriters(policies, request, cap):
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
    came, parts = seen.change.request, []
    for take_back in earlier_requests(seen):
        earlier = take_back(None)
        if earlier is None:
            continue
        found, again = _again(policies, earlier, came, phase, cap)
        if again == earlier.moved:
            return found
        if again:
            parts.append((take_back, again))
    for take_back, proven in parts:  # the rest was somebody else's doing
        earlier = take_back(proven)
        if earlier is not None:
            found, again = _again(policies, earlier, came, phase, cap)
            if again == earlier.moved:
                return found
    return None


def _again(
    policies: PolicySet, earlier: Earlier, came: Request, phase: Phase, cap: Mode
) -> tuple[Judgement, dict[Identity, Moved]]:
    """The earlier request judged, and what of it the policies do again as it came."""
    found = _judged(policies, understand(earlier.request), phase, cap)
    if not earlier.values_gone_again(found.rewriting.obj):
        return found, {}
    obj = earlier.as_stored(found.rewriting.obj, came.new)
    found = replace(found, rewriting=replace(found.rewriting, obj=obj))
    return found, earlier.done_again(obj, came.new)


def _differ(wanted: Mapping[str, Any], came: Mapping[str, Any]) -> bool:
    """Times and order of claims apart, which a second look at a rewrite need not find again."""
    if same(wanted, came):
        return False
    names = (wanted.keys() | came.keys()) - {"metadata"}
    if any(not same(wanted.get(name), came.get(name)) for name in names):
        return True
    metadata, had = wanted.get("metadata") or {}, came.get("metadata") or {}
    names = (metadata.keys() | had.keys()) - {"managedFields"}
    if any(not same(metadata.get(name), had.get(name)) for name in names):
        return True
    one, other = ManagedFields.of(wanted), ManagedFields.of(came)
    return one.keys() != other.keys() or any(
        claim.entry != other[identity].entry and claim.fields != other[identity].fields
        for identity, claim in one.items()
    )
