"""The matrix: which user writes which paths under which manager's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from webhook.report.enforced import EFFECTS, Effect, Seen, effect_of
from webhook.report.records import Record


@dataclass(slots=True)
class Cell:
    """A user, a manager and a path. An event about a name alone has no path: its cell has ""."""

    user: str
    manager: str
    operation: str
    path: str
    by_rule: dict[tuple[str, str, str], Seen] = field(default_factory=dict)
    effects: set[Effect] = field(default_factory=set)
    policies: set[str] = field(default_factory=set)

    @property
    def seen(self) -> Seen:
        """Of the rule that saw most: what several rules say of one write is one write.

        Of a record of several paths it is not known how often each was meant, so this counts at most.
        """
        every = self.by_rule.values()
        return Seen(
            writes=max(seen.writes for seen in every),
            dry_runs=max(seen.dry_runs for seen in every),
            first=min(seen.first for seen in every),
            last=max(seen.last for seen in every),
        )

    @property
    def worst(self) -> Effect:
        return min(self.effects, key=EFFECTS.index)


def matrix(records: Iterable[Record]) -> list[Cell]:
    """Most often written first."""
    cells: dict[tuple[str, ...], Cell] = {}
    for record in records:
        for path in record.paths or ("",):
            key = (record.user, record.manager, record.operation, path)
            cell = cells.setdefault(key, Cell(*key))
            cell.by_rule.setdefault((record.policy, record.rule, record.event), Seen()).add(record)
            cell.effects.add(effect_of(record))
            cell.policies.add(record.policy)
    return sorted(cells.values(), key=_order)


def _order(cell: Cell) -> tuple[object, ...]:
    writes, dry_runs = cell.seen.often
    return -writes, -dry_runs, cell.user, cell.manager, cell.operation, cell.path
