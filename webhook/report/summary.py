"""A report: everything that is told of some records, before it is drawn."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webhook.report.asking import Asked, Reading, Source
from webhook.report.enforced import EFFECTS, Effect, PolicyView, Writer, effect_of, enforced
from webhook.report.flapping import Flap, flapping
from webhook.report.folding import fold
from webhook.report.matrix import Cell, matrix
from webhook.report.records import Record

MAX_DAYS = 366


@dataclass(frozen=True, slots=True)
class Day:
    """The writes of one day by what Enforce would make of them."""

    day: str
    effects: dict[Effect, int]

    @property
    def total(self) -> int:
        return sum(self.effects.values())


@dataclass(frozen=True, slots=True)
class Report:
    """What `fieldwarden report` tells. Counts are of events in writes, unless dry runs are named."""

    made: dt.datetime
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    asked: Asked
    first: dt.datetime | None
    last: dt.datetime | None
    effects: dict[Effect, int]
    dry_runs: int
    policies: tuple[PolicyView, ...]
    matrix: tuple[Cell, ...]
    flapping: tuple[Flap, ...]
    days: tuple[Day, ...]

    @property
    def writes(self) -> int:
        return sum(self.effects.values())

    @property
    def writers(self) -> list[Writer]:
        return [writer for view in self.policies for writer in view.writers]

    @property
    def would_act(self) -> bool:
        """Whether anything that was seen would fail or be rewritten."""
        return not all(view.is_harmless for view in self.policies)


def gather(sources: Iterable[Source], asked: Asked | Reading) -> list[Record]:
    """All that is asked for, each thing once. Raises Unusable."""
    return list(fold(record for source in sources for record in asked.of(source.records(asked.since))).values())


def summarise(
    records: Sequence[Record], sources: Sequence[Source], asked: Asked, made: dt.datetime, also: Sequence[str] = ()
) -> Report:
    """`made`: now. The sources have been read. `also`: notes beside theirs."""
    effects: dict[Effect, int] = dict.fromkeys(EFFECTS, 0)
    for record in records:
        if not record.dry_run:
            effects[effect_of(record)] += record.count
    return Report(
        made=made,
        sources=tuple(source.name for source in sources),
        notes=(*(note for source in sources for note in source.notes()), *also),
        asked=asked,
        first=min((record.first for record in records), default=None),
        last=max((record.last for record in records), default=None),
        effects=effects,
        dry_runs=sum(record.count for record in records if record.dry_run),
        policies=tuple(enforced(records)),
        matrix=tuple(matrix(records)),
        flapping=tuple(flapping(records)),
        days=tuple(_days(records)),
    )


def _days(records: Iterable[Record]) -> list[Day]:
    """Every day from the first to the last, also those on which nothing was seen; the latest MAX_DAYS of them."""
    counted: dict[str, dict[Effect, int]] = {}
    for record in records:
        if not record.dry_run:
            for day, count in record.days.items():
                counted.setdefault(day, dict.fromkeys(EFFECTS, 0))[effect_of(record)] += count
    if not counted:
        return []
    last, first = (dt.date.fromisoformat(pick(counted)) for pick in (max, min))
    first = max(first, last - dt.timedelta(days=MAX_DAYS - 1))
    every = ((first + dt.timedelta(days=number)).isoformat() for number in range((last - first).days + 1))
    return [Day(day, counted.get(day) or dict.fromkeys(EFFECTS, 0)) for day in every]
