"""The one sandbox of a user that stays up between commands: where it is noted, and how another command ends it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import IO

from webhook.sandbox.binaries import cache_dir
from webhook.sandbox.errors import SandboxError

_PAUSE = 0.05  # seconds between two looks
_PATIENCE = 1  # seconds; a command that looks locks the note for a moment
UP_ALREADY = "A sandbox is up already; `fieldwarden sandbox down` ends it."
_END = 60  # seconds for a sandbox to go down


@dataclass(frozen=True, slots=True)
class Standing:
    """What other commands need to know of the sandbox that is up. `pid` is of the process that holds it."""

    pid: int
    url: str
    folder: str
    kubeconfig: str
    path: str  # folders with its programs, as on PATH
    webhook: str = ""  # URL of the server beside it, if there is one

    def exports(self) -> str:
        """Shell lines, to be read with `eval`."""
        return (
            f"export KUBECONFIG={quote(self.kubeconfig)}\n"
            f"export KUBECACHEDIR={quote(self.folder)}/kubectl-cache\n"
            f'export PATH={quote(self.path)}:"$PATH"\n'
        )


def _note() -> Path:
    return cache_dir() / "sandbox.json"


@contextmanager
def held() -> Iterator[Note]:
    """Be the one that is up. Raises SandboxError when another is.

    The note counts only as long as its file is locked, so that it needs no tidying after a crash.
    """
    _note().parent.mkdir(parents=True, exist_ok=True)
    with _note().open("a+") as file:
        limit = time.monotonic() + _PATIENCE
        while not _locked(file):
            if time.monotonic() > limit:
                raise SandboxError(UP_ALREADY)
            time.sleep(_PAUSE)
        file.truncate(0)
        try:
            yield Note(_note())
        finally:
            file.truncate(0)


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Note:
    """The file that `held` has locked."""

    path: Path

    def write(self, standing: Standing) -> None:
        with self.path.open("w") as file:
            json.dump(asdict(standing), file)


def current() -> Standing | None:
    """The sandbox that is up and ready, if any."""
    try:
        with _note().open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return Standing(**json.loads(file.read()))
    except (FileNotFoundError, ValueError):  # never written, or not yet
        pass
    return None


def end() -> bool:
    """End the sandbox that is up and wait until it is gone; False when none is. Raises SandboxError when it stays."""
    standing = current()
    if standing is None:
        return False
    os.kill(standing.pid, signal.SIGTERM)
    limit = time.monotonic() + _END
    while current() is not None:
        if time.monotonic() > limit:
            raise SandboxError(f"The sandbox (process {standing.pid}) does not end.")
        time.sleep(_PAUSE)
    return True


def detach(argv: Sequence[str], log: Path) -> Standing:
    """Run a command that brings a sandbox up in a session of its own; returns once it is ready.

    Raises SandboxError with what it printed when it ends instead.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        process = subprocess.Popen(  # noqa: S603
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        while True:
            standing = current()
            if standing is not None and standing.pid == process.pid:
                return standing
            if process.poll() is not None:
                raise SandboxError(log.read_text(errors="replace").strip().removeprefix("Error: "))
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
