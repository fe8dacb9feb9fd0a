"""If enforced: what each writer would meet, policy by policy.

A record says what Enforce would do (`would`), or does: refuse the write, put it right, or nothing but record it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from webhook.report.records import Record

Effect = Literal["fails", "rewritten", "recorded"]
EFFECTS: tuple[Effect, ...] = ("fails", "rewritten", "recorded")
"""What Enforce makes of a write, the worst first."""
EXAMPLES = 3
MAX_PATHS = 200
NEVER_YET = dt.datetime.max.replace(tzinfo=dt.UTC)
NOT_SINCE = dt.datetime.min.replace(tzinfo=dt.UTC)
"""When what was never seen was first and last seen: any other moment is earlier, and later."""


def effect_of(record: Record) -> Effect:
    if record.would == "deny":
        return "fails"
    return "recorded" if record.would in ("record", "") else "rewritten"


@dataclass(slots=True)
class Seen:
    """How often something was seen, and when."""

    writes: int = 0
    dry_runs: int = 0
    first: dt.datetime = NEVER_YET
    last: dt.datetime = NOT_SINCE

    def add(self, record: Record) -> None:
        if record.dry_run:
            self.dry_runs += record.count
        else:
            self.writes += record.count
        self.first, self.last = min(self.first, record.first), max(self.last, record.last)

    @property
    def often(self) -> tuple[int, int]:
        return self.writes, self.dry_runs


@dataclass(slots=True)
class Writer:
    """What one writer would meet in one policy: a user under a manager's name, with one effect."""

    policy: str
    user: str
    manager: str
    operation: str
    effect: Effect
    seen: Seen = field(default_factory=Seen)
    already: int = 0  # writes that were refused or rewritten when they came
    wants: set[str] = field(default_factory=set)  # deny, restore, ...
    rules: set[str] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    resources: set[str] = field(default_factory=set)
    namespaces: set[str] = field(default_factory=set)
    objects: set[tuple[str, str, str]] = field(default_factory=set)

    def add(self, record: Record) -> None:
        self.seen.add(record)
        if record.outcome != "recorded" and not record.dry_run:
            self.already += record.count
        self.wants.add(record.would or "record")
        self.rules.add(record.rule)
        self.events.add(record.event)
        self.owners.update({record.owner} - {""})
        self.paths.update(record.paths[: MAX_PATHS - len(self.paths)])
        self.resources.add(record.resource)
        self.namespaces.add(record.namespace)
        self.objects.add((record.resource, record.namespace, record.name))

    def examples(self) -> list[str]:
        """Some of the objects: `deployments.apps team-a/web`."""
        return [
            f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"
            for resource, namespace, name in sorted(self.objects)[:EXAMPLES]
        ]


@dataclass(slots=True)
class PolicyView:
    """One policy, and all who would meet it."""

    policy: str
    mode: str = ""
    seen: Seen = field(default_factory=Seen)
    effects: dict[Effect, int] = field(default_factory=lambda: dict.fromkeys(EFFECTS, 0))  # writes
    writers: list[Writer] = field(default_factory=list)

    @property
    def who(self) -> set[tuple[str, str, str]]:
        """Each writer once, whatever the effects."""
        return {(one.user, one.manager, one.operation) for one in self.writers}

    @property
    def is_harmless(self) -> bool:
        """Whether nothing that was seen would fail or be rewritten, dry runs included."""
        return all(writer.effect == "recorded" for writer in self.writers)


def enforced(records: Iterable[Record]) -> list[PolicyView]:
    """By policy; those with most writes that would fail first. In each, writers likewise."""
    policies: dict[str, PolicyView] = {}
    writers: dict[tuple[str, ...], Writer] = {}
    for record in records:
        effect = effect_of(record)
        view = policies.setdefault(record.policy, PolicyView(record.policy))
        if not view.mode or record.last >= view.seen.last:
            view.mode = record.mode
        view.seen.add(record)
        if not record.dry_run:
            view.effects[effect] += record.count
        key = (record.policy, record.user, record.manager, record.operation, effect)
        writer = writers.get(key)
        if writer is None:
            writer = writers[key] = Writer(record.policy, record.user, record.manager, record.operation, effect)
            view.writers.append(writer)
        writer.add(record)
    for view in policies.values():
        view.writers.sort(key=_writer_order)
    return sorted(policies.values(), key=_policy_order)


def _writer_order(writer: Writer) -> tuple[object, ...]:
    writes, dry_runs = writer.seen.often
    return EFFECTS.index(writer.effect), -writes, -dry_runs, writer.user, writer.manager, writer.operation


def _policy_order(view: PolicyView) -> tuple[object, ...]:
    return *(-view.effects[effect] for effect in EFFECTS), view.policy
