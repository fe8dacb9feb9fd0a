"""What is asked of a source of records, and what a source is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from webhook.policy.compiled import Glob
from webhook.report.records import MAX_PATHS, Record

MORE = "…"
"""Among a record's paths: there were more than the source held."""


class Unusable(Exception):
    """A source cannot be read: `str()` says which, and why."""


class Unreached(Unusable):
    """A source is somewhere else, and was not reached."""


class Source(Protocol):
    """What records are read from, once."""

    @property
    def name(self) -> str: ...

    def records(self, since: dt.datetime | None) -> Iterator[Record]:
        """Records last seen at `since` or later, in any order, repeats included. Raises Unusable."""

    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader should know, once all has been read: such as that lines could not be."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which records are wanted. An empty namespace is cluster scope."""

    since: dt.datetime | None = None
    namespaces: tuple[Glob, ...] = ()
    policies: tuple[Glob, ...] = ()
    without: tuple[Glob, ...] = ()  # policies that are left out

    def of(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            part = self.part(record)
            if part is not None:
                yield part

    def part(self, record: Record) -> Record | None:
        """What of a record is wanted. Of one that began before `since`, its days tell what came after: whole days."""
        if self.namespaces and not any(glob.matches(record.namespace) for glob in self.namespaces):
            return None
        if self.policies and not any(glob.matches(record.policy) for glob in self.policies):
            return None
        if any(glob.matches(record.policy) for glob in self.without):
            return None
        if self.since is None or record.first >= self.since:
            return record
        if record.last < self.since:
            return None
        first_day = f"{self.since.astimezone(dt.UTC):%Y-%m-%d}"
        days = {day: count for day, count in record.days.items() if day >= first_day}
        return replace(record, days=days, count=sum(days.values()) or record.count, first=self.since)


@dataclass(slots=True)
class Reading:
    """What is asked, while records are read. In the end it knows what of it nothing fitted: as a misspelt name does."""

    asked: Asked
    policies: set[str] = field(default_factory=set)  # of all records that were read
    namespaces: set[str] = field(default_factory=set)

    @property
    def since(self) -> dt.datetime | None:
        return self.asked.since

    def of(self, records: Iterable[Record]) -> Iterator[Record]:
        return self.asked.of(map(self._seen, records))

    def _seen(self, record: Record) -> Record:
        self.policies.add(record.policy)
        self.namespaces.add(record.namespace)
        return record

    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader should know, once all has been read."""
        if not self.policies:
            return ("nothing is recorded" + (" since then" if self.since else ""),)
        return (
            *(
                f"nothing that is recorded is of a policy {text!r}"
                for text in _unmet((*self.asked.policies, *self.asked.without), self.policies)
            ),
            *(f"nothing that is recorded is in {where}" for where in self._nowhere()),
        )

    def _nowhere(self) -> Iterator[str]:
        for text in _unmet(self.asked.namespaces, self.namespaces):
            yield f"a namespace {text!r}" if text else "cluster scope"


def _unmet(wanted: Iterable[Glob], names: set[str]) -> list[str]:
    return [glob.text for glob in wanted if not any(map(glob.matches, names))]


def is_cut(record: Record) -> bool:
    """Whether a record may have been about more paths than it holds."""
    return len(record.paths) >= MAX_PATHS or any(path.endswith(MORE) for path in record.paths)


def is_exact(record: Record) -> bool:
    """Whether each sighting was about each path that the record holds. One that `since` has cut began before its count."""
    return len(record.paths) <= 1 or (record.count == 1 and record.first == record.last)
