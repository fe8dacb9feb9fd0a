"""Which rows stand in which report: there is one for each namespace, and further ones when it is full. Pure.

A row stays where it is, however many come after it. Only when its report has grown too large do rows of ours move on.
Two journals may put the same row into different reports: who reads adds them up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from webhook.cluster.report_objects import Stored, size_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one report. What etcd takes by default is 1.5 MiB."""

    rows: int = 500
    add: int = 400 << 10  # bytes up to which rows are added
    most: int = 900 << 10  # bytes from which they move on


@dataclass(slots=True)
class Part:
    """What is known of one report, without its rows."""

    keys: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    size: int = 0
    sealed: str = ""  # up to which day our own journal is sealed there
    seen: str = ""  # when our own journal last wrote there
    ours: bool = True  # not somebody else's report of that name

    @classmethod
    def of(cls, stored: Stored, journal: str) -> Part:
        own = {key for key, row in stored.rows.items() if journal in row.counts}
        size = sum(map(size_of, stored.rows.values())) + sum(len(str(other)) for other in stored.others)
        return cls(
            set(stored.rows), own, size, stored.sealed.get(journal, ""), stored.seen.get(journal, "") if own else ""
        )

    def has_room(self, bounds: Bounds, size: int = 0) -> bool:
        return self.ours and (not self.keys or (len(self.keys) < bounds.rows and self.size + size <= bounds.add))


class Shelf:
    """The reports of one namespace."""

    def __init__(self, name: str, parts: Mapping[str, Part], bounds: Bounds) -> None:
        self._name, self.parts, self._bounds = name, dict(parts), bounds

    def place(self, rows: Iterable[tuple[str, int]]) -> dict[str, set[str]]:
        """By name of the report, the keys that go there; `rows` are keys and sizes."""
        own: dict[str, str] = {}
        known: dict[str, str] = {}
        for name in reversed(self.names()):  # so that the first one counts
            part = self.parts[name]
            own.update(dict.fromkeys(part.own, name))
            if part.has_room(self._bounds):
                known.update(dict.fromkeys(part.keys, name))
        placed: dict[str, set[str]] = {}
        for key, size in rows:
            name = own.get(key) or known.get(key) or self._with_room(size)
            part = self.parts[name]
            if key not in part.keys:
                part.keys.add(key)
                part.size += size
            placed.setdefault(name, set()).add(key)
        return placed

    def names(self) -> list[str]:
        """In the order in which they are filled."""
        return sorted(self.parts, key=lambda name: (len(name), name))

    def _with_room(self, size: int) -> str:
        for name in self.names():
            if self.parts[name].has_room(self._bounds, size):
                return name
        number = 1
        while (name := name_of(self._name, number)) in self.parts:
            number += 1
        self.parts[name] = Part()
        return name


def name_of(name: str, number: int) -> str:
    """
    >>> name_of("fieldwarden", 1), name_of("fieldwarden", 2)
    ('fieldwarden', 'fieldwarden-2')
    """
    return name if number == 1 else f"{name}-{number}"


def is_named(found: str, name: str) -> bool:
    """Whether a report is one of those of this name.

    >>> is_named("fieldwarden-12", "fieldwarden"), is_named("fieldwarden-b", "fieldwarden")
    (True, False)
    """
    return found == name or re.fullmatch(rf"{re.escape(name)}-[1-9][0-9]*", found) is not None


def too_many(stored: Stored, journal: str, bounds: Bounds) -> list[str]:
    """The rows of ours that must move on so that a report is not too large: those that came last."""
    size = sum(map(size_of, stored.rows.values())) + sum(len(str(other)) for other in stored.others)
    leaving: list[str] = []
    if size <= bounds.most:
        return leaving
    mine = [(row.record.first, key, row) for key, row in stored.rows.items() if journal in row.counts]
    for _, key, row in sorted(mine, key=lambda each: each[:2], reverse=True):
        if size <= bounds.most or (len(leaving) + 1 == len(stored.rows) and not stored.others):
            break
        leaving.append(key)
        size -= size_of(row)
    return leaving
