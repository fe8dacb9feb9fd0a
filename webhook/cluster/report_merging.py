"""How several journals write into one report, and each count stands there once. Pure.

Every journal has its own counts in a row, by day, and writes them as they are in all: to write again changes nothing,
and sums are sums over journals. A journal that was not heard of for `SILENT` is sealed: its counts go to those that
are gone, and the report notes up to which day. Should it come back, it tells only what came after that day.

A day is over for all at once: what is older than the oldest day to keep goes from every count, also from those that are
gone. So a seal may be forgotten when its day is older than that.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from webhook.cluster.report_objects import GONE, Row, Stored, bounded_paths, moment_of
from webhook.report.records import Record

SILENT = dt.timedelta(days=2)
"""For so long a journal may be unheard of in a report that it has counts in. It shows itself more often than that."""

NEVER = ""
"""Before every day."""


@dataclass(frozen=True, slots=True)
class Own:
    """What one journal has to say in one report. `after`: days up to it are sealed, here or elsewhere."""

    journal: str
    rows: Mapping[str, Record] = field(default_factory=dict)
    removed: Collection[str] = ()
    whole: bool = False  # these are all the rows that it has there
    after: str = NEVER
    since: str = NEVER  # the oldest day to keep
    subjects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # which object each row is about


def publish(stored: Stored, own: Own, now: dt.datetime) -> Stored:
    """With the journal's rows as they are now. The same again changes nothing, not even when it was last seen."""
    after = max(own.after, stored.sealed.get(own.journal, NEVER))
    base = seal(stored, own.journal, after) if after else stored
    rows = dict(base.rows)
    gone = set(own.removed)
    if own.whole:
        gone |= {key for key, row in rows.items() if own.journal in row.counts}
    for key in gone - own.rows.keys():
        if key in rows:
            _put(rows, key, rows[key], own.journal, {})
    for key, record in own.rows.items():
        days = {day: count for day, count in record.days.items() if day > after and day >= own.since and count > 0}
        known = rows.get(key)
        if days:
            _put(rows, key, _told(known, record, own.subjects.get(key)), own.journal, days)
        elif known is not None:
            _put(rows, key, known, own.journal, {})
    changed = replace(base, rows=rows)
    return stored if changed == stored else touch(changed, own.journal, now)


def touch(stored: Stored, journal: str, now: dt.datetime) -> Stored:
    """The journal was here just now. Who has no counts left is no longer named."""
    here = {one for row in stored.rows.values() for one in row.counts}
    seen = {one: at for one, at in stored.seen.items() if one in here and one != journal}
    return replace(stored, seen={**seen, journal: moment_of(now)} if journal in here else seen)


def seal(stored: Stored, journal: str, upto: str | None = None) -> Stored:
    """Its counts are those of one that is gone; `upto` a day, or all that there are."""
    days = [day for row in stored.rows.values() for day in row.counts.get(journal, ())]
    latest = max(days, default=NEVER)
    until = latest if upto is None else upto
    rows = {key: _sealed(row, journal, until) for key, row in stored.rows.items()}
    seen = stored.seen if latest > until else {one: at for one, at in stored.seen.items() if one != journal}
    sealed = stored.sealed
    if any(day <= until for day in days):
        sealed = {**sealed, journal: max(sealed.get(journal, NEVER), until)}
    return replace(stored, rows=rows, sealed=sealed, seen=seen)


def silent(stored: Stored, now: dt.datetime) -> list[str]:
    """The journals with counts here that were last heard of too long ago."""
    limit = moment_of(now - SILENT)
    here = {one for row in stored.rows.values() for one in row.counts if one != GONE}
    return sorted(one for one in here if stored.seen.get(one, limit) < limit)


def named(stored: Stored, now: dt.datetime) -> Stored:
    """Whoever has counts here and is not named, as after somebody's edit, is heard of from now on."""
    here = {one for row in stored.rows.values() for one in row.counts if one != GONE}
    unnamed = dict.fromkeys(here - stored.seen.keys(), moment_of(now))
    return replace(stored, seen={**stored.seen, **unnamed}) if unnamed else stored


def last_to_seal(now: dt.datetime) -> str:
    """Seals of later days are made up: whoever was silent for `SILENT` has counted nothing since, whatever his clock says."""
    return f"{now + SILENT:%Y-%m-%d}"


def expire(stored: Stored, oldest: str, latest: str) -> Stored:
    """Without what was counted on days before the oldest, and without seals of days after the latest."""
    rows = {}
    for key, row in stored.rows.items():
        if min(row.record.days, default=NEVER) >= oldest:
            rows[key] = row
            continue
        counts = {one: kept for one, days in row.counts.items() if (kept := _since(days, oldest))}
        if counts:
            rows[key] = Row.of(_later(row.record, counts), counts, row.subject)
    sealed = {one: day for one, day in stored.sealed.items() if oldest <= day <= latest}
    return replace(stored, rows=rows, sealed=sealed)


def joined(one: Row, other: Row) -> Row:
    """The same thing as it stands in two reports. A journal that is in both is on its way: it counts once."""
    counts = {journal: dict(days) for journal, days in one.counts.items()}
    for journal, days in other.counts.items():
        mine = counts.setdefault(journal, {})
        for day, count in days.items():
            known = mine.get(day, 0)
            mine[day] = known + count if journal == GONE else max(known, count)
    return Row.of(_told(one, other.record, other.subject).record, counts, one.subject or other.subject)


def _told(known: Row | None, record: Record, subject: Mapping[str, str] | None) -> Row:
    """What is said of a row besides its counts: of all journals, or of who saw it last."""
    if known is None:
        return Row(replace(record, paths=bounded_paths(record.paths)), {}, subject)
    before = known.record
    later = record if record.last >= before.last else before
    both = replace(
        later,
        paths=bounded_paths(before.paths, record.paths),
        first=min(before.first, record.first),
        last=max(before.last, record.last),
    )
    return Row(both, known.counts, subject or known.subject)


def _put(rows: dict[str, Row], key: str, row: Row, journal: str, days: Mapping[str, int]) -> None:
    counts = {one: each for one, each in row.counts.items() if one != journal}
    if days:
        counts[journal] = dict(days)
    if counts:
        rows[key] = Row.of(_later(row.record, counts), counts, row.subject)
    else:
        rows.pop(key, None)


def _sealed(row: Row, journal: str, until: str) -> Row:
    mine = row.counts.get(journal, {})
    over = {day: count for day, count in mine.items() if day <= until}
    if not over:
        return row
    gone = dict(row.counts.get(GONE, {}))
    for day, count in over.items():
        gone[day] = gone.get(day, 0) + count
    counts = {one: days for one, days in row.counts.items() if one not in (journal, GONE)}
    left = {day: count for day, count in mine.items() if day > until}
    return Row.of(row.record, counts | {GONE: gone} | ({journal: left} if left else {}), row.subject)


def _since(days: Mapping[str, int], oldest: str) -> dict[str, int]:
    return {day: count for day, count in days.items() if day >= oldest}


def _later(record: Record, counts: Mapping[str, Mapping[str, int]]) -> Record:
    """First seen on the first day that is still counted, at the earliest."""
    day = min(day for days in counts.values() for day in days)
    return replace(record, first=max(record.first, dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC)))
