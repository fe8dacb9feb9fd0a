"""The process that writes the journal: what all workers found, as fast as the disk takes it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any

from webhook.report.journal import Journal, Line
from webhook.report.journal_file import is_full, is_unsound
from webhook.server.inbox import Inbox, Taken
from webhook.server.settings import JournalAt

MOST = 500
"""Messages of one ring in one transaction."""

IDLE = 1.0
"""Seconds after which it looks around though nobody rang."""

SETTLE = 1.0
"""Seconds between two foldings of what was written down; sooner where there are many lines."""

MANY = 1000

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
"""Seconds before a write that failed is tried again; doubled each time."""

LAST_WORDS = 3.0
"""Seconds that it goes on trying when the server ends and the disk does not take it."""

BUSY = 0.25
"""Seconds that one try waits for another process that holds the journal."""

_PASSING = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL))
"""Failures that say nothing against the file."""


class Writer:
    """Takes from the inbox, writes, and keeps the journal within its limits."""

    def __init__(self, inbox: Inbox, settings: JournalAt, alive: Callable[[], bool], log: Any) -> None:
        self._inbox, self._settings, self._alive, self._log = inbox, settings, alive, log
        self._journal: Journal | None = None
        self._notices: tuple[str, ...] = ()
        self._failure, self._pause, self._due = "", 0.0, 0.0
        self._looked = time.monotonic()
        self._unsure = True
        self._settled = 0.0
        self._bad = 0

    def run(self) -> None:
        """Until the server ends and all is written, or cannot be."""
        while not self._inbox.board.closing and self._alive():
            self._inbox.board.moved()
            now = time.monotonic()
            if now < self._due:  # who rings does not know that it must wait
                time.sleep(min(FIRST_PAUSE, self._due - now))
            elif not self.step() and not self._failure:
                self._inbox.door.wait(IDLE)
        end, self._due = time.monotonic() + LAST_WORDS, 0.0
        while self._inbox.waiting and time.monotonic() < end:
            self.step()
            time.sleep(max(0.0, min(FIRST_PAUSE, self._due - time.monotonic())))

    def step(self) -> bool:
        """Write what there is; whether there is more to do at once. Whoever puts more down meanwhile has rung."""
        try:
            journal = self._opened()
            if self._unsure:
                self._catch_up(journal)
            taken = self._inbox.take(MOST)
            if taken:
                journal.note([*self._lines(taken)])
                self._inbox.done(taken)
            more = self._settle(journal)
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
            return False
        if self._failure:
            self._well()
        return more or any(len(each.messages) == MOST for each in taken)

    def _lines(self, taken: tuple[Taken, ...]) -> Iterator[Line]:
        for each in taken:
            source = self._inbox.source(each.ring)
            for upto, message in each.messages:
                yield Line(source, upto, message)

    def _settle(self, journal: Journal) -> bool:
        """What can wait; a piece at a time. Whether there is more."""
        now = time.monotonic()
        if journal.unsettled < MANY and now < self._settled + SETTLE:
            return False
        if journal.unsettled and journal.settle():
            return True
        if journal.tidy():
            return True
        self._settled = now
        return False

    def _opened(self) -> Journal:
        if self._journal is None:
            journal = Journal.open(self._settings.path, self._settings.limits, busy=BUSY, bad=self._bad)
            self._journal, self._unsure, self._bad = journal, True, 0
            self._notice(journal)
        elif time.monotonic() - self._looked >= IDLE:
            self._looked = time.monotonic()
            if not self._journal.is_there():
                self._close()
                return self._opened()
        return self._journal

    def _catch_up(self, journal: Journal) -> None:
        """A process before this one may have been killed between writing and saying so; a write that was said to have
        failed may be there."""
        known = journal.taken()
        for ring in self._inbox.rings:
            ring.catch_up(known.get(self._inbox.source(ring.number), 0))
        self._unsure = False

    def _failed(self, error: sqlite3.Error | OSError) -> None:
        why, self._unsure = reason(error), True
        if isinstance(error, sqlite3.Error) and is_unsound(error) and self._journal:
            self._bad = self._journal.inode
        if isinstance(error, OSError) or (error.sqlite_errorcode & 0xFF if _coded(error) else 0) not in _PASSING:
            self._close()
        if isinstance(error, sqlite3.Error) and is_full(error) and self._journal:
            with contextlib.suppress(sqlite3.Error):
                self._journal.make_room()
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self._due = time.monotonic() + self._pause
        if why != self._failure:
            self._failure = why
            self._log.error("the journal cannot be written", problem=why)
        self._say()

    def _well(self) -> None:
        self._pause = self._due = 0.0
        self._failure = ""
        self._log.info("the journal is written again")
        self._say()

    def _notice(self, journal: Journal) -> None:
        for notice in journal.notices:
            if notice not in self._notices:
                self._log.warning("the journal", problem=notice)
        self._notices = tuple(dict.fromkeys((*self._notices, *journal.notices)))[-5:]
        self._say()

    def _say(self) -> None:
        told = [f"the journal cannot be written: {self._failure}"] if self._failure else []
        self._inbox.board.fail(bool(self._failure))
        self._inbox.board.say("\n".join((*told, *self._notices)))

    def _close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def close(self) -> None:
        self._close()


def write_journal(inbox: Inbox, settings: JournalAt, alive: Callable[[], bool], log: Any) -> None:
    """For a forked process; ends with the server."""
    writer = Writer(inbox, settings, alive, log)
    try:
        writer.run()
    finally:
        writer.close()


def reason(error: sqlite3.Error | OSError) -> str:
    """In words of this program's or the system's: an error's text may quote what was written."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return {
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_BUSY: "another process holds it",
        sqlite3.SQLITE_LOCKED: "another process holds it",
        sqlite3.SQLITE_CORRUPT: "the file is damaged",
        sqlite3.SQLITE_NOTADB: "the file is damaged",
        sqlite3.SQLITE_IOERR: "the disk does not take it",
        sqlite3.SQLITE_READONLY: "the file may only be read",
        sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    }.get(error.sqlite_errorcode & 0xFF if _coded(error) else 0, type(error).__name__)


def _coded(error: sqlite3.Error) -> bool:
    return hasattr(error, "sqlite_errorcode")
