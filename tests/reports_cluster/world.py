"""A cluster and journals in memory, where everything that can go wrong goes wrong as it is told to."""

from __future__ import annotations

import copy
import datetime as dt
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.cluster.errors import Conflict, Denied, Missing, Unreachable
from webhook.cluster.report_merging import Stored
from webhook.cluster.report_needs import NotServed, Publishing
from webhook.cluster.report_objects import GONE, MANAGED, OPENREPORTS, Format, is_ours, read
from webhook.cluster.report_placing import Bounds
from webhook.cluster.report_writer import AGAIN, SELDOM, Publisher
from webhook.report.folding import coarser, fold, key_of, merged
from webhook.report.journal import Changes, Gone
from webhook.report.records import Record

Object = dict[str, Any]
START = dt.datetime(2026, 11, 2, 9, tzinfo=dt.UTC)
NAMESPACES = ("", "team-a", "team-b")
TINY = Bounds(rows=3, add=6_000, most=12_000)


class Crash(BaseException):
    """The process that asked is killed."""


def seen_once(number: int, namespace: str, at: dt.datetime, **more: Any) -> Record:
    """One event of the writer with that number."""
    told: dict[str, Any] = {
        "policy": "flux",
        "rule": "labels",
        "event": "change",
        "resource": "deployments.apps" if namespace else "nodes",
        "namespace": namespace,
        "name": f"app-{number}",
        "manager": "kubectl-edit",
        "operation": "Update",
        "user": "developer@example.com",
        "dry_run": False,
        "outcome": "recorded",
        "mode": "Audit",
        "would": "deny",
        "owner": "kustomize-controller (Apply)",
        "paths": (".metadata.labels.team",),
        "count": 1,
        "first": at,
        "last": at,
        "days": {f"{at:%Y-%m-%d}": 1},
    }
    return Record(**(told | more))


class FakeJournal:
    """As the real one tells, without a file."""

    def __init__(self, number: int) -> None:
        self.id = f"{number:016x}"
        self.rows: dict[str, tuple[int, Record]] = {}
        self.left: dict[str, tuple[int, str | None]] = {}
        self.revision = 0
        self.forgotten = 0

    def record(self, *records: Record) -> None:
        self.revision += 1
        for key, record in fold(records).items():
            known = self.rows.get(key)
            self.rows[key] = (self.revision, merged(known[1], record) if known else record)

    def coarsen(self, level: int = 1) -> None:
        """Fold what was longest not seen."""
        fine = [(record.last, key) for key, (_, record) in self.rows.items() if coarser(record, level) != record]
        if fine:
            _, key = min(fine)
            record = self.rows.pop(key)[1]
            less = coarser(record, level)
            self.record(less)
            self.left[key] = (self.revision, key_of(less))

    def expire(self, oldest: str) -> None:
        self.revision += 1
        for key, (_, record) in list(self.rows.items()):
            days = {day: count for day, count in record.days.items() if day >= oldest}
            if not days:
                del self.rows[key]
                self.left[key] = (self.revision, None)
            elif days != record.days:
                self.rows[key] = (self.revision, replace(record, days=days, count=sum(days.values())))

    def forget(self) -> None:
        self.left, self.forgotten = {}, self.revision

    def records(self, *, namespace: str | None = None, dry_run: bool | None = None) -> Iterator[Record]:
        for _, record in list(self.rows.values()):
            if namespace in (None, record.namespace) and dry_run in (None, record.dry_run):
                yield record

    def changed_since(self, revision: int) -> Changes:
        whole = revision < self.forgotten or revision == 0
        since = 0 if whole else revision
        gone = [Gone(key, into) for key, (at, into) in self.left.items() if at > since and key not in self.rows]
        rows = [(key, record) for key, (at, record) in self.rows.items() if at > since]
        return Changes(self.revision, tuple(rows), () if whole else tuple(gone), whole)

    @property
    def counted(self) -> Counter[tuple[str, str]]:
        """By key and day, what reports should tell of it."""
        return Counter(
            {
                (key, day): n
                for key, (_, record) in self.rows.items()
                if not record.dry_run
                for day, n in record.days.items()
            }
        )


