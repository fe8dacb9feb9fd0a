"""The reporter: a process that tells the cluster what stands in the journal, as reports and as Events.

While the API server is away nothing is lost: the journal is there, and what has changed since is told later.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import random
import socket
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from webhook.cluster.access import Unconfigured
from webhook.cluster.api import Api
from webhook.cluster.errors import ApiError
from webhook.cluster.event_writer import Events
from webhook.cluster.report_kinds import Kinds
from webhook.cluster.report_needs import NotServed, Ownerless, Publishing
from webhook.cluster.report_writer import Publisher
from webhook.report.journal import Journal, JournalReader, Limits, NotAJournal
from webhook.report.journal_file import SCHEMA, kind_of

TICK = 0.2
"""Seconds between two looks at whether it is to end."""

RESYNC = 600.0
"""Seconds after which all reports are looked at again, whatever the journal says."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before it is tried again after a failure; doubled each time."""

STALE = dt.timedelta(minutes=30)
"""What happened longer ago is no news: there is no Event for it any more."""

LAST_TURNS = 3
"""In the end."""


@dataclass(frozen=True, slots=True)
class ReporterState:
    """How it goes, for probes and metrics."""

    failure: str = ""  # why nothing can be reported; empty while it can
    troubles: tuple[str, ...] = ()  # what could not be reported in one namespace or another
    contact: float = 0.0  # when everything was last reported, in seconds since the epoch
    reports: int = 0
    rows: int = 0
    writes: int = 0
    conflicts: int = 0
    events: int = 0
    held_back: int = 0  # repeats that were too many to be told at once


@dataclass(frozen=True, slots=True)
class ReporterSettings:
    """What a reporter is told when it is started. `publishing` is None for no reports.

    `report` is told how it goes; `alive` says whether anybody wants to know, `finishing` that nothing more will come.
    """

    journal: Path
    publishing: Publishing | None
    events: bool
    interval: float
    kubeconfig: Path | None
    report: Callable[[ReporterState], None]
    alive: Callable[[], bool]
    finishing: Callable[[], bool]
    settle: Callable[[], None]  # in the end, whatever the journal has not put into records yet
    log: Any


class Reporter:
    """One turn at a time."""

    def __init__(self, api: Api, settings: ReporterSettings) -> None:
        self.state = ReporterState()
        self._api, self._settings = api, settings
        self._kinds = Kinds(api)
        self._publisher: Publisher | None = None
        self._events = Events(api, self._kinds, socket.gethostname()) if settings.events else None
        self._told: Told | None = None
        self._resync = 0.0
        self._pause = 0.0
        self._ending = False

    def finish(self) -> None:
        """Tell once more what there is, with no time to look at everything again."""
        self._ending = True
        for _ in range(LAST_TURNS):
            if not self._settings.alive():
                return
            self.turn()
            if self.is_done:
                return

    def turn(self) -> float:
        """Tell what is new; seconds until the next turn. Never raises for what the API server or the journal say."""
        failure = ""
        try:
            reader = JournalReader(journal_at(self._settings.journal))
            self._publish(reader)
            self._tell(reader)
        except NotAJournal as error:
            failure = "" if kind_of(reader.path) == "none" else str(error)
        except NotServed as error:
            failure = f"{error}: install its definitions, or choose another format"
            self._pause = LONGEST_PAUSE / 2
        except (ApiError, Ownerless, OSError, sqlite3.Error) as error:
            failure = str(error)
        self._say(failure)
        if not failure:
            self._pause = 0.0
            return self._settings.interval * random.uniform(0.9, 1.1)  # noqa: S311 - so that replicas do not meet
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        return self._pause * random.uniform(0.8, 1.0)  # noqa: S311

    @property
    def is_done(self) -> bool:
        """Whether all has been told."""
        return not self.state.failure and (self._publisher is None or self._publisher.is_settled)

    def _publish(self, reader: JournalReader) -> None:
        settings = self._settings.publishing
        if settings is None:
            return
        if self._publisher is None or self._publisher.journal != reader.id:
            self._publisher = Publisher(self._api, reader, settings, self._kinds)
        now = dt.datetime.now(dt.UTC)
        if self._ending:
            self._publish_last(self._publisher, now)
        elif self._publisher.is_settled and time.monotonic() < self._resync:
            self._publisher.round(now)
        else:
            self._publisher.resync(now, self._settings.finishing)
            self._resync = time.monotonic() + RESYNC * random.uniform(0.8, 1.2)  # noqa: S311

    def _publish_last(self, publisher: Publisher, now: dt.datetime) -> None:
        """What has changed; everything only where it must be."""
        if publisher.has_begun:
            publisher.round(now)
        if not publisher.is_settled:
            publisher.resync(now)

    def _tell(self, reader: JournalReader) -> None:
        if self._events is None:
            return
        if self._told is None or self._told.journal != reader.id:
            self._told = Told.of(reader)
            self._told.skip_known(reader, self._events)
        changes = reader.changed_since(self._told.revision)
        limit = dt.datetime.now(dt.UTC) - STALE
        for key, record in changes.records:
            (self._events.take if record.last >= limit else self._events.skip)(key, record)
        self._told.reach(changes.revision)

    def _say(self, failure: str) -> None:
        log, publisher, events = self._settings.log, self._publisher, self._events
        if failure and failure != self.state.failure:
            log.warning("what was found cannot be reported", why=failure)
        if not failure and self.state.failure:
            log.info("what was found is reported again")
        state = replace(self.state, failure=failure, contact=self.state.contact if failure else time.time())
        if publisher is not None:
            tally = publisher.tally
            troubles = [f"{namespace or 'the cluster'}: {why}" for namespace, why in sorted(tally.troubles.items())]
            state = replace(
                state,
                troubles=tuple(troubles[:10]),
                reports=publisher.reports,
                rows=publisher.rows,
                writes=tally.writes,
                conflicts=tally.conflicts,
            )
        if events is not None:
            told = (f"Events: {events.trouble}",) if events.trouble else ()
            state = replace(state, events=events.written, held_back=events.held_back, troubles=(*state.troubles, *told))
        for trouble in state.troubles:
            if trouble not in self.state.troubles:
                log.warning("something cannot be reported", trouble=trouble)
        self.state = state
        self._settings.report(state)


