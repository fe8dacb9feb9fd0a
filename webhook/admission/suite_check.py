"""What a decision lacks of what a case expects, in sentences. They hold paths and names, and no values of fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonpatch

from webhook.admission.decision import Decision, Result
from webhook.admission.messages import listed
from webhook.admission.suite_model import RECORD, Expectation, ExpectedClaim, ExpectedEvent, ExpectedValue
from webhook.fields import ABSENT, FieldPath, FieldSet, Identity, ManagedFields, Pattern, value_at
from webhook.fields.fieldset import EMPTY
from webhook.fields.values import same

_MANAGED_FIELDS = FieldPath.parse(".metadata.managedFields")


def failures_of(expect: Expectation, decision: Decision, written: Mapping[str, Any]) -> Iterator[str]:
    """What was expected and did not come. `written` is the request's object, as the patch finds it."""
    if expect.allowed is not None and expect.allowed != decision.allowed:
        why = f": {decision.message}" if decision.message else ""
        yield f"expected {_answer(allowed=expect.allowed)}, was {_answer(allowed=decision.allowed)}{why}"
    if expect.events is not None:
        yield from _of_events(expect.events, decision.results)
    for part in expect.message:
        if part not in decision.message:
            yield f"the message does not say {part!r}; it says: {decision.message or 'nothing'}"
    for part in expect.warnings:
        if not any(part in warning for warning in decision.warnings):
            yield f"no warning says {part!r}; they say: {' / '.join(decision.warnings) or 'nothing'}"
    if expect.patched is not None and expect.patched != bool(decision.patch):
        yield f"expected a patch; {_patch(decision)}" if expect.patched else f"expected no patch; {_patch(decision)}"
    if expect.values or expect.claims:
        yield from _of_object(expect, decision, written)


def _of_object(expect: Expectation, decision: Decision, written: Mapping[str, Any]) -> Iterator[str]:
    """What is expected of the object after the patch."""
    try:
        obj = jsonpatch.apply_patch(written, list(decision.patch)) if decision.patch else written
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        yield f"the patch does not fit the object ({type(error).__name__}); {_patch(decision)}"
        return
    for value in expect.values:
        yield from _of_value(value, obj)
    entries = value_at(obj, _MANAGED_FIELDS)
    claims = ManagedFields.parse(entries if entries is not ABSENT else None)
    for claim in expect.claims:
        yield from _of_claim(claim, claims)


def _of_value(expected: ExpectedValue, obj: Mapping[str, Any]) -> Iterator[str]:
    found = value_at(obj, expected.path)
    if found is ABSENT:
        found = None
    if expected.value is None and found is not None:
        yield f"expected nothing at {expected.path}; a value is there"
    elif expected.value is not None and found is None:
        yield f"expected a value at {expected.path}; nothing is there"
    elif not same(found, expected.value):
        yield f"another value than expected is at {expected.path}"


def _of_claim(expected: ExpectedClaim, claims: ManagedFields) -> Iterator[str]:
    meant = [claim for claim in claims.claims() if expected.whose.matches_claim(claim.identity)]
    held = EMPTY
    for claim in meant:
        held = held | claim.fields
    if not expected.exists:
        for claim in meant:
            yield f"expected no claim of {expected}; {claim.identity} claims {_listed(claim.fields.leaves())}"
        return
    if not meant:
        yield f"expected a claim of {expected}; there are {_names(claims) or 'no claims'}"
        return
    for pattern in expected.holds:
        if not pattern.select(held):
            yield f"expected {expected} to claim {pattern}; it does not"
    for pattern in expected.lacks:
        if found := pattern.select(held):
            yield f"expected {expected} not to claim {pattern}; it claims {_listed(found.leaves())}"
    if expected.fields is not None:
        yield from _of_fields(expected, expected.fields, held.leaves())


def _of_fields(expected: ExpectedClaim, patterns: tuple[Pattern, ...], leaves: FieldSet) -> Iterator[str]:
    """The patterns must find something each, and everything together."""
    rest = leaves
    for pattern in patterns:
        found = pattern.select(leaves)
        rest = rest - found
        if not found:
            yield f"expected {expected} to claim {pattern}; it does not"
    if rest:
        yield f"{expected} claims {_listed(rest)} as well"


def _listed(paths: FieldSet) -> str:
    return listed(tuple(map(str, paths)))


def _names(identities: Iterable[Identity]) -> str:
    return ", ".join(dict.fromkeys(map(str, identities)))


def _patch(decision: Decision) -> str:
    if not decision.patch:
        return "there is none"
    return f"it does {listed(tuple(' '.join((step['op'], step['path'])) for step in decision.patch))}"


def _of_events(expected: tuple[ExpectedEvent, ...], results: tuple[Result, ...]) -> Iterator[str]:
    """Every event is expected exactly once. The fussiest expectation chooses first, so that none takes another's."""
    left = list(results)
    for event in sorted(expected, key=_fussiness, reverse=True):
        match = next((result for result in left if _fits(event, result)), None)
        if match is None:
            yield f"expected {event}; it did not come"
        else:
            left.remove(match)
    for result in left:
        yield f"came unexpected: {_told(result)}"


def _fussiness(event: ExpectedEvent) -> int:
    parts = (event.kind, event.policy, event.rule, event.paths, event.action, event.outcome)
    return sum(part is not None for part in parts)


def _fits(event: ExpectedEvent, result: Result) -> bool:
    return (
        event.kind in (None, result.kind)
        and event.policy in (None, result.policy)
        and event.rule in (None, result.rule)
        and event.action in (None, _action(result))
        and event.outcome in (None, result.outcome)
        and (event.paths is None or event.paths == frozenset(result.paths))
    )


def _action(result: Result) -> str:
    return result.action.value if result.action is not None else RECORD


def _told(result: Result) -> str:
    paths = frozenset(result.paths) or None
    return str(ExpectedEvent(result.kind, result.policy, result.rule, paths, _action(result), result.outcome))


def _answer(*, allowed: bool) -> str:
    return "allowed" if allowed else "denied"
