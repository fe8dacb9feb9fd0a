"""The journal: what was found, kept in one file of SQLite. Many processes may write and read it at the same time.

journal = Journal.open(path, Limits(max_records=50_000, keep_days=30))
journal.record(decision.results, now)
for record in JournalReader(path).records(policy="flux"): ...
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from webhook.report.folding import ResultLike, merged
from webhook.report.journal_bounds import (
    CHUNK,
    FOLDED,
    NOTED,
    PAGES,
    SETTLED,
    Limits,
    expire_some,
    fold_some,
    forget_the_gone,
    size_of,
)
from webhook.report.journal_file import NotAJournal, is_full, kind_of, open_for_reading, open_for_writing
from webhook.report.journal_rows import (
    Unsound,
    check,
    find,
    forgotten_of,
    gone_since,
    id_of,
    is_sound,
    next_revision,
    put,
    revision_of,
    select,
    taken,
)
from webhook.report.records import Record
from webhook.report.sightings import fold_lines, pack
from webhook.report.ticks import ticks

__all__ = ["Changes", "Gone", "Journal", "JournalReader", "Limits", "Line", "NotAJournal", "read"]

MANY = 500
"""Lines that are folded in one transaction: an answer may be waiting for the next."""

RECOUNT = 500
"""Writes after which the records are counted anew: other processes write too."""

EXPIRY = 3600.0
"""Seconds between two looks for what is too old."""

STALE = dt.timedelta(days=7)
"""How long it is remembered how far a source was taken."""


class Gone(NamedTuple):
    """A record that is there no more. `into`: the key of the coarser one that it has become a part of."""

    key: str
    into: str | None


class Changes(NamedTuple):
    """What a follower is to know. Apply `gone` first; then `records` say what there is now, in all, not what was added."""

    revision: int
    records: tuple[tuple[str, Record], ...]  # by key
    gone: tuple[Gone, ...]
    whole: bool  # these are all there are: whatever else the follower knows is gone


class Line(NamedTuple):
    """A packed sighting, and where it comes from: a source, and how far that is taken with it."""

    source: str | None
    upto: int
    line: bytes


_NOTE = "INSERT INTO fresh (source, upto, line) VALUES (?, ?, ?)"


class JournalReader:
    """Reads a journal, whether somebody writes it or not, and changes nothing. All methods raise NotAJournal."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        """Of this journal and no other, as long as there is a file."""
        with open_for_reading(self.path) as connection:
            return id_of(connection)

    def records(
        self,
        *,
        since: dt.datetime | None = None,
        namespace: str | None = None,
        policy: str | None = None,
        dry_run: bool | None = None,
    ) -> Iterator[Record]:
        """As they are at one moment, the longest not seen first. `since`: last seen then or later."""
        given = {
            "namespace = :namespace": ("namespace", namespace),
            "policy = :policy": ("policy", policy),
            "dry_run = :dry_run": ("dry_run", dry_run),
        }
        chosen = {sql: pair for sql, pair in given.items() if pair[1] is not None}
        values = dict(chosen.values())
        late = {"last >= :since": ("since", ticks(since))} if since is not None else {}
        where = " AND ".join((*chosen, *late))
        with open_for_reading(self.path) as connection:
            connection.execute("BEGIN")
            lines = connection.execute("SELECT line FROM fresh")
            fresh = {
                key: record for key, record in _folded(line for (line,) in lines).items() if _holds(record, values)
            }
            bound = values | dict(late.values())
            for row in select(connection, f"{where and 'WHERE'} {where} ORDER BY last, id", bound):
                if row.key not in fresh:
                    yield row.record
            rows = ((find(connection, key), record) for key, record in fresh.items())
            found = (record if row is None else merged(row.record, record) for row, record in rows)
            for record in sorted(found, key=lambda record: record.last):
                if since is None or record.last >= since:
                    yield record

    def changed_since(self, revision: int) -> Changes:
        """What changed after that revision; 0 for everything. What is not settled yet does not count."""
        with open_for_reading(self.path) as connection:
            connection.execute("BEGIN")
            whole = revision < forgotten_of(connection) or revision == 0
            since = 0 if whole else revision
            rows = select(connection, "WHERE revision > ? ORDER BY revision, id", (since,))
            gone = gone_since(connection, since)
            return Changes(
                revision_of(connection),
                tuple((row.key, row.record) for row in rows),
                () if whole else tuple(Gone(*pair) for pair in gone),
                whole,
            )


class Journal(JournalReader):
    """Writes one. Every write is there whole or not at all, whatever ends the process. For one thread at a time."""

    def __init__(self, path: Path, limits: Limits, busy: float, bad: int = 0) -> None:
        super().__init__(path)
        self.limits = limits
        self._asked, self._busy = path, busy
        self._writes, self._expired, self.unsettled = 0, float("-inf"), 0
        self._unchecked: int | None = None
        self.notices: tuple[str, ...] = ()
        self._begin(bad)

    @classmethod
    def open(cls, path: Path, limits: Limits | None = None, *, busy: float = 5.0, bad: int = 0) -> Journal:
        """Make it, or use it again. `notices` say what else was done; `path` is where it really is.

        `busy` is how many seconds a write waits for another process. `bad` is the `inode` of a journal of which a
        method has raised what `is_unsound`: it is put aside. Raises sqlite3.Error or OSError.
        """
        return cls(path, limits or Limits(), busy, bad)

    def record(self, results: Sequence[ResultLike], at: dt.datetime) -> None:
        """Write down what one review found at a moment in UTC."""
        if results:
            self.note([Line(None, 0, pack(results, ticks(at)))])

    def note(self, lines: Sequence[Line]) -> None:
        """Write lines down as they are: from then on they count. Raises sqlite3.Error; then nothing of it is there,
        and it may be tried again."""
        if not lines:
            return
        if len(lines) == 1:
            self._connection.execute(_NOTE, lines[0])
        else:
            with self._stroke() as connection:
                connection.executemany(_NOTE, lines)
        self.unsettled += len(lines)

    def settle(self, most: int = MANY) -> bool:
        """Fold some of the lines into records, the first first; whether there are more. Raises sqlite3.Error."""
        try:
            return self._settle(most)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            check(self._connection)  # it could have run out of numbers, of which folding makes no more
            if most == 1:
                raise
        self._fold()
        return self.settle(max(1, most // 10))

    def _settle(self, most: int) -> bool:
        with self._stroke(SETTLED) as connection:
            found = connection.execute(
                "SELECT id, source, upto, line FROM fresh ORDER BY id LIMIT ?", (most,)
            ).fetchall()
            connection.execute("DELETE FROM fresh WHERE id <= ?", (found[-1][0] if found else 0,))
            folded = _folded(line for *_, line in found)
            revision = next_revision(connection) if folded else 0
            added = sum(put(connection, key, record, revision) for key, record in folded.items())
            now = ticks(dt.datetime.now(dt.UTC))
            for source, upto in {source: upto for _, source, upto, _ in found if source}.items():
                connection.execute("INSERT OR REPLACE INTO taken VALUES (?, ?, ?)", (source, upto, now))
        self._count += added
        self._writes += len(found)
        self.unsettled = max(0, self.unsettled - len(found)) if len(found) == most else 0
        return self.unsettled > 0

    def taken(self) -> dict[str, int]:
        """How far the lines of each source were written down."""
        return taken(self._connection)

    def tidy(self, now: dt.datetime | None = None) -> bool:
        """A piece of what keeps the journal within its limits; whether more is to be done. Raises sqlite3.Error."""
        if self._writes >= RECOUNT:
            self._recount()
        if self._count > self.limits.max_records or size_of(self._connection) > self.limits.max_bytes:
            return self._fold()
        if now is not None or time.monotonic() - self._expired >= EXPIRY:
            return self._expire(now or dt.datetime.now(dt.UTC))
        return self._check()

    def make_room(self) -> None:
        """Where nothing can be added any more. Raises sqlite3.Error where that is not for this to mend."""
        self.settle()
        while self.tidy():
            pass

    def reopen(self) -> None:
        """Begin again where the file turned out to be damaged, or went away. Raises as `open` does."""
        self.close()
        self._begin()

    def is_there(self) -> bool:
        """Whether what is written goes into the file at the path, and not into one that was taken away."""
        try:
            log = self.path.with_name(self.path.name + "-wal")
            return self.path.stat().st_ino == self.inode and log.exists() and kind_of(self.path) == "ours"
        except OSError:
            return False

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _fold(self) -> bool:
        with self._stroke(FOLDED) as connection:
            fewer = fold_some(connection, self.limits)
            forget_the_gone(connection, self.limits)
        self._connection.execute(f"PRAGMA incremental_vacuum({PAGES})").fetchall()
        self._recount()
        return fewer > 0

    def _expire(self, now: dt.datetime) -> bool:
        with self._stroke(FOLDED) as connection:
            touched = expire_some(connection, self.limits, now)
            connection.execute("DELETE FROM taken WHERE at < ?", (ticks(now - STALE),))
        self._recount()
        if not touched:
            self._expired, self._unchecked = time.monotonic(), 0
            self._connection.execute(f"PRAGMA incremental_vacuum({PAGES})").fetchall()
        return touched > 0

    def _check(self) -> bool:
        """Read a piece of what readers read: only so is it known that they can. Whether there is more."""
        if self._unchecked is None:
            return False
        found = list(select(self._connection, "WHERE id > ? ORDER BY id LIMIT ?", (self._unchecked, CHUNK)))
        self._unchecked = found[-1].id if found else None
        if not found:
            check(self._connection)
            gone_since(self._connection, 0)
            taken(self._connection)
        return bool(found)

    def _begin(self, bad: int = 0) -> None:
        opened = open_for_writing(self._asked, self._busy, bad)
        self._connection, self.path, self.notices = opened.connection, opened.path, opened.notices
        self.inode = self.path.stat().st_ino
        self._page = int(self._connection.execute("PRAGMA page_size").fetchone()[0])
        self._allow(NOTED)
        self._recount()

    def _recount(self) -> None:
        self._count = int(self._connection.execute("SELECT count(*) FROM records").fetchone()[0])
        self._writes = 0
        self.unsettled = int(self._connection.execute("SELECT count(*) FROM fresh").fetchone()[0])

    @contextlib.contextmanager
    def _stroke(self, room: float = NOTED) -> Iterator[sqlite3.Connection]:
        """One transaction, in which the file may grow to so many times its limit."""
        connection = self._connection
        if room != NOTED:
            self._allow(room)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            if room != NOTED:
                self._allow(NOTED)

    def _allow(self, room: float) -> None:
        self._connection.execute(f"PRAGMA max_page_count={max(64, int(self.limits.max_bytes * room) // self._page)}")


def _folded(lines: Iterable[bytes]) -> dict[str, Record]:
    """Raises Unsound for lines that nobody can have written; others that are none say nothing."""
    try:
        folded = fold_lines(lines)
    except RecursionError:
        raise Unsound("a line nests too deeply") from None
    return {key: record for key, record in folded.items() if is_sound(record)}


def _holds(record: Record, values: Mapping[str, object]) -> bool:
    return all(getattr(record, name) == value for name, value in values.items())


def read(path: Path, *, since: dt.datetime | None = None) -> Iterator[Record]:
    """All records of a journal that were seen then or later. Raises NotAJournal."""
    return JournalReader(path).records(since=since)
