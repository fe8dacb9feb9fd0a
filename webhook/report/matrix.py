"""The matrix: which user writes which paths under which manager's name.

Numbers are of events, as one rule tells of them: what several rules say of one object's path counts once, by the rule that
says most. Of a record of several paths it is known only how often all of them together were seen.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from webhook.report.asking import is_exact
from webhook.report.enforced import EFFECTS, NEVER_YET, NOT_SINCE, Effect, effect_of
from webhook.report.records import Record


class Number(NamedTuple):
    """How often, as far as it is known."""

    least: int = 0
    most: int = 0

    @property
    def is_exact(self) -> bool:
        return self.least == self.most

    def __str__(self) -> str:
        """
        >>> str(Number(2, 1500)), str(Number(3, 3))
        ('≤1,500', '3')
        """
        return f"{'' if self.is_exact else '≤'}{self.most:,}"


class _Told(NamedTuple):
    """Who tells of what: events with these in common are added up."""

    thing: tuple[str, str, str]
    rule: tuple[str, str, str]
    effect: Effect
    dry_run: bool


@dataclass(slots=True)
class Cell:
    """A user, a manager and a path. An event about a name alone has no path: its cell has ""."""

    user: str
    manager: str
    operation: str
    path: str
    told: dict[_Told, Number] = field(default_factory=dict)
    policies: set[str] = field(default_factory=set)
    first: dt.datetime = NEVER_YET
    last: dt.datetime = NOT_SINCE

    def add(self, record: Record) -> None:
        thing = (record.resource, record.namespace, record.name)
        key = _Told(thing, (record.policy, record.rule, record.event), effect_of(record), record.dry_run)
        before = self.told.get(key, Number())
        least = record.count if is_exact(record) else 0
        self.told[key] = Number(before.least + least, before.most + record.count)
        self.policies.add(record.policy)
        self.first, self.last = min(self.first, record.first), max(self.last, record.last)

    @property
    def writes(self) -> Number:
        """Events outside of dry runs, whatever Enforce makes of them."""
        return self._often(EFFECTS, dry_run=False)

    @property
    def dry_runs(self) -> Number:
        return self._often(EFFECTS, dry_run=True)

    @property
    def effects(self) -> dict[Effect, Number]:
        """What Enforce would make of it, the worst first, and how often outside of dry runs."""
        here = {told.effect for told in self.told}
        return {effect: self._often((effect,), dry_run=False) for effect in EFFECTS if effect in here}

    def _often(self, effects: Collection[Effect], *, dry_run: bool) -> Number:
        by_thing: dict[tuple[str, str, str], dict[tuple[str, str, str], Number]] = {}
        for told, number in self.told.items():
            if told.effect in effects and told.dry_run == dry_run:
                rules = by_thing.setdefault(told.thing, {})
                before = rules.get(told.rule, Number())
                rules[told.rule] = Number(before.least + number.least, before.most + number.most)
        every = by_thing.values()
        return Number(
            sum(max(number.least for number in rules.values()) for rules in every),
            sum(max(number.most for number in rules.values()) for rules in every),
        )

    @property
    def worst(self) -> Effect:
        return min((told.effect for told in self.told), key=EFFECTS.index)


def matrix(records: Iterable[Record]) -> list[Cell]:
    """Most often seen first."""
    cells: dict[tuple[str, ...], Cell] = {}
    for record in records:
        for path in record.paths or ("",):
            key = (record.user, record.manager, record.operation, path)
            cells.setdefault(key, Cell(*key)).add(record)
    return sorted(cells.values(), key=_order)


def _order(cell: Cell) -> tuple[object, ...]:
    return -cell.writes.most, -cell.dry_runs.most, cell.user, cell.manager, cell.operation, cell.path
