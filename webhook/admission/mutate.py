"""The mutating call: a request is rewritten until nothing is left to do, and the patch is proved before it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jsonpatch

from webhook.admission.draft import server_order
from webhook.admission.judge import Judgement, judge
from webhook.admission.patching import Operation, applied, operations
from webhook.admission.rewrite import EventKey, in_force, key_of
from webhook.fields import ManagedFields
from webhook.fields.claims import entries_of
from webhook.fields.values import same
from webhook.policy.compiled import Action, Event, Mode
from webhook.policy.policyset import PolicySet

MAX_PASSES = 6
MAX_NAME = 128  # bytes; the server refuses longer managers


class DoubtfulPatch(Exception):
    """A patch that cannot be vouched for, and is not sent. The text names what is wrong, and no values."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What was done to a request, by which events, and the object that comes of it."""

    patch: tuple[Operation, ...]
    obj: Mapping[str, Any]
    events: tuple[Event, ...]


def mutated(policies: PolicySet, first: Judgement, cap: Mode) -> Rewritten | None:
    """The rewrite of a request that was judged; None where nothing is to be done, or a policy in Enforce refuses.

    Raises DoubtfulPatch.
    """
    request = first.came
    events: dict[EventKey, Event] = {}
    judged, obj = first, request.new
    patch: tuple[Operation, ...] = ()
    if judged.rewriting.blocked or refuses(judged, cap):
        return None
    for _ in range(MAX_PASSES):
        if judged.is_retraced and not judged.unfinished:
            break
        proposed = operations(request.new, judged.rewriting.obj)
        if proposed == patch:
            break
        patch = proposed
        events |= {key_of(event): event for event in _done(judged)}
        obj = _applied(request.new, patch, judged.rewriting.obj)
        judged = judge(policies, replace(request, new=obj), "mutate", cap, known=judged)
        if judged.rewriting.blocked or refuses(judged, cap) or _heals(judged):
            raise DoubtfulPatch("what was rewritten would not pass")
    else:
        raise DoubtfulPatch("the policies do not agree: there is always something left to rewrite")
    if not events:
        return None
    _check_claims(obj, request.new, request.old)
    return Rewritten(patch, obj, tuple(events.values()))


def refuses(judged: Judgement, cap: Mode) -> bool:
    """Whether a policy in Enforce denies the request, whatever else is done to it."""
    return any(event.action is Action.DENY and in_force(event.policy, cap) for event in judged.verdict.events)


def _heals(judged: Judgement) -> bool:
    return any(event.kind == "tamper" for event in _done(judged))


def _done(judged: Judgement) -> Iterator[Event]:
    return (event for event in judged.rewriting.done if not (judged.is_retraced and judged.landed(event)))


def _applied(before: Mapping[str, Any], patch: tuple[Operation, ...], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the API server will make of the patch: it must be what is wanted."""
    try:
        found: Mapping[str, Any] = applied(before, patch)
    except (jsonpatch.JsonPatchException, TypeError, ValueError) as error:
        raise DoubtfulPatch(f"the patch does not apply: {type(error).__name__}") from None
    if not same(found, wanted):
        raise DoubtfulPatch("the patch makes another object than the one wanted")
    return found


def _check_claims(obj: Mapping[str, Any], came: Mapping[str, Any], old: Mapping[str, Any] | None) -> None:
    """What the server would accept without a word, and lose claims over later.

    What is there already stays as it is: the server itself stores one identity twice, at some writes of `/scale`.
    """
    entries = entries_of(obj) or []
    if entries in (entries_of(came) or [], entries_of(old) or []):
        return
    if len(ManagedFields.parse(entries)) != len(entries):
        raise DoubtfulPatch("two claims have one identity")
    if any(len(str(entry.get("manager", "")).encode()) > MAX_NAME for entry in entries):
        raise DoubtfulPatch("a manager's name is over 128 bytes")
    if entries != sorted(entries, key=server_order):
        raise DoubtfulPatch("claims are not in the server's order")
