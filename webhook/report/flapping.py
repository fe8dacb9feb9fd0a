"""Fields that flap: two managers take them from each other again and again. Told only where records prove it.

A record counts all its sightings together, and its paths are those of any of them. So it proves a write of a field, when
it was and from whom the field was taken, only where every sighting was about that field: where it has no other path, or
was seen once. Records of several paths, seen several times, prove nothing of any one of them.

Seen: both managers changed the field at least twice, and in turns: one of them before and after a change by the other.
Inferred where one of them alone was recorded: it changed the field, and later changed it again out of an owner's claim,
so the owner must have had it back in between. Of several owners' claims that one write takes from, a record names one;
and an owner that a rule names with its operation, and guards by pattern, reads as if it had claimed the field.

A write counts as made once it was admitted: whether the API server then stored it, no record tells.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from webhook.report.asking import MORE, is_exact
from webhook.report.enforced import NEVER_YET, NOT_SINCE
from webhook.report.folding import is_folded
from webhook.report.records import Record

_CLAIM = re.compile(r"(.*) \((?:Apply|Update)(?:, [^()]*)?\)", re.DOTALL)


class Field(NamedTuple):
    """A field of an object."""

    resource: str
    namespace: str
    name: str
    path: str


class Flap(NamedTuple):
    """A field, and two managers, of which the first writes it more often. Writes are those proved: at least so many."""

    field: Field
    managers: tuple[str, str]
    writes: tuple[int, int]
    inferred: bool  # the second one's writes were not recorded
    users: tuple[str, ...]
    policies: tuple[str, ...]
    days: int  # on how many
    first: dt.datetime
    last: dt.datetime


@dataclass(slots=True)
class _Side:
    """What one manager is proved to have done to one field."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)  # by rule: several may speak of one write
    taken_from: dict[str, tuple[dt.datetime, int]] = field(default_factory=dict)  # when last, and how often until then
    users: set[str] = field(default_factory=set)
    policies: set[str] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    first: dt.datetime = NEVER_YET
    last: dt.datetime = NOT_SINCE

    def add(self, record: Record) -> None:
        rule = (record.policy, record.rule)
        self.counts[rule] = self.counts.get(rule, 0) + record.count
        owner = claimant(record.owner)
        if owner not in ("", record.manager):
            self.taken_from[owner] = max(self.taken_from.get(owner, (NOT_SINCE, 0)), (record.last, record.count))
        self.users.add(record.user)
        self.policies.add(record.policy)
        self.days.update(record.days)
        self.first, self.last = min(self.first, record.first), max(self.last, record.last)

    @property
    def writes(self) -> int:
        return max(self.counts.values(), default=0)

    def in_turns_with(self, other: _Side) -> bool:
        """Whether the field came back to one of them; else one has handed it over."""
        return max(self.first, other.first) < min(self.last, other.last)

    def lost_to(self) -> list[str]:
        """The owners from whose claims it took what it had written before. A record names the owner of its last write."""
        if self.writes < 2:
            return []
        return [owner for owner, (last, count) in self.taken_from.items() if count > 1 or self.first < last]


def flapping(records: Iterable[Record]) -> list[Flap]:
    """The most restless first. Dry runs take nothing; of folded records it is not known which object they are about."""
    fields: dict[Field, dict[str, _Side]] = {}
    for record in filter(_tells, records):
        for path in record.paths:
            if not path.endswith(MORE):
                place = Field(record.resource, record.namespace, record.name, path)
                fields.setdefault(place, {}).setdefault(record.manager, _Side()).add(record)
    found = [flap for place, sides in fields.items() for flap in _flaps(place, sides)]
    return sorted(found, key=lambda flap: (-sum(flap.writes), flap.field, flap.managers))


def claimant(owner: str) -> str:
    """The manager of the claim that a record was about; "" where it names no claim, or several.

    >>> claimant("kustomize-controller (Apply)"), claimant("kubectl (Update, scale)"), claimant("a (Apply) or b (Apply)")
    ('kustomize-controller', 'kubectl', '')
    """
    found = None if " or " in owner else _CLAIM.fullmatch(owner)
    return found.group(1) if found else ""


def _flaps(place: Field, sides: dict[str, _Side]) -> Iterator[Flap]:
    told = set()
    for one, other in combinations(sorted(sides, key=lambda name: (-sides[name].writes, name)), 2):
        a, b = sides[one], sides[other]
        if b.writes >= 2 and a.in_turns_with(b):
            told.add(frozenset((one, other)))
            yield _flap(place, (one, other), a, b)
    for name, side in sides.items():
        for owner in side.lost_to():
            if frozenset((name, owner)) not in told:
                yield _flap(place, (name, owner), side, None)


def _flap(place: Field, managers: tuple[str, str], a: _Side, b: _Side | None) -> Flap:
    both = [side for side in (a, b) if side is not None]
    return Flap(
        field=place,
        managers=managers,
        writes=(a.writes, b.writes if b is not None else 0),
        inferred=b is None,
        users=tuple(sorted(set().union(*(side.users for side in both)))),
        policies=tuple(sorted(set().union(*(side.policies for side in both)))),
        days=len(set().union(*(side.days for side in both))),
        first=min(side.first for side in both),
        last=max(side.last for side in both),
    )


def _tells(record: Record) -> bool:
    """Whether it is about one known writer's writes of one known object's fields, which were stored as they came."""
    known = record.manager and not is_folded(record)
    changed = record.event == "change" and record.outcome == "recorded" and not record.dry_run
    return bool(known) and changed and is_exact(record)
