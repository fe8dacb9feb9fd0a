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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from webhook.cluster.mirrored import Mirrored, MirrorState
from webhook.cluster.reporter import ReporterState

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
    def finishing(self) -> bool:
        """Whether nothing more will be found: what was is to be told, and no more."""
        return self._page[2] != 0

    def finish(self) -> None:
        self._page[2] = 1

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
    """A private folder that lives as long as the server: statuses, metric files, what is mirrored of a cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics = folder / "metrics"
        self.workers = folder / "workers"
        self.good = folder / "good"
        self.mirrored = Mirrored(folder / "cluster")
        self.scratch = folder / "scratch"
        self._mirror = folder / "mirror.json"
        self._reporter = folder / "reporter.json"

    @classmethod
    @contextlib.contextmanager
    def create(cls) -> Iterator[Runtime]:
        """The folder goes away with the process that made it, not with one forked from it."""
        owner = os.getpid()
        runtime = cls(Path(tempfile.mkdtemp(prefix="fieldwarden-")))
        runtime.metrics.mkdir()
        runtime.workers.mkdir()
        runtime.good.mkdir()
        runtime.mirrored.folder.mkdir()
        runtime.scratch.mkdir()
        try:
            yield runtime
        finally:
            if os.getpid() == owner:
                shutil.rmtree(runtime.folder, ignore_errors=True)

    def report(self, status: WorkerStatus) -> None:
        """Whole or not at all: the file is renamed into place."""
        _write(self.workers / f"{status.pid}.json", asdict(status))

    def forget(self, pid: int) -> None:
        (self.workers / f"{pid}.json").unlink(missing_ok=True)

    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Of the workers that are alive, oldest process id first."""
        found = []
        for file in sorted(self.workers.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                found.append(_status(json.loads(file.read_text(encoding="utf-8"))))
        return tuple(status for status in found if _alive(status.pid))

    def report_mirror(self, state: MirrorState) -> None:
        """Said by the mirror's own process."""
        _write(self._mirror, {"pid": os.getpid(), "state": asdict(state)})

    def mirror(self) -> MirrorState:
        """What the mirror said last."""
        try:
            said = json.loads(self._mirror.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return MirrorState()
        state = MirrorState(**_tuples(said["state"]))
        if not state.failure and not _alive(said["pid"]):
            return replace(state, failure="the process that follows it has ended and is started again")
        return state

    def report_reporter(self, state: ReporterState) -> None:
        """Said by the reporter's own process."""
        _write(self._reporter, {"pid": os.getpid(), "state": asdict(state)})

    def reporter(self) -> ReporterState:
        """What the reporter said last."""
        try:
            said = json.loads(self._reporter.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ReporterState()
        state = ReporterState(**_tuples(said["state"]))
        if not state.failure and not _alive(said["pid"]):
            return replace(state, failure="the process that does it has ended and is started again")
        return state


def _write(target: Path, data: dict[str, Any]) -> None:
    draft = target.with_suffix(".new")
    draft.write_text(json.dumps(data), encoding="utf-8")
    draft.replace(target)


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def _status(data: dict[str, Any]) -> WorkerStatus:
    return WorkerStatus(**_tuples(data))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
