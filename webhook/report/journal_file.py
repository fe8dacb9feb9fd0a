"""The journal's file: making it whole, telling it from other files, and putting a damaged one aside."""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import os
import secrets
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from webhook.report.journal_rows import Unsound, check

SCHEMA = 1
APPLICATION = 0x46574A4C  # "FWJL", in the header of the file

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE records (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, level INTEGER NOT NULL, revision INTEGER NOT NULL,
    policy TEXT NOT NULL, rule TEXT NOT NULL, event TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL,
    name TEXT NOT NULL, manager TEXT NOT NULL, operation TEXT NOT NULL, user TEXT NOT NULL, dry_run INTEGER NOT NULL,
    outcome TEXT NOT NULL, mode TEXT NOT NULL, would TEXT NOT NULL, owner TEXT NOT NULL, paths TEXT NOT NULL,
    count INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE INDEX by_revision ON records (revision);
CREATE INDEX by_age ON records (level, last);
CREATE TABLE days (
    record INTEGER NOT NULL REFERENCES records (id) ON DELETE CASCADE, day TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (record, day)) WITHOUT ROWID;
CREATE TABLE gone (key TEXT PRIMARY KEY, into_key TEXT, revision INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX gone_by_revision ON gone (revision);
CREATE TABLE fresh (id INTEGER PRIMARY KEY, source TEXT, upto INTEGER, line BLOB NOT NULL);
CREATE TABLE taken (source TEXT PRIMARY KEY, upto INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
"""

Kind = Literal["none", "ours", "newer", "foreign"]
_WHAT: dict[Kind, str] = {"newer": "is of a newer fieldwarden", "foreign": "is not a journal"}
"""Such a file is never touched."""


class NotAJournal(Exception):
    """A file cannot be read as a journal; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection, where it leads, and what is to be said about how it came to be."""

    connection: sqlite3.Connection
    path: Path
    notices: tuple[str, ...] = ()


def open_for_writing(path: Path, busy: float, bad: int = 0) -> Opened:
    """A good journal at the path, or beside it where somebody else's file is there. `busy`: seconds to wait for others.

    `bad`: the inode of a file that turned out to be unsound when it was used. Raises sqlite3.Error or OSError where
    there can be none: both may be somebody else's.
    """
    with _alone_in(path.parent):
        return _open(path, busy, bad)


def _open(path: Path, busy: float, bad: int) -> Opened:
    notices: list[str] = []
    kind = kind_of(path)
    if kind in _WHAT:
        beside = path.with_name(f"{path.name}.schema{SCHEMA}")
        if (other := kind_of(beside)) in _WHAT:
            why = f"{path.name} {_WHAT[kind]}, {beside.name} {_WHAT[other]}, and both are left alone"
            raise FileExistsError(errno.EEXIST, why)
        notices.append(f"{path.name} {_WHAT[kind]} and is left alone: {beside.name} is used instead")
        path = beside
    if kind_of(path) == "none":
        _make(path)
    try:
        if path.stat().st_ino == bad:
            raise Unsound("it was unsound when it was used")
        return Opened(_checked(path, busy), path, tuple(notices))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    notices.append(f"{path.name} is damaged: it is kept as {put_aside(path).name}, and a new journal has begun")
    _make(path)
    return Opened(_checked(path, busy), path, tuple(notices))


@contextlib.contextmanager
def open_for_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Changes nothing. Raises NotAJournal, also for one that is damaged."""
    kind = kind_of(path)
    if kind != "ours":
        raise NotAJournal(
            {
                "none": f"{path}: there is no journal",
                "newer": f"{path}: is of a newer fieldwarden",
                "foreign": f"{path}: is not a journal",
            }[kind]
        )
    connection = _read_only(path)
    try:
        yield connection
    except sqlite3.DatabaseError as error:
        raise NotAJournal(f"{path}: is damaged" if is_damage(error) else f"{path}: {error}") from None
    finally:
        connection.close()


def kind_of(path: Path) -> Kind:
    """By the header alone, which SQLite keeps at fixed places."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return "none"
    if not head:
        return "none"
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        return "foreign"
    (version,), (application,) = struct.unpack_from(">I", head, 60), struct.unpack_from(">I", head, 68)
    if application != APPLICATION:
        return "foreign"
    return "ours" if version <= SCHEMA else "newer"


def is_damage(error: sqlite3.Error) -> bool:
    """Whether it says that the file itself is bad; a full disk, or somebody else's lock, is not that."""
    return is_unsound(error) or _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_unsound(error: sqlite3.Error) -> bool:
    """Whether it says that what stands in the file, though it can be read, is not what a journal holds.

    The SQL is ours and right: where it does not fit, tables are not ours. What Python cannot decode has no code.
    """
    if isinstance(error, Unsound):
        return True
    if isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode"):
        return True
    return _code(error) in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH)


def is_full(error: sqlite3.Error) -> bool:
    """Whether it says that there is no room, on the disk or by the journal's own limit."""
    return _code(error) == sqlite3.SQLITE_FULL


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def put_aside(path: Path) -> Path:
    """Where it is kept. What belongs to it goes with it, so that a new file does not inherit it."""
    aside = path.with_name(f"{path.name}.damaged-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Of several processes that open a journal at once, one makes it. The lock ends with the process that holds it."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _make(path: Path) -> None:
    """Whole or not at all: what is at the path has its tables, and says in its header what it is."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.executescript(
                "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=DELETE;"
                f"BEGIN; {TABLES} PRAGMA application_id={APPLICATION}; PRAGMA user_version={SCHEMA};"
            )
            begun = (("id", secrets.token_hex(8)), ("revision", 0), ("forgotten", 0))
            connection.executemany("INSERT INTO meta VALUES (?, ?)", begun)
            connection.execute("COMMIT")
        finally:
            connection.close()
        for suffix in ("-wal", "-shm"):  # of a file that is no more
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


def _checked(path: Path, busy: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA journal_size_limit=4194304")
        connection.execute("PRAGMA temp_store=MEMORY")
        for (said,) in connection.execute("PRAGMA quick_check(1)"):
            if said != "ok":
                raise Unsound(said)
        for table in ("meta", "records", "days", "gone", "fresh", "taken"):
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608 - names of ours
        check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    """A journal in a folder that cannot be written, as on a read-only volume, is read as it lies there."""
    place = path.absolute().as_uri()
    for mode in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(f"{place}?{mode}", uri=True, timeout=5, isolation_level=None)
        try:
            connection.execute("SELECT 1 FROM meta LIMIT 1")
            return connection
        except sqlite3.DatabaseError as error:
            connection.close()
            if mode == "mode=ro" and _code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                continue
            raise NotAJournal(f"{path}: is damaged" if is_damage(error) else f"{path}: {error}") from None
    raise NotAJournal(f"{path}: cannot be opened")
