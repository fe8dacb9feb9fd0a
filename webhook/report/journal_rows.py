"""Records as rows of the journal, and back. The transactions are the caller's."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from webhook.report.folding import KEY, LEVELS, merged
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


_TEXTS = tuple(at for at, name in enumerate(NAMES) if name not in ("dry_run", "count", "first", "last"))
_MOST = 1 << 53
"""More than anything that is counted here, so little that sums of it can be stored."""

_TIMES = range(ticks(dt.datetime(1970, 1, 1, tzinfo=dt.UTC)), ticks(dt.datetime(3000, 1, 1, tzinfo=dt.UTC)))


class Unsound(sqlite3.DatabaseError):
    """A file can be read, but what stands in it no journal has written: it is damaged as any other."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


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
    """Raises Unsound."""
    at, key, level, *values, days = found
    if {type(key), *(type(values[text]) for text in _TEXTS)} != {str}:
        raise Unsound("a name is no text")
    told = dict(zip(NAMES, values, strict=True))
    told["dry_run"] = bool(whole(told["dry_run"]))
    told["paths"] = _read_paths(told["paths"])
    told["first"], told["last"] = moment(whole(told["first"], _TIMES)), moment(whole(told["last"], _TIMES))
    whole(told["count"], range(1, _MOST))
    whole(level, range(LEVELS + 1))
    return Row(at, key, level, Record(**told, days=_read_days(days or "")))


def _read_paths(text: str) -> tuple[str, ...]:
    try:
        paths = json.loads(text)
        if type(paths) is not list:
            raise Unsound("paths are no list")
        "".join(paths).encode()  # half a surrogate pair could not be stored again, nor printed
    except (ValueError, TypeError, RecursionError):
        raise Unsound("paths cannot be read") from None
    return tuple(paths)


def _read_days(text: str) -> dict[str, int]:
    try:
        pairs = sorted(day.split(" ") for day in text.split(",") if day)
        return {_day(day): whole(int(count), range(1, _MOST)) for day, count in pairs}
    except ValueError:
        raise Unsound("days cannot be read") from None


@lru_cache(maxsize=1024)
def _day(text: str) -> str:
    if dt.date.fromisoformat(text).isoformat() != text:
        raise ValueError
    return text


def whole(value: Any, within: range = range(_MOST)) -> int:
    """A number as it may stand in a journal. Raises Unsound."""
    if type(value) is not int or value not in within:
        raise Unsound("a number is out of range")
    return value


def is_sound(record: Record) -> bool:
    """Whether it was seen at times that can be stored."""
    return ticks(record.first) in _TIMES and ticks(record.last) in _TIMES


def next_revision(connection: sqlite3.Connection) -> int:
    """One for each transaction that changes records."""
    revision = revision_of(connection) + 1
    connection.execute("UPDATE meta SET value = ? WHERE name = 'revision'", (revision,))
    return revision


def revision_of(connection: sqlite3.Connection) -> int:
    return whole(_meta(connection, "revision"))


def forgotten_of(connection: sqlite3.Connection) -> int:
    """Up to which revision it is not remembered any more what has gone."""
    return whole(_meta(connection, "forgotten"))


def id_of(connection: sqlite3.Connection) -> str:
    known = _meta(connection, "id")
    if type(known) is not str:
        raise Unsound("there is no id")
    return known


def _meta(connection: sqlite3.Connection, name: str) -> Any:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return found[0] if found else None


def gone_since(connection: sqlite3.Connection, revision: int) -> list[tuple[str, str | None]]:
    """Keys of what has gone, each with the key of what it is now a part of, the first first."""
    found = connection.execute(
        "SELECT key, into_key, revision FROM gone WHERE revision > ? ORDER BY revision", (revision,)
    ).fetchall()
    for key, into, at in found:
        if type(key) is not str or not (into is None or type(into) is str):
            raise Unsound("a key is no text")
        whole(at)
    return [(key, into) for key, into, _ in found]


def taken(connection: sqlite3.Connection) -> dict[str, int]:
    """How far the lines of each source were written down."""
    settled = connection.execute("SELECT source, upto FROM taken").fetchall()
    fresh = connection.execute("SELECT source, max(upto) FROM fresh WHERE source IS NOT NULL GROUP BY source")
    known = dict((*settled, *fresh.fetchall()))
    for source, upto in known.items():
        if type(source) is not str:
            raise Unsound("a source is no text")
        whole(upto, range(1 << 63))
    return known


def check(connection: sqlite3.Connection) -> None:
    """Whether there is what every journal has, and room for numbers yet to come. Raises Unsound."""
    id_of(connection)
    revision_of(connection)
    forgotten_of(connection)
    for (highest,) in connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'"):
        whole(highest)
    whole(connection.execute("SELECT coalesce(max(id), 0) FROM records").fetchone()[0])


def forget(connection: sqlite3.Connection, row: Row, into: str | None, revision: int) -> None:
    """Take a record out, and say so to those who follow: `into` is the key of the one that it is now a part of."""
    connection.execute("DELETE FROM records WHERE id = ?", (row.id,))
    connection.execute("INSERT OR REPLACE INTO gone VALUES (?, ?, ?)", (row.key, into, revision))


def _values(record: Record) -> tuple[Any, ...]:
    told = {"paths": _paths(record), "first": ticks(record.first), "last": ticks(record.last)}
    return tuple(told[name] if name in told else getattr(record, name) for name in NAMES)


def _paths(record: Record) -> str:
    return json.dumps(record.paths, ensure_ascii=False, separators=(",", ":"))
