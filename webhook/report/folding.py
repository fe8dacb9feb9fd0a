"""Folding: repeats of one thing become one record. In whatever order records are merged, the outcome is the same.

folded = fold([seen(result, now) for result in decision.results])
"""

from __future__ import annotations

import datetime as dt
import hashlib
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from webhook.report.records import MAX_PATHS, Record

MAX_TEXT = 512
"""Characters of a name; a longer one is cut. The API server's own names are shorter, but for those of users."""

MAX_PATH = 1024
"""Characters of a path; a longer one is cut, and ends with an ellipsis."""

KEY = (
    "policy",
    "rule",
    "event",
    "resource",
    "namespace",
    "name",
    "manager",
    "operation",
    "user",
    "dry_run",
    "outcome",
    "would",
)
"""The fields of a record by which repeats are told."""

ANY = "*"
"""Stands for whatever a coarser record no longer tells apart."""

LEVELS = 3
"""How many coarser kinds of records there are, each telling less apart than the one before."""


class ResultLike(Protocol):
    """One event as admission records it."""

    @property
    def kind(self) -> str: ...
    @property
    def policy(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def would(self) -> str: ...
    @property
    def paths(self) -> Sequence[str]: ...
    @property
    def owner(self) -> str: ...
    @property
    def manager(self) -> str | None: ...
    @property
    def operation(self) -> str | None: ...
    @property
    def user(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def dry_run(self) -> bool: ...


def seen(result: ResultLike, at: dt.datetime) -> Record:
    """One result, once. `at` is in UTC."""
    return Record(
        policy=text(result.policy),
        rule=text(result.rule),
        event=text(str(result.kind)),
        resource=text(result.resource),
        namespace=text(result.namespace),
        name=text(result.name),
        manager=text(result.manager or ""),
        operation=text(result.operation or ""),
        user=text(result.user),
        dry_run=bool(result.dry_run),
        outcome=text(result.outcome),
        mode=text(str(result.mode)),
        would=text(result.would),
        owner=text(result.owner),
        paths=first_paths(text(path, MAX_PATH) for path in result.paths),
        count=1,
        first=at,
        last=at,
        days={f"{at:%Y-%m-%d}": 1},
    )


def text(given: str, longest: int = MAX_TEXT) -> str:
    """Bounded, and such as can be stored: half a surrogate pair cannot.

    >>> text("kubectl"), text("a\\ud800b"), text("a" * 9, 4)
    ('kubectl', 'a?b', 'aaa…')
    """
    given = str(given)
    if not given.isascii():
        given = given.encode("utf-8", "replace").decode()
    return given if len(given) <= longest else given[: longest - 1] + "…"


def key_of(record: Record) -> str:
    """The same for all repeats, in every journal; hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for name in KEY:
        part = str(getattr(record, name)).encode()
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.hexdigest()


def merged(one: Record, other: Record) -> Record:
    """Both as one. What is not told of all is told of the last."""
    last = max(one, other, key=lambda record: (record.last, record.mode, record.owner))
    days = dict(one.days)
    for day, count in other.days.items():
        days[day] = days.get(day, 0) + count
    return replace(
        last,
        paths=one.paths if one.paths == other.paths else first_paths((*one.paths, *other.paths)),
        count=one.count + other.count,
        first=min(one.first, other.first),
        days=days,
    )


def fold(records: Iterable[Record]) -> dict[str, Record]:
    """By key."""
    folded: dict[str, Record] = {}
    for record in records:
        key = key_of(record)
        known = folded.get(key)
        folded[key] = record if known is None else merged(known, record)
    return folded


def coarser(record: Record, level: int) -> Record:
    """The same, telling less apart: from level 1 on no object and no writer, from 2 no namespace, from 3 no resource."""
    less = replace(record, name=ANY, manager=ANY, operation=ANY, user=ANY)
    if level >= 2:
        less = replace(less, namespace=ANY)
    return replace(less, resource=ANY) if level >= 3 else less


def is_folded(record: Record) -> bool:
    """Whether it no longer tells objects and writers apart. No object can be called `*`, but a manager can."""
    return record.name == ANY


def first_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Each once, sorted; where there are too many the first, so that the order of merging does not matter."""
    return tuple(heapq.nsmallest(MAX_PATHS, set(paths)))
