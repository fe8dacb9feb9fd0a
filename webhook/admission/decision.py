"""What is answered, and what is recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from webhook.policy.compiled import Action, EventKind, Mode

Would = Literal["deny", "restore", "reassign", "release", "prune", "rename", "record"]

Outcome = Literal["refused", "rewritten", "recorded"]
"""What came of an event: it refused the request, it was put right, or neither."""


class Ownership(NamedTuple):
    """Whose claims hold a path, as the request would have left it and after the rewrite. `path` "": the whole claim."""

    path: str
    before: tuple[str, ...]  # as `kustomize-controller (Apply)`
    after: tuple[str, ...]


class Result(NamedTuple):
    """One event as it is recorded. Names, users and paths; never a value of a field."""

    kind: EventKind
    policy: str
    rule: str
    mode: Mode  # the policy's, capped by the server's
    action: Action | None
    outcome: Outcome
    would: Would  # what Enforce does, or would have done
    paths: tuple[str, ...]
    owner: str
    manager: str | None
    operation: str | None  # of the manager's claim: Apply or Update
    user: str
    resource: str
    namespace: str
    name: str
    dry_run: bool
    message: str
    ownership: tuple[Ownership, ...] = ()  # where it was rewritten

    def as_dict(self) -> dict[str, Any]:
        """For JSON: enums as texts, tuples as lists."""
        told = self._asdict()
        told["ownership"] = [
            {"path": item.path, "before": list(item.before), "after": list(item.after)} for item in self.ownership
        ]
        told["mode"] = self.mode.value
        told["action"] = self.action.value if self.action is not None else None
        told["paths"] = list(self.paths)
        return told


class Cause(NamedTuple):
    """One entry of a denial's `details.causes`."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict after modes: the answer, and all that is to be told and recorded."""

    allowed: bool = True
    message: str = ""
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] = field(default_factory=dict)
    results: tuple[Result, ...] = ()
    policies: tuple[str, ...] = ()  # of the events
    manager: str | None = None
    code: int = 403  # where not allowed
    patch: tuple[dict[str, Any], ...] = ()  # JSON Patch operations on the request's object
