"""Journals, reporters as processes of their own, and what stands in a cluster's reports."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.reports_cluster.world import seen_once
from webhook.cluster.report_needs import Publishing
from webhook.cluster.report_objects import FORMATS, Format, is_ours, read
from webhook.cluster.report_placing import Bounds
from webhook.cluster.reporter import ReporterSettings, ReporterState, run, settle
from webhook.report.journal import Journal, JournalReader, Limits
from webhook.report.records import Record
from webhook.sandbox import Sandbox

Object = dict[str, Any]
Counted = Counter[tuple[str, str]]


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def event(number: int, namespace: str, **more: Any) -> Record:
    return seen_once(number, namespace, now(), **more)


def write(journal: Journal, *records: Record) -> None:
    """As a server writes them down, each by itself, and settles them."""
    for record in records:
        journal.record([SimpleNamespace(**asdict(record), kind=record.event)], record.last)
    while journal.settle():
        pass


class Recorder:
    """A journal that is written to."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "journal.db"
        self.journal = Journal.open(self.path, limits or Limits())

    def record(self, *records: Record) -> None:
        write(self.journal, *records)

    @property
    def counted(self) -> Counted:
        return counted_in(self.path)


def counted_in(path: Path) -> Counted:
    """By object and day."""
    told: Counted = Counter()
    for record in JournalReader(path).records(dry_run=False):
        told.update({(f"{record.namespace}/{record.name}", day): count for day, count in record.days.items()})
    return told


def reports(sandbox: Sandbox, form: Format, namespace: str | None = None) -> list[Object]:
    """Of all namespaces and of the cluster, or of one namespace; "" is the cluster."""
    if namespace is None:
        paths = [f"{form.root}/{form.plural}", f"{form.root}/{form.cluster_plural}"]
    else:
        paths = [form.collection(namespace)]
    found = [sandbox.request("GET", path) for path in paths]
    assert all(reply.status == 200 for reply in found), found
    return [item for reply in found for item in reply.body["items"]]


def counted(sandbox: Sandbox, form: Format, name: str | None = None) -> Counted:
    """By object and day, what the reports tell; of this name, where one is given."""
    told: Counted = Counter()
    for item in reports(sandbox, form):
        if is_ours(item) and (name is None or item["metadata"]["name"].startswith(name)):
            for row in read(item).rows.values():
                record = row.record
                told.update({(f"{record.namespace}/{record.name}", day): n for day, n in record.days.items()})
    return told


class Process:
    """A reporter in a process of its own, which may be killed."""

    def __init__(self, sandbox: Sandbox, journal: Path, form: str, name: str, **more: Any) -> None:
        self.folder = journal.parent
        self.state_file = self.folder / "state.json"
        self.stop_file = self.folder / "stop"
        self.stop_file.unlink(missing_ok=True)
        self.state_file.unlink(missing_ok=True)
        user = more.pop("user", "admin")
        told = {
            "kubeconfig": str(sandbox.kubeconfig(user)),
            "journal": str(journal),
            "form": form,
            "name": name,
            **more,
        }
        self.process: SpawnProcess = multiprocessing.get_context("spawn").Process(
            target=_report, args=(told, str(self.folder)), daemon=True
        )
        self.process.start()

    @property
    def state(self) -> ReporterState:
        try:
            told = json.loads(self.state_file.read_text())
        except FileNotFoundError:
            return ReporterState()
        return ReporterState(**{name: tuple(v) if isinstance(v, list) else v for name, v in told.items()})

    def finish(self) -> None:
        """As at SIGTERM: it tells once more what there is, and ends."""
        self.stop_file.touch()
        self.process.join(60)
        assert self.process.exitcode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.join(60)


@contextlib.contextmanager
def reporting_with(*arguments: Any, **more: Any) -> Iterator[Process]:
    process = Process(*arguments, **more)
    try:
        yield process
    finally:
        process.kill()


class _Quiet:
    def said(self, *_: object, **__: object) -> None:
        return None

    debug = info = warning = error = said


def _report(told: dict[str, Any], folder: str) -> None:
    """What the child does."""
    place, parent = Path(folder), os.getppid()
    bounds = Bounds(**told["bounds"]) if "bounds" in told else Bounds()
    form = FORMATS.get(told["form"])
    publishing = Publishing(form, told["name"], told.get("owner", ""), bounds=bounds) if form else None

    def say(state: ReporterState) -> None:
        draft = place / "state.new"
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(place / "state.json")

    run(
        ReporterSettings(
            journal=Path(told["journal"]),
            publishing=publishing,
            events=told.get("events", False),
            interval=told.get("interval", 0.2),
            kubeconfig=Path(told["kubeconfig"]),
            report=say,
            alive=lambda: os.getppid() == parent,
            finishing=(place / "stop").exists,
            settle=lambda: settle(Path(told["journal"]), Limits()),
            log=_Quiet(),
        )
    )


class Busy:
    """Records into journals, each in a thread, until told to stop."""

    def __init__(self, recorders: list[Recorder], namespaces: list[str]) -> None:
        self._stop = threading.Event()
        self._namespaces = namespaces
        self._threads = [threading.Thread(target=self._record, args=(one.path,)) for one in recorders]

    def __enter__(self) -> Busy:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _record(self, path: Path) -> None:
        journal = Journal.open(path, Limits())
        number = 0
        while not self._stop.wait(0.01):
            number += 1
            namespace = self._namespaces[number % len(self._namespaces)]
            write(journal, event(number % 40, namespace))
        journal.close()
