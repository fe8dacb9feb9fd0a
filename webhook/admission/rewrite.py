"""rewrite: what the policies in force make of a request. The order of actions stands here, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.admission.actions import CannotRewrite, heal, prune, reassign, release, rename, restore
from webhook.admission.draft import Draft
from webhook.fields import Change, FieldSet, Identity, Request
from webhook.fields.editing import Ambiguous
from webhook.fields.fieldset import EMPTY
from webhook.policy.compiled import Action, Event, Mode, OwnershipRule, Policy, RenameRule, Verdict
from webhook.policy.rules_ownership import REPLICAS

_ORDER = (Action.RESTORE, Action.PRUNE, Action.REASSIGN, Action.RELEASE, Action.RENAME)


def can_rewrite(request: Request) -> bool:
    """Rewrites are of the main resource and of `/scale`: what else a body brings to a subresource is thrown away."""
    return request.subresource in ("", "scale")


def in_force(policy: Policy, cap: Mode) -> bool:
    return policy.mode.capped(cap) is Mode.ENFORCE


def asks_rewrite(event: Event, cap: Mode) -> bool:
    """Whether a policy in Enforce wants more than a refusal for an event."""
    return event.action is not None and event.action.rewrites and in_force(event.policy, cap)


EventKey = tuple[str, str, str, str, tuple[str, ...]]


def key_of(event: Event) -> EventKey:
    """What tells an event from the others of one request."""
    return event.kind, event.policy.name, event.rule, event.owner, event.paths


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The object to store instead, whose doing it is, and why what was asked for could not be done."""

    obj: Mapping[str, Any]
    done: tuple[Event, ...] = ()
    blocked: Mapping[EventKey, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return bool(self.done)


def rewrite(change: Change, verdict: Verdict, cap: Mode) -> Rewriting:
    """The request's object with all done to it that policies in Enforce ask for.

    By kind, then by policy, rule and path; the first action on a path wins. What cannot be done is said, and then nothing is.
    """
    if not can_rewrite(change.request):
        return Rewriting(change.request.new)
    events = sorted((event for event in verdict.events if asks_rewrite(event, cap)), key=_order)
    if not events:
        return Rewriting(change.request.new)
    draft, decided, done = Draft(change.request, change.old_claims, change.new_claims), EMPTY, []
    blocked: dict[EventKey, str] = {}
    released: dict[Identity, FieldSet] = {}  # by leftover: several may hold one path
    for event in events:
        if draft.wholly_restored:  # whatever else was asked for came with what is no more
            done += [event] if event.action is Action.RESTORE else []
            continue
        whole = left = _paths(change, event)
        left = left.recursive_difference(decided) if decided else left
        if event.action is Action.RELEASE:
            left = left - released.get(event.claims[0], EMPTY)
        if not left and event.fields:
            continue
        try:
            paths = _done(draft, change, event._replace(fields=left))
            if event.action is Action.RELEASE:
                released[event.claims[0]] = released.get(event.claims[0], EMPTY) | paths
            else:
                decided = decided | paths
            done.append(_told(event, left, whole))
        except CannotRewrite as why:
            blocked[key_of(event)] = str(why)
        except Ambiguous as why:
            blocked[key_of(event)] = why.message
    if blocked or not draft.touched:
        return Rewriting(change.request.new, blocked=blocked)
    return Rewriting(draft.rewritten(), tuple(done))


def _told(event: Event, left: FieldSet, whole: FieldSet) -> Event:
    """The event with those of its paths that were left for it."""
    return event if left == whole else event._replace(fields=left, paths=tuple(map(str, left.paths)))


def _order(event: Event) -> tuple[int, str, str, tuple[str, ...], tuple[Identity, ...]]:
    place = -1 if event.kind == "tamper" else _ORDER.index(event.action) if event.action is not None else 0
    return place, event.policy.name, event.rule, event.paths, event.claims


def _paths(change: Change, event: Event) -> FieldSet:
    """Where an event's paths stand in the object at hand: a Scale has its replicas in one place."""
    return FieldSet.from_paths([REPLICAS]) if change.request.is_scale and event.fields else event.fields


def _done(draft: Draft, change: Change, event: Event) -> FieldSet:
    """Does it, and says which paths are decided by it."""
    match event.action, event.found_by():
        case Action.RESTORE, _ if event.kind == "tamper":
            heal(draft)
            return EMPTY
        case Action.RESTORE, _:
            return restore(draft, change, event.fields)
        case Action.PRUNE, OwnershipRule() as rule:
            return prune(draft, change, event, rule)
        case Action.REASSIGN, _:
            return reassign(draft, change, event)
        case Action.RELEASE, OwnershipRule() as rule:
            return release(draft, event, rule)
        case Action.RENAME, RenameRule() as rule:
            return rename(draft, event, rule)
    raise AssertionError(f"no such action: {event.action}")