@dataclass
class FakeCluster:
    """Keeps objects by path, each with a version; who writes must have seen the last one."""

    form: Format = OPENREPORTS
    objects: dict[str, Object] = field(default_factory=dict)
    before: Callable[[str, str, Callable[[], Object]], None] = lambda method, path, act: None
    late: list[Callable[[], Object]] = field(default_factory=list)  # on their way, though nobody waits for them
    calls: Counter[str] = field(default_factory=Counter)
    gone: set[str] = field(default_factory=set)  # namespaces that are not there
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def get(self, path: str) -> Object:
        return self.request("GET", path)

    def create(self, path: str, item: Object) -> Object:
        return self.request("POST", path, item)

    def replace(self, path: str, item: Object) -> Object:
        return self.request("PUT", path, item)

    def request(
        self, method: str, path: str, body: object = None, *, params: Mapping[str, str] | None = None
    ) -> Object:
        told = copy.deepcopy(body)

        def act() -> Object:
            return copy.deepcopy(self._act(method, path, told, params or {}))

        self.before(method, path, act)
        self.calls[method] += 1
        return act()

    def _act(self, method: str, path: str, body: Any, params: Mapping[str, str]) -> Object:
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        if path == f"/api/v1/namespaces/{namespace}" and namespace not in self.gone:
            return {"metadata": {"name": namespace}}
        if method == "POST" and namespace in self.gone:
            raise Missing(path, 404)
        if method == "GET" and path not in self.objects:
            if path.rpartition("/")[2] in (self.form.plural, self.form.cluster_plural):
                return self._list(path, params)
            raise Missing(path, 404)
        if method == "GET":
            return self.objects[path]
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                raise Conflict(path, 409)
            return self._keep(path, body)
        if path not in self.objects:
            raise Missing(path, 404)
        version = self.objects[path]["metadata"]["resourceVersion"]
        if method == "DELETE":
            if (body or {}).get("preconditions", {}).get("resourceVersion", version) != version:
                raise Conflict(path, 409)
            return self.objects.pop(path)
        if body["metadata"].get("resourceVersion", version) != version:
            raise Conflict(path, 409)
        return self._keep(path, body)

    def _keep(self, path: str, body: Object) -> Object:
        kept = copy.deepcopy(body)
        kept["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[path] = kept
        return kept

    def _list(self, path: str, params: Mapping[str, str]) -> Object:
        plural = path.rpartition("/")[2]
        prefix = path if "/namespaces/" in path else self.form.root
        found = [
            (at, item)
            for at, item in sorted(self.objects.items())
            if at.startswith(prefix) and at.split("/")[-2] == plural and is_ours(item)
        ]
        begin = params.get("continue", "")
        limit = int(params.get("limit", "500"))
        page = [(at, item) for at, item in found if at > begin]
        more = {"continue": page[limit - 1][0]} if len(page) > limit else {}
        return {"items": [item for _, item in page[:limit]], "metadata": more}

    def reports(self) -> dict[str, Stored]:
        return {path: read(item) for path, item in self.objects.items() if is_ours(item)}

    def counted(self, *journals: str) -> Counter[tuple[str, str]]:
        """By key and day, what the reports tell; of these journals, where some are named."""
        told: Counter[tuple[str, str]] = Counter()
        for stored in self.reports().values():
            for key, row in stored.rows.items():
                for journal, days in row.counts.items():
                    if not journals or journal in journals:
                        told.update({(key, day): count for day, count in days.items()})
        return told

    def sealed(self, journal: str) -> dict[str, str]:
        """By namespace, up to which day a journal is."""
        found: dict[str, str] = {}
        for path, stored in self.reports().items():
            namespace = path.partition("/namespaces/")[2].partition("/")[0]
            found[namespace] = max(found.get(namespace, ""), stored.sealed.get(journal, ""))
        return found

    def deliver(self) -> None:
        """What was still on its way arrives."""
        while self.late:
            try:
                self.late.pop(0)()
            except (Conflict, Missing):
                continue


class NoKinds:
    def subject(self, record: Record) -> None:
        return None

    def forget(self) -> None:
        return None


@dataclass
class Pod:
    """A journal, and the process that publishes it, which may be started again and again."""

    journal: FakeJournal
    publisher: Publisher | None = None
    synced: dt.datetime = START
    busy: bool = False


class World:
    """Pods and a cluster. `act` is one thing that happens; `settle` lets everything come to rest."""

    def __init__(self, bounds: Bounds = TINY, keep_days: int = 30) -> None:
        self.cluster = FakeCluster()
        self.settings = Publishing(OPENREPORTS, "fieldwarden", keep_days=keep_days, bounds=bounds)
        self.now = START
        self.pods: dict[int, Pod] = {}
        self.gone: Counter[tuple[str, str]] = Counter()  # what reports keep of journals that are no more
        self.dead: list[str] = []
        self.numbers = itertools.count(1)

    def start(self) -> int:
        number = next(self.numbers)
        self.pods[number] = Pod(FakeJournal(number), synced=self.now)
        return number

    def publish(self, number: int, *, whole: bool = False, hurry: Callable[[], bool] = lambda: False) -> None:
        """One turn of a pod's process, which is started where it does not run. What it is hit by ends it, or the turn."""
        pod = self.pods.get(number)
        if pod is None or pod.busy:
            return
        pod.busy = True
        try:
            if pod.publisher is None:
                pod.publisher = Publisher(self.cluster, pod.journal, self.settings, NoKinds())
            if whole or not pod.publisher.is_settled:
                hurried = pod.publisher.has_begun and hurry()
                pod.publisher.resync(self.now, hurry)
                pod.synced = pod.synced if hurried else self.now
            else:
                pod.publisher.round(self.now)
        except (Unreachable, NotServed, Denied):
            return
        except Crash:
            pod.publisher = None
        finally:
            pod.busy = False

    def end(self, number: int, *, arrive: bool = True) -> None:
        """The pod goes, and its journal with it. What reports have of it is all that is left.

        What it had on its way arrives before that, or never.
        """
        if arrive:
            self.cluster.deliver()
        self.cluster.late.clear()
        journal = self.pods.pop(number).journal.id
        self.gone += self.cluster.counted(journal)
        self.dead.append(journal)

    def delete(self, path: str) -> None:
        """Somebody deletes a report: what it had of journals that are no more is gone for good."""
        stored = read(self.cluster.objects.pop(path))
        for key, row in stored.rows.items():
            for journal, days in row.counts.items():
                if journal == GONE or journal in self.dead:
                    self.gone -= Counter({(key, day): count for day, count in days.items()})

    def settle(self) -> None:
        """Nothing goes wrong any more, and everybody has the time to notice what did."""
        self.cluster.before = lambda method, path, act: None
        self.cluster.deliver()
        self.now += AGAIN * 2**SELDOM
        for _ in range(3):
            for number in list(self.pods):
                self.publish(number, whole=True)

    @property
    def expected(self) -> Counter[tuple[str, str]]:
        told = Counter(self.gone)
        for pod in self.pods.values():
            told.update(pod.journal.counted)
        return told


__all__ = [
    "MANAGED",
    "NAMESPACES",
    "START",
    "TINY",
    "Crash",
    "FakeCluster",
    "FakeJournal",
    "NoKinds",
    "World",
    "seen_once",
]
