"""Kubernetes Events (events.k8s.io/v1) for writes that were refused or rewritten, about the object that was written.

Repeats become a series of one Event. What is too much for the cluster is counted and told with the next one.
Dry runs leave no trace: the webhooks say that they have no side effects then.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from webhook.cluster.errors import Conflict, Denied, Invalid, Missing
from webhook.cluster.report_objects import SOURCE, Object, message
from webhook.report.records import Record

SERIES = dt.timedelta(minutes=30)
"""Without a repeat for so long, the next one is a new Event. The API server keeps one for an hour."""

MOST_SERIES = 2_000
"""That are remembered; who is forgotten begins anew."""

LONGEST_NOTE = 1_000  # bytes; the API server takes 1024
_ACTIONS = {"refused": ("Refused", "Refuse", "Warning"), "rewritten": ("Rewritten", "Rewrite", "Normal")}


class ApiLike(Protocol):
    def create(self, path: str, item: Object) -> Object: ...
    def patch(self, path: str, change: Object) -> Object: ...


class KindsLike(Protocol):
    def subject(self, record: Record) -> Mapping[str, str] | None: ...


@dataclass(slots=True)
class Bucket:
    """Holds so many tokens, and gets one more every so many seconds.

    >>> bucket = Bucket(2, 60.0); [bucket.take(at) for at in (0.0, 1.0, 2.0, 61.0, 62.0)]
    [True, True, False, True, False]
    """

    most: float
    seconds: float
    left: float = -1.0
    at: float = 0.0

    def take(self, now: float) -> bool:
        full = self.left < 0
        self.left = self.most if full else min(self.most, self.left + (now - self.at) / self.seconds)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


@dataclass(slots=True)
class _Series:
    path: str  # of the Event; empty where there is none yet
    count: int  # repeats that it tells of
    told: dt.datetime


@dataclass(slots=True)
class Events:
    """One process's. `per_object` and `overall` are writes to the API server: burst, and seconds for one more."""

    api: ApiLike
    kinds: KindsLike
    instance: str  # the pod's name
    per_object: tuple[float, float] = (5, 60.0)
    overall: tuple[float, float] = (50, 1.0)
    clock: Callable[[], float] = monotonic
    written: int = 0
    held_back: int = 0  # repeats that were too many to be told at once
    trouble: str = ""
    _counts: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _series: OrderedDict[str, _Series] = field(default_factory=OrderedDict)
    _buckets: OrderedDict[str, Bucket] = field(default_factory=OrderedDict)
    _all: Bucket | None = None

    def take(self, key: str, record: Record) -> None:
        """A record of the journal as it is now. Raises Unreachable; then it may be given again."""
        if record.dry_run or record.outcome not in _ACTIONS:
            return
        subject = self.kinds.subject(record)
        known = self._counts.get(key, 0)
        new = record.count - known
        if subject is None or new <= 0:
            self._count(key, record.count)
            return
        if not self._may(subject):
            self.held_back += new
            self._count(key, record.count)
            self._owe(key, new)
            return
        try:
            self._tell(key, record, subject, new)
            self.trouble = ""
        except (Denied, Invalid, Conflict, Missing) as error:  # such as a namespace that is gone
            self.trouble = str(error)
        self._count(key, record.count)

    def skip(self, key: str, record: Record) -> None:
        """It was told before, by a process before this one."""
        if record.outcome in _ACTIONS:
            self._count(key, record.count)

    def _tell(self, key: str, record: Record, subject: Mapping[str, str], new: int) -> None:
        series = self._series.get(key)
        if series is not None and series.path and record.last - series.told < SERIES:
            count = series.count + new
            try:
                told = {"count": max(2, count), "lastObservedTime": _micro(record.last)}
                self.api.patch(series.path, {"series": told})
            except Missing:
                pass
            else:
                self._remember(key, _Series(series.path, count, record.last))
                return
        owed = series.count if series is not None and not series.path else 0
        count = new + owed
        path = _collection(subject)
        item = self._event(record, subject, count)
        self.api.create(path, item)
        self._remember(key, _Series(f"{path}/{item['metadata']['name']}", count, record.last))

    def _event(self, record: Record, subject: Mapping[str, str], count: int) -> Object:
        reason, action, kind = _ACTIONS[record.outcome]
        at = _micro(record.last)
        name = f"fieldwarden.{secrets.token_hex(8)}"
        note = f"[{record.policy}/{record.rule}] {message(record)}"
        item: Object = {
            "metadata": {"name": name, "namespace": _namespace(subject)},
            "eventTime": at,
            "reportingController": "fieldwarden.dev/webhook",
            "reportingInstance": self.instance[:128] or SOURCE,
            "action": action,
            "reason": reason,
            "type": kind,
            "regarding": dict(subject),
            "note": note.encode()[:LONGEST_NOTE].decode("utf-8", "ignore"),
        }
        return item | ({"series": {"count": count, "lastObservedTime": at}} if count > 1 else {})

    def _may(self, subject: Mapping[str, str]) -> bool:
        """A token of the object's, and one of all."""
        now = self.clock()
        about = " ".join(subject.values())
        bucket = self._buckets.pop(about, None) or Bucket(*self.per_object)
        self._buckets[about] = bucket
        while len(self._buckets) > MOST_SERIES:
            self._buckets.popitem(last=False)
        if self._all is None:
            self._all = Bucket(*self.overall)
        return bucket.take(now) and self._all.take(now)

    def _owe(self, key: str, new: int) -> None:
        """To be told with the next one."""
        series = self._series.get(key)
        if series is None:
            self._keep(key, _Series("", new, dt.datetime.min.replace(tzinfo=dt.UTC)))
        else:
            series.count += new

    def _remember(self, key: str, series: _Series) -> None:
        self.written += 1
        self._keep(key, series)

    def _keep(self, key: str, series: _Series) -> None:
        self._series[key] = series
        self._series.move_to_end(key)
        while len(self._series) > MOST_SERIES:
            self._series.popitem(last=False)

    def _count(self, key: str, count: int) -> None:
        self._counts[key] = count
        self._counts.move_to_end(key)
        while len(self._counts) > 4 * MOST_SERIES:
            self._counts.popitem(last=False)


def _collection(subject: Mapping[str, str]) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{_namespace(subject)}/events"


def _namespace(subject: Mapping[str, str]) -> str:
    """Events of objects without a namespace stand in `default`."""
    return subject.get("namespace") or "default"


def _micro(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
