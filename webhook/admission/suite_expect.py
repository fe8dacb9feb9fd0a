"""What a case expects: YAML to an Expectation, with every problem and its place."""

from __future__ import annotations

from typing import cast, get_args

from webhook.admission.decision import Outcome
from webhook.admission.suite_model import (
    RECORD,
    SUBRESOURCES,
    Expectation,
    ExpectedClaim,
    ExpectedEvent,
    ExpectedValue,
    Operation,
)
from webhook.admission.suite_nodes import Fields, data
from webhook.policy.compiled import Action, EventKind, Glob, ManagerMatcher
from webhook.policy.evaluate import Phase
from webhook.policy.source import Node

_EXPECT = ("allowed", "events", "noEvents", "message", "warnings", "patched", "values", "claims")
_EVENT = ("kind", "policy", "rule", "paths", "action", "outcome")
_CLAIM = ("manager", "operation", "subresource", "exists", "holds", "lacks", "fields")


def read_expectation(case: Fields, phase: Phase) -> Expectation | None:
    """The `expect` of a case; what is wrong with it is reported."""
    expect = case.fields("expect", _EXPECT)
    if expect is None:
        return None
    found = Expectation(
        allowed=expect.flag("allowed"),
        events=_events(expect),
        message=expect.texts("message") or (),
        warnings=expect.texts("warnings") or (),
        patched=expect.flag("patched"),
        values=tuple(ExpectedValue(path, data(node)) for path, node in expect.by_path("values")),
        claims=_claims(expect),
    )
    _check(expect, found, phase)
    if not expect.table.entries:
        expect.notes.report(
            "expects-nothing", case.place("expect"), "the case expects nothing", f"add one of {', '.join(_EXPECT)}"
        )
    return found


def _check(expect: Fields, found: Expectation, phase: Phase) -> None:
    """Reports expectations that no decision fulfils, or every decision does."""
    report = expect.notes.report
    if found.message and found.allowed:
        place = expect.place("message")
        report("case-shape", place, "only a denial has a message", "expect warnings, or allowed: false")
    if found.patched is not None and phase == "validate":
        report("case-shape", expect.place("patched"), "the validating call never patches", "add phase: mutate")
    elif found.patched and found.allowed is False:
        report("case-shape", expect.place("patched"), "a denial carries no patch", "keep one of the two")


def _events(expect: Fields) -> tuple[ExpectedEvent, ...] | None:
    none = expect.flag("noEvents") if "noEvents" in expect else None
    if none is False:
        expect.notes.report(
            "wrong-value", expect.place("noEvents"), "true is expected here", "list the events, or remove the key"
        )
    if "events" not in expect:
        return () if none else None
    if "noEvents" in expect:
        expect.notes.report("case-shape", expect.place("noEvents"), "noEvents beside events", "keep one of the two")
    return tuple(one for node in expect.items("events") or () if (one := _event(expect, node)) is not None)


def _event(expect: Fields, node: Node) -> ExpectedEvent | None:
    event = expect.fields_of(node, _EVENT)
    if event is None or not event.require(("kind",), node.place):
        return None
    paths = event.paths("paths")
    return ExpectedEvent(
        kind=cast("EventKind | None", event.choice("kind", get_args(EventKind))),
        policy=event.text("policy"),
        rule=event.text("rule"),
        paths=frozenset(map(str, paths)) if paths is not None else None,
        action=event.choice("action", (*Action, RECORD)),
        outcome=cast("Outcome | None", event.choice("outcome", get_args(Outcome))),
    )


def _claims(expect: Fields) -> tuple[ExpectedClaim, ...]:
    items = (expect.items("claims") or ()) if "claims" in expect else ()
    return tuple(one for node in items if (one := _claim(expect, node)) is not None)


def _claim(expect: Fields, node: Node) -> ExpectedClaim | None:
    claim = expect.fields_of(node, _CLAIM)
    if claim is None or not claim.require(("manager",), node.place):
        return None
    manager, operation = claim.text("manager"), claim.choice("operation", get_args(Operation))
    subresource, exists = claim.choice("subresource", SUBRESOURCES), claim.flag("exists") is not False
    holds, lacks, fields = claim.patterns("holds") or (), claim.patterns("lacks") or (), claim.patterns("fields")
    for key in ("holds", "lacks", "fields"):
        if key in claim and not exists:
            claim.notes.report("case-shape", claim.place(key), f"{key} of a claim that does not exist", "remove it")
    if manager is None:
        return None
    whose = ManagerMatcher(Glob.compile(manager), cast("Operation | None", operation), subresource)
    return ExpectedClaim(whose, exists, holds, lacks, fields)
