"""What the processes of one server tell each other: two flags in shared memory, and a status file for each worker."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_RELOADS = struct.Struct("I")
_RELOADS_AT = 8


class Flags:
    """One page of memory, made before any fork: every process sees what the first one writes."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self.owner = os.getpid()

    @property
    def draining(self) -> bool:
        return self._page[0] != 0

    def drain(self) -> None:
        self._page[0] = 1

    @property
    def started(self) -> bool:
        """Whether all workers have once been ready."""
        return self._page[1] != 0

    def start(self) -> None:
        self._page[1] = 1

    @property
    def reloads(self) -> int:
        """How often a reload was asked for."""
        return int(_RELOADS.unpack_from(self._page, _RELOADS_AT)[0])

    def ask_reload(self) -> None:
        _RELOADS.pack_into(self._page, _RELOADS_AT, self.reloads + 1)


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """What one worker judges by. Times are seconds since the epoch."""

    pid: int
    generation: str
    policies: int
    loaded_at: float
    policy_warnings: tuple[str, ...]
    policy_failure: tuple[str, ...]  # of the newest set, which did not load; empty when it did
    certificate_expires: float
    certificate_failure: str


class Runtime:
    """A private folder that lives as long as the server: statuses and metric files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics = folder / "metrics"
        self.workers = folder / "workers"
        self.good = folder / "good"

    @classmethod
    @contextlib.contextmanager
    def create(cls) -> Iterator[Runtime]:
        """The folder goes away with the process that made it, not with one forked from it."""
        owner = os.getpid()
        runtime = cls(Path(tempfile.mkdtemp(prefix="fieldwarden-")))
        runtime.metrics.mkdir()
        runtime.workers.mkdir()
        runtime.good.mkdir()
        try:
            yield runtime
        finally:
            if os.getpid() == owner:
                shutil.rmtree(runtime.folder, ignore_errors=True)

    def report(self, status: WorkerStatus) -> None:
        """Whole or not at all: the file is renamed into place."""
        target = self.workers / f"{status.pid}.json"
        draft = target.with_suffix(".new")
        draft.write_text(json.dumps(asdict(status)), encoding="utf-8")
        draft.replace(target)

    def forget(self, pid: int) -> None:
        (self.workers / f"{pid}.json").unlink(missing_ok=True)

    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Of the workers that are alive, oldest process id first."""
        found = []
        for file in sorted(self.workers.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                found.append(_status(json.loads(file.read_text(encoding="utf-8"))))
        return tuple(status for status in found if _alive(status.pid))


def _status(data: dict[str, Any]) -> WorkerStatus:
    lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
    return WorkerStatus(**{**data, **lists})


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
