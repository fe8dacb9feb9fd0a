"""A sandbox's folder and its programs, both looked after by a supervisor that outlives a crash of ours."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from webhook.sandbox.errors import SandboxError

_PREFIX = "fieldwarden-sandbox-"
_ROOM = 1 << 30  # bytes that must be free in /dev/shm; etcd alone reserves 128 MiB
_YOUNG = 60  # seconds in which a folder may still lack its lock


class Processes:
    """Programs that end with this object, with this process, or with their supervisor, whichever comes first."""

    def __init__(self) -> None:
        base = _base()
        _sweep(base)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._talk = threading.Lock()
        script = Path(__file__).with_name("supervisor.py")
        # The supervisor inherits the locked file: while it lives, nobody takes the folder for a dead sandbox's.
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._supervisor = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-S", str(script), str(os.getpid()), str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for us; it ends when we do
                pass_fds=(lock.fileno(),),
                text=True,
                bufsize=1,
            )

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None, grace: float = 0) -> int:
        """Start a program; its number. `grace`: seconds between SIGTERM and SIGKILL at its end, 0 for SIGKILL at once."""
        whole = dict(os.environ if env is None else env)
        answer = self._ask({"start": name, "argv": list(argv), "env": whole, "grace": grace})
        return int(str(answer["pid"]))

    def ended(self, name: str) -> bool:
        return self._ask({"poll": name})["status"] is not None

    def stop(self, name: str) -> None:
        self._ask({"stop": name})

    def log(self, name: str) -> str:
        """The last lines of what a program printed."""
        try:
            lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(lines[-15:])

    def close(self) -> None:
        """End all programs and remove the folder. Fine to call twice."""
        if self._supervisor.stdin and not self._supervisor.stdin.closed:
            self._supervisor.stdin.close()
        try:
            self._supervisor.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()  # takes the programs along
            self._supervisor.wait()
        if self._supervisor.stdout:
            self._supervisor.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, command: Mapping[str, object]) -> dict[str, object]:
        stdin, stdout = self._supervisor.stdin, self._supervisor.stdout
        with self._talk:
            try:
                if stdin is None or stdout is None or stdin.closed:
                    raise BrokenPipeError
                stdin.write(json.dumps(command) + "\n")
                line = stdout.readline()
            except BrokenPipeError:
                line = ""
        if not line:
            raise SandboxError("The sandbox is down.")
        answer: dict[str, object] = json.loads(line)
        if "error" in answer:
            raise SandboxError(f"The sandbox could not {next(iter(command))} a program: {answer['error']}")
        return answer


def _base() -> Path:
    """Memory where there is plenty of it, else the system's folder for temporary files; TMPDIR has the last word."""
    memory = Path("/dev/shm")  # noqa: S108
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK):
        free = os.statvfs(memory)
        if free.f_bavail * free.f_frsize >= _ROOM:
            return memory
    return Path(tempfile.gettempdir())


def _sweep(base: Path) -> None:
    """Remove the folders of sandboxes whose supervisor was killed."""
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            with (folder / "lock").open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:
            _sweep_unlocked(folder)
        except OSError:
            continue  # held by a living supervisor, or another user's


def _sweep_unlocked(folder: Path) -> None:
    try:
        if time.time() - folder.stat().st_mtime > _YOUNG:
            shutil.rmtree(folder, ignore_errors=True)
    except FileNotFoundError:
        return