@dataclass(slots=True)
class Told:
    """Up to which revision of a journal there were Events: kept beside it, for the next process."""

    file: Path
    journal: str
    revision: int

    @classmethod
    def of(cls, reader: JournalReader) -> Told:
        file, journal = reader.path.with_name(f"{reader.path.name}.told"), reader.id
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            if told["journal"] == journal:
                return cls(file, journal, int(told["revision"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return cls(file, journal, 0)

    def skip_known(self, reader: JournalReader, events: Events) -> None:
        """How often something was counted by then is not known exactly: what comes after is told by and by."""
        if self.revision:
            new = {key for key, _ in reader.changed_since(self.revision).records}
            for key, record in reader.changed_since(0).records:
                if key not in new:
                    events.skip(key, record)

    def reach(self, revision: int) -> None:
        if revision == self.revision:
            return
        self.revision = revision
        draft = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # then an Event may come twice
            draft.write_text(json.dumps({"journal": self.journal, "revision": revision}), encoding="utf-8")
            draft.replace(self.file)


def settle(journal: Path, limits: Limits) -> None:
    """Once nobody writes it any more. What fails here is told by whoever reports from this journal next."""
    with contextlib.suppress(sqlite3.Error, OSError):
        opened = Journal.open(journal, limits, busy=1.0)
        try:
            while opened.settle():
                continue
        finally:
            opened.close()


def run(settings: ReporterSettings) -> None:
    """Report until nobody wants to know; when nothing more will come, once more."""
    try:
        api = Api.connect(settings.kubeconfig, agent="fieldwarden-reporter")
    except Unconfigured as error:
        settings.log.error("the cluster cannot be told what was found", why=str(error))
        settings.report(ReporterState(failure=str(error)))
        return
    reporter = Reporter(api, settings)
    settings.report(reporter.state)
    due = 0.0
    while settings.alive() and not settings.finishing():
        if time.monotonic() >= due:
            due = time.monotonic() + reporter.turn()
        time.sleep(TICK)
    settings.settle()
    reporter.finish()


def journal_at(path: Path) -> Path:
    """Where the journal really is: beside a file that is none of ours."""
    return path.with_name(f"{path.name}.schema{SCHEMA}") if kind_of(path) in ("newer", "foreign") else path
