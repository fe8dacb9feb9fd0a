"""Records as rows of the journal, and back. The transactions are the caller's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from webhook.report.folding import KEY, merged
from webhook.report.records import Record
from webhook.report.ticks import moment, ticks

NAMES = (*KEY, "mode", "owner", "paths", "count", "first", "last")
_COLUMNS = ", ".join(NAMES)
_DAYS = "(SELECT group_concat(day || ' ' || count) FROM days WHERE record = records.id)"
_SELECT = f"SELECT id, key, level, {_COLUMNS}, {_DAYS} FROM records"  # noqa: S608 - names of ours
_SELECT_BARE = f"SELECT id, key, level, {_COLUMNS}, NULL FROM records WHERE key = ?"  # noqa: S608
_INSERT = (
    f"INSERT INTO records (key, level, revision, {_COLUMNS}) "  # noqa: S608
    f"VALUES (?, ?, ?, {', '.join('?' * len(NAMES))})"
)
_UPDATE = "UPDATE records SET revision = ?, mode = ?, owner = ?, paths = ?, count = ?, first = ?, last = ? WHERE id = ?"
_ADD_DAY = (
    "INSERT INTO days (record, day, count) VALUES (?, ?, ?) "
    "ON CONFLICT (record, day) DO UPDATE SET count = count + excluded.count"
)


class Row(NamedTuple):
    """A record as it stands in the journal."""

    id: int
    key: str
    level: int
    record: Record


def put(connection: sqlite3.Connection, key: str, record: Record, revision: int, level: int = 0) -> bool:
    """Add to what is there under the key. Whether it is a new row."""
    found = connection.execute(_SELECT_BARE, (key,)).fetchone()
    if found is None:
        at = connection.execute(_INSERT, (key, level, revision, *_values(record))).lastrowid
    else:
        known = row_of(found)
        at = known.id
        both = merged(replace(known.record, days={}), record)
        changed = both.mode, both.owner, _paths(both), both.count, ticks(both.first), ticks(both.last)
        connection.execute(_UPDATE, (revision, *changed, at))
    connection.executemany(_ADD_DAY, [(at, day, count) for day, count in record.days.items()])
    return found is None


def select(
    connection: sqlite3.Connection, where: str = "", given: Iterable[Any] | Mapping[str, Any] = ()
) -> Iterator[Row]:
    """With their days. `where` is SQL of ours."""
    given = dict(given) if isinstance(given, Mapping) else tuple(given)
    for found in connection.execute(f"{_SELECT} {where}", given):
        yield row_of(found)


def find(connection: sqlite3.Connection, key: str) -> Row | None:
    """With its days."""
    return next(select(connection, "WHERE key = ?", (key,)), None)


def row_of(found: tuple[Any, ...]) -> Row:
    at, key, level, *values, days = found
    told = dict(zip(NAMES, values, strict=True))
    told["dry_run"] = bool(told["dry_run"])
    told["paths"] = tuple(json.loads(told["paths"]))
    told["first"], told["last"] = moment(told["first"]), moment(told["last"])
    pairs = (day.split(" ") for day in (days or "").split(",") if day)
    return Row(at, key, level, Record(**told, days={day: int(count) for day, count in sorted(pairs)}))


def next_revision(connection: sqlite3.Connection) -> int:
    """One for each transaction that changes records."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'revision'")
    return int(meta(connection, "revision"))


def meta(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0]


def forget(connection: sqlite3.Connection, row: Row, into: str | None, revision: int) -> None:
    """Take a record out, and say so to those who follow: `into` is the key of the one that it is now a part of."""
    connection.execute("DELETE FROM records WHERE id = ?", (row.id,))
    connection.execute("INSERT OR REPLACE INTO gone VALUES (?, ?, ?)", (row.key, into, revision))


def _values(record: Record) -> tuple[Any, ...]:
    told = {"paths": _paths(record), "first": ticks(record.first), "last": ticks(record.last)}
    return tuple(told[name] if name in told else getattr(record, name) for name in NAMES)


def _paths(record: Record) -> str:
    return json.dumps(record.paths, ensure_ascii=False, separators=(",", ":"))
