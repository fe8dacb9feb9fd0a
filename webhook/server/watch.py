"""One thread in each worker that notices changed files, and takes what they hold into use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from watchfiles import watch

from webhook.server.shared import Flags

TICK = 0.5
"""Seconds between two looks at whether a reload was asked for."""

DEBOUNCE_MS = 200


class Watcher(threading.Thread):
    """Calls `check(force)` when a folder has changed, when a reload was asked for, and at every interval.

    Notifications only wake it; what counts is the comparison that `check` makes. So a file system that notifies of
    nothing costs an interval and no more.
    """

    def __init__(
        self, check: Callable[[bool], None], folders: Sequence[Path], *, interval: float, flags: Flags, log: Any
    ) -> None:
        super().__init__(name="watcher", daemon=True)
        self._check = check
        self._folders = [folder for folder in folders if folder.is_dir()]
        self._interval = interval
        self._flags = flags
        self._log = log
        self._ended = threading.Event()

    def stop(self) -> None:
        self._ended.set()

    def run(self) -> None:
        # The first tick counts as a change: something may have happened before the notifications began.
        reloads, checked = self._flags.reloads, -self._interval
        for changed in self._ticks():
            if self._ended.is_set():
                return
            asked, now = self._flags.reloads, time.monotonic()
            if not (changed or asked != reloads or now - checked >= self._interval):
                continue
            try:
                self._check(asked != reloads)
            except Exception as error:  # the next change may be better; what is in force stays in force
                self._log.error("reload failed", exc_info=error)
            reloads, checked = asked, time.monotonic()

    def _ticks(self) -> Iterator[bool]:
        """Whether something changed, at least every TICK seconds."""
        if self._folders:
            try:
                for changes in watch(
                    *self._folders,
                    watch_filter=None,
                    debounce=DEBOUNCE_MS,
                    rust_timeout=int(TICK * 1000),
                    yield_on_timeout=True,
                    stop_event=self._ended,
                    raise_interrupt=False,
                ):
                    yield bool(changes)
            except (OSError, RuntimeError) as error:
                self._log.warning(
                    "no notifications of changed files", error=type(error).__name__, seconds=self._interval
                )
        while not self._ended.wait(min(TICK, self._interval)):
            yield False
