"""The journal's place in the first process: who has which ring, and how it ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from webhook.server.inbox import Inbox, Sender
from webhook.server.journaling import LAST_WORDS, Writer, write_journal
from webhook.server.settings import Settings

SPARE = 2
"""Rings beyond one for each worker: one that ends may still be there when the next one begins."""

MAX_BELLS = 256
"""In all; each takes two of the files that a process may have open."""


class Desk:
    """Made before any fork. Without a journal it hands out nothing."""

    def __init__(self, settings: Settings, log: Any) -> None:
        self._journal, self._log = settings.journal, log
        self.inbox: Inbox | None = None
        self._free: list[int] = []
        self._given = 0
        if self._journal is not None:
            rings = settings.workers + SPARE
            self.inbox = Inbox(rings, max(1, min(settings.threads, MAX_BELLS // rings)))
            self._free = list(range(rings))

    def hire(self, worker: Any) -> None:
        """Before the fork of a worker: it takes a ring with it."""
        if self.inbox:
            worker.journal_ring = self._given = self._free.pop(0) if self._free else self.inbox.none

    def dismiss(self, worker: Any) -> None:
        """After its end: what it left in its ring is still there, and the next worker goes on behind it."""
        if self.inbox and worker.journal_ring != self.inbox.none:
            self._free.append(worker.journal_ring)

    def sender(self) -> Sender | None:
        """In a worker, once."""
        return Sender(self.inbox, self._given) if self.inbox else None

    def write(self, alive: Callable[[], bool]) -> None:
        """In a process of its own."""
        if self.inbox and self._journal:
            write_journal(self.inbox, self._journal, alive, self._log)

    def close(self, pid: int) -> None:
        """When no worker is left: everything is written, or it is said how much could not be. `pid` of the writer."""
        if not self.inbox or not self._journal:
            return
        self.inbox.board.close()
        self.inbox.door.ring()
        if pid:
            _await(pid, LAST_WORDS + 1)
        if self.inbox.waiting and not _runs(pid):
            Writer(self.inbox, self._journal, lambda: True, self._log).run()
        if left := self.inbox.waiting:
            self._log.error("the journal ends without some events", lost=left)


def _await(pid: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
                continue
        return


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return pid > 0
