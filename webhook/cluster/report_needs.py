"""What a publisher of reports needs, and how it is told what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from webhook.cluster.report_objects import Format, Object
from webhook.cluster.report_placing import Bounds
from webhook.report.records import Record


class Changes(Protocol):
    @property
    def revision(self) -> int: ...
    @property
    def records(self) -> tuple[tuple[str, Record], ...]: ...
    @property
    def gone(self) -> tuple[Any, ...]: ...
    @property
    def whole(self) -> bool: ...


class JournalLike(Protocol):
    """What is needed of a journal."""

    @property
    def id(self) -> str: ...
    def records(self, *, namespace: str | None = None, dry_run: bool | None = None) -> Iterator[Record]: ...
    def changed_since(self, revision: int) -> Changes: ...


class ApiLike(Protocol):
    """What is needed of an API server."""

    def get(self, path: str) -> Object: ...
    def create(self, path: str, item: Object) -> Object: ...
    def replace(self, path: str, item: Object) -> Object: ...
    def request(
        self, method: str, path: str, body: object = None, *, params: Mapping[str, str] | None = None
    ) -> Object: ...


class KindsLike(Protocol):
    def subject(self, record: Record) -> Mapping[str, str] | None: ...
    def forget(self) -> None: ...


class NotServed(Exception):
    """The cluster does not know this kind of report; `str()` is for the operator."""


class Ownerless(Exception):
    """What the reports should go away with is not there."""


@dataclass(frozen=True, slots=True)
class Publishing:
    """How reports are written. `name` is theirs; `owner` the ClusterRole that they go away with."""

    form: Format
    name: str = "fieldwarden"
    owner: str = ""
    keep_days: int = 30
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(slots=True)
class Tally:
    """What was done since the beginning."""

    writes: int = 0
    conflicts: int = 0
    troubles: dict[str, str] = field(default_factory=dict)  # by namespace, what could not be written last
