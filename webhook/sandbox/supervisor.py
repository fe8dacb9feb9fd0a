"""The sandbox's caretaker: a small process of its own that starts programs and takes them down with their folder.

Run as a script (standard library only, no site-packages):

    python -I -S supervisor.py PARENT_PID FOLDER

It reads one JSON command a line from standard input and answers each with one JSON line:

    {"start": NAME, "argv": [...], "env": {...}, "grace": SECONDS}  ->  {"pid": N} or {"error": TEXT}
    {"poll": NAME}                                                  ->  {"status": null | N}
    {"stop": NAME}                                                  ->  {"status": N}

Output of NAME goes to FOLDER/NAME.log. The end of standard input, the end of the parent (however it died, also when a
forked copy of it still holds the pipe) or SIGTERM ends everything: each program's process group gets SIGTERM and, after
its grace, SIGKILL, then FOLDER is removed. Should this process itself be killed, Linux kills the programs, and the next
sandbox removes the folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_LOOK = 0.5  # seconds between two looks at the parent


def _die_with_parent() -> Callable[[], None] | None:
    """What a child runs before exec. PDEATHSIG is tied to the thread that forks: this process has only one."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    supervisor = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:  # it died before we asked
            os._exit(1)

    return ask


class Supervisor:
    """The programs it started, by name, in order of start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
        self._before_exec = _die_with_parent()

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        try:
            if name := command.get("start"):
                return {"pid": self._start(name, command)}
            if name := command.get("poll"):
                return {"status": self._programs[name][0].poll()}
            if name := command.get("stop"):
                return {"status": self._stop([name])}
        except (OSError, KeyError) as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {"error": "no such command"}

    def stop_all(self) -> None:
        self._stop(list(reversed(self._programs)))

    def _start(self, name: str, command: dict[str, Any]) -> int:
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                command["argv"],
                env=command["env"],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=self._before_exec,  # noqa: PLW1509 - one thread only
            )
        self._programs[name] = process, float(command.get("grace", 0))
        return process.pid

    def _stop(self, names: list[str]) -> int | None:
        """Programs without grace are killed at once, in the order given; the status of the last one."""
        status = None
        for name in names:
            process, grace = self._programs.pop(name)
            if process.poll() is None and grace:
                _signal_group(process, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=grace)
            _signal_group(process, signal.SIGKILL)  # also what the program left behind in its group
            status = process.wait()
        return status


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _serve(supervisor: Supervisor, parent: int) -> None:
    """Until the input or the parent ends."""
    pending = b""
    while os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], _LOOK)
        if not ready:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            return
        pending += chunk
        *lines, pending = pending.split(b"\n")
        for line in lines:
            os.write(1, json.dumps(supervisor.answer(json.loads(line))).encode() + b"\n")


def _remove(folder: Path) -> None:
    """A program that is just dying may still create a file: try again for a moment."""
    end = time.monotonic() + 5
    while folder.exists() and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parent, folder = int(sys.argv[1]), Path(sys.argv[2])

    def leave(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    supervisor = Supervisor(folder)
    try:
        _serve(supervisor, parent)
    except BrokenPipeError:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        supervisor.stop_all()
        _remove(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
