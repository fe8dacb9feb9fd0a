"""How the journal stays small: what was longest not seen is told in less detail, what is too old is taken out."""

from __future__ import annotations

import datetime as dt
import sqlite3
from dataclasses import dataclass

from webhook.report.folding import LEVELS, coarser, key_of, merged
from webhook.report.journal_rows import forget, forgotten_of, next_revision, put, select, whole
from webhook.report.records import Record
from webhook.report.ticks import ticks

CHUNK = 200
"""Records that one transaction folds or removes: an answer may be waiting for the next."""

PAGES = 256
"""Pages given back to the file system at a time."""

NOTED, SETTLED, FOLDED = 1.25, 1.5, 2.0
"""So many times `max_bytes` the file may have for lines to be added, to be settled, and for records to be folded: each
makes room for the one before. Folding begins at `max_bytes`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a journal may hold."""

    max_records: int = 50_000
    keep_days: int = 30
    max_bytes: int = 24 << 20  # of the file, above which records are folded


def fold_some(connection: sqlite3.Connection, limits: Limits) -> int:
    """Fold a chunk of records into coarser ones; how many fewer there are. In a transaction of the caller's."""
    counts = dict(connection.execute("SELECT level, count(*) FROM records GROUP BY level"))
    for level in range(LEVELS - 1, 0, -1):  # coarse ones are few; where they are not, they go first
        if counts.get(level, 0) > max(1, limits.max_records // 4):
            return _fold_level(connection, level)
    for level in range(LEVELS):
        if counts.get(level, 0):
            return _fold_level(connection, level)
    return 0


def _fold_level(connection: sqlite3.Connection, level: int) -> int:
    revision = next_revision(connection)
    oldest = list(select(connection, "WHERE level = ? ORDER BY last, id LIMIT ?", (level, CHUNK)))
    added = 0
    into_rows: dict[str, Record] = {}
    for row in oldest:
        less = coarser(row.record, level + 1)
        into = key_of(less)
        if into == row.key:  # it told nothing apart as it was
            connection.execute("UPDATE records SET level = ? WHERE id = ?", (level + 1, row.id))
            added += 1
            continue
        forget(connection, row, into, revision)
        into_rows[into] = merged(into_rows[into], less) if into in into_rows else less
    for into, record in into_rows.items():
        added += put(connection, into, record, revision, level + 1)
    return len(oldest) - added


def expire_some(connection: sqlite3.Connection, limits: Limits, now: dt.datetime) -> int:
    """Take out days that are too old, and records of which none is left; how many records were touched."""
    oldest = f"{now - dt.timedelta(days=limits.keep_days):%Y-%m-%d}"
    found = connection.execute("SELECT DISTINCT record FROM days WHERE day < ? LIMIT ?", (oldest, CHUNK)).fetchall()
    if not found:
        return 0
    revision = next_revision(connection)
    for (at,) in found:
        connection.execute("DELETE FROM days WHERE record = ? AND day < ?", (at, oldest))
        row = next(select(connection, "WHERE id = ?", (at,)), None)
        if row is None:  # days of nothing
            continue
        if not row.record.days:
            forget(connection, row, None, revision)
            continue
        first = dt.datetime.fromisoformat(min(row.record.days)).replace(tzinfo=dt.UTC)
        connection.execute(
            "UPDATE records SET count = ?, first = max(first, ?), revision = ? WHERE id = ?",
            (sum(row.record.days.values()), ticks(first), revision, at),
        )
    return len(found)


def forget_the_gone(connection: sqlite3.Connection, limits: Limits) -> None:
    """Of what is gone only so much is remembered; who follows from further back must read everything."""
    known = connection.execute("SELECT count(*) FROM gone").fetchone()[0]
    if known <= limits.max_records:
        return
    (upto,) = connection.execute(
        "SELECT revision FROM gone ORDER BY revision LIMIT 1 OFFSET ?", (known - limits.max_records // 2,)
    ).fetchone()
    connection.execute("DELETE FROM gone WHERE revision <= ?", (upto,))
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'forgotten'", (max(whole(upto), forgotten_of(connection)),)
    )


def size_of(connection: sqlite3.Connection) -> int:
    """Bytes of the file that are in use."""
    pages, free, each = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * each)
