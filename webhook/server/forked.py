"""A process beside the workers that is started again whenever it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before it is started again where it ended soon after its start; doubled each time."""

STEADY = 60.0
"""Seconds that it must have run for its end to be no sign of more: it is started again at once."""


class Forked:
    """`run` is what the child does; when it returns or raises, the child ends. For a first process with one thread."""

    def __init__(
        self, name: str, run: Callable[[], None], log: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self.pid = 0
        self._run, self._log, self._clock = run, log, clock
        self._started = self._due = clock()
        self._pause = 0.0

    def keep(self) -> None:
        """Start it, if it does not run and its time has come. Whoever calls this reaps children."""
        now = self._clock()
        if self.pid:
            if _runs(self.pid):
                return
            self.pid = 0
            steady = now - self._started >= STEADY
            self._due = now if steady else now + self._pause
            self._pause = 0.0 if steady else min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            self._log.warning(f"the {self.name} process has ended and is started again", seconds=round(self._due - now))
        if now >= self._due:
            self._started = now
            self.pid = os.fork() or self._child()

    def wait(self, seconds: float) -> None:
        """Until it has ended by itself, but not longer."""
        end = self._clock() + seconds
        while self.pid and self._clock() < end:
            try:
                if os.waitpid(self.pid, os.WNOHANG) != (0, 0):
                    self.pid = 0
            except ChildProcessError:
                self.pid = 0
            else:
                time.sleep(0.01)

    def kill(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _child(self) -> int:
        """Signals to stop are for the process that forked it."""
        try:
            for number in (
                signal.SIGTERM,
                signal.SIGINT,
                signal.SIGHUP,
                signal.SIGQUIT,
                signal.SIGUSR1,
                signal.SIGUSR2,
            ):
                signal.signal(number, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._run()
        except BaseException as error:
            self._log.error(f"the {self.name} process ends", exc_info=error)
        finally:
            os._exit(1)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
