"""What a policy suite says: cases, and what each of them expects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from webhook.admission.decision import Outcome
from webhook.fields import FieldPath, Pattern
from webhook.policy.compiled import EventKind, ManagerMatcher, Mode
from webhook.policy.evaluate import Phase
from webhook.policy.problems import Place

Operation: TypeAlias = Literal["Apply", "Update"]
SUBRESOURCES = ("status", "scale", "resize", "ephemeralcontainers", "finalize")
RECORD = "Record"
"""How a suite names the action of an event that is only recorded."""


@dataclass(frozen=True, slots=True)
class StandingClaim:
    """A claim on the old object, in short. `fields` None: everything that the object has."""

    manager: str
    operation: Operation
    subresource: str
    fields: tuple[Pattern, ...] | None


@dataclass(frozen=True, slots=True)
class Client:
    """Who writes, and how."""

    user: str
    groups: tuple[str, ...]
    manager: str
    operation: Operation
    subresource: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Write:
    """One write in the user's words: the object before and after it, and the client. `old` is None for a creation."""

    old: dict[str, Any] | None
    new: dict[str, Any]
    claims: tuple[StandingClaim, ...]
    applied: tuple[Pattern, ...] | None  # what an apply applied; None: everything that the new object has
    client: Client
    resource: str | None  # the plural, where it is not the usual one of the kind


@dataclass(frozen=True, slots=True)
class Captured:
    """An AdmissionReview as an API server sent it."""

    review: Any


@dataclass(frozen=True, slots=True)
class ExpectedEvent:
    """What is known of an event; None matches anything."""

    kind: EventKind | None
    policy: str | None
    rule: str | None
    paths: frozenset[str] | None
    action: str | None  # an action's name, or Record
    outcome: Outcome | None = None

    def __str__(self) -> str:
        named = "/".join(part for part in (self.policy, self.rule) if part)
        done = ", ".join(part for part in (self.action, self.outcome) if part)
        parts = [self.kind or "any event", f"of {named}" if named else "", f"({done})" if done else ""]
        if self.paths is not None:
            parts.append("on " + (", ".join(sorted(self.paths)) or "no path"))
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """What stands at a path after the patch; None: nothing."""

    path: FieldPath
    value: Any


@dataclass(frozen=True, slots=True)
class ExpectedClaim:
    """What the claims that a matcher means hold together after the patch. `exists` False: there is none."""

    whose: ManagerMatcher
    exists: bool
    holds: tuple[Pattern, ...]
    lacks: tuple[Pattern, ...]
    fields: tuple[Pattern, ...] | None  # all that they hold; None: whatever it is

    def __str__(self) -> str:
        about = ", ".join(part for part in (self.whose.operation, self.whose.subresource) if part)
        return f"{self.whose.manager.text} ({about})" if about else self.whose.manager.text


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a case expects; None and empty tuples expect nothing."""

    allowed: bool | None
    events: tuple[ExpectedEvent, ...] | None  # every event, in any order
    message: tuple[str, ...]
    warnings: tuple[str, ...]
    patched: bool | None
    values: tuple[ExpectedValue, ...]
    claims: tuple[ExpectedClaim, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One write and its expected decision."""

    name: str
    place: Place
    phase: Phase
    what: Captured | Write
    expect: Expectation


@dataclass(frozen=True, slots=True)
class Suite:
    """One document of kind Suite. `mode` None: every policy in its own."""

    file: Path
    policies: tuple[Path, ...]
    policies_place: Place
    mode: Mode | None
    cases: tuple[Case, ...]
