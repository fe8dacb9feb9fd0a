"""Reports as the cluster keeps them: OpenReports and PolicyReport, in their own words. Pure.

    stored = read(report)                        # what of it is ours, and what is others'
    report = write(OPENREPORTS, report, stored, owner=None)

A result is a row: what one writer did to one object, as one rule saw it, with counts by journal and day. Names and paths,
never values.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.report.asking import MORE
from webhook.report.folding import ANY, key_of, text
from webhook.report.records import Record
from webhook.report.ticks import read_day, read_moment

Object = dict[str, Any]
Counts = Mapping[str, Mapping[str, int]]
"""By journal and day; under `GONE` those of journals that are no more."""

SOURCE = "fieldwarden"
MANAGED = {"app.kubernetes.io/managed-by": SOURCE}
SELECTOR = "app.kubernetes.io/managed-by=fieldwarden"
SEEN, SEALED = "fieldwarden.dev/journals", "fieldwarden.dev/sealed"
"""Annotations: when each journal last wrote here, and up to which day the counts of one are among those that are gone."""

GONE = ""
MOST_PATHS, LONGEST_PATHS = 20, 2048
"""Of a row: paths, and bytes of them."""

_MOST_OF_A_DAY = 1 << 53
"""Of one journal: whoever counts more has made it up. The largest that every reader of JSON gets right."""

_SEVERITIES = {"impersonation": "high", "tamper": "high", "change": "medium", "writer": "medium"}
_CATEGORIES = {"writer": "Writers", "impersonation": "Writers", "rename": "Writers", "tamper": "Integrity"}
_DID = {"change": "changed", "share": "shares", "ghost": "left behind", "tamper": "edited claims at", "rename": "wrote"}
_PLAIN = ("event", "resource", "namespace", "name", "manager", "operation", "user", "owner", "mode", "would", "outcome")
_WILL = {"restore": "restores", "reassign": "reassigns", "release": "releases", "prune": "prunes", "rename": "renames"}


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of report: its group, and its names in a namespace and in the cluster."""

    name: str
    group: str
    version: str
    kind: str
    plural: str
    cluster_kind: str
    cluster_plural: str
    has_source: bool  # of a whole report

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}"

    def collection(self, namespace: str) -> str:
        """The path of the reports of a namespace; "" is the cluster."""
        if namespace:
            return f"{self.root}/namespaces/{namespace}/{self.plural}"
        return f"{self.root}/{self.cluster_plural}"


OPENREPORTS = Format(
    "openreports", "openreports.io", "v1alpha1", "Report", "reports", "ClusterReport", "clusterreports", True
)
POLICYREPORT = Format(
    "policyreport",
    "wgpolicyk8s.io",
    "v1alpha2",
    "PolicyReport",
    "policyreports",
    "ClusterPolicyReport",
    "clusterpolicyreports",
    False,
)
FORMATS = {each.name: each for each in (OPENREPORTS, POLICYREPORT)}


@dataclass(frozen=True, slots=True)
class Row:
    """One result of ours. The record is of all journals together: its count and days are sums of `counts`."""

    record: Record
    counts: Counts
    subject: Mapping[str, str] | None = None

    @classmethod
    def of(cls, record: Record, counts: Counts, subject: Mapping[str, str] | None = None) -> Row:
        days: dict[str, int] = {}
        for each in counts.values():
            for day, count in each.items():
                days[day] = days.get(day, 0) + count
        return cls(replace(record, count=sum(days.values()), days=dict(sorted(days.items()))), counts, subject)


@dataclass(frozen=True, slots=True)
class Stored:
    """What stands in a report. Rows by key; results of others as they are."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    others: Sequence[Object] = ()
    seen: Mapping[str, str] = field(default_factory=dict)  # journal to a moment
    sealed: Mapping[str, str] = field(default_factory=dict)  # journal to a day

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.others


def is_ours(report: Mapping[str, Any]) -> bool:
    labels = (report.get("metadata") or {}).get("labels") or {}
    return MANAGED.items() <= labels.items()


def place(record: Record) -> str:
    """The namespace in whose report a record stands; "" is the cluster's, also for what is of several namespaces."""
    return "" if record.namespace == ANY else record.namespace


def read(report: Mapping[str, Any]) -> Stored:
    """What cannot be read and says that it is ours is left out: it is written anew, or it is over."""
    rows: dict[str, Row] = {}
    others: list[Object] = []
    for result in report.get("results") or ():
        if result.get("source") != SOURCE:
            others.append(result)
        elif (row := row_of(result)) is not None:
            rows.setdefault(key_of(row.record), row)
    annotations = report["metadata"].get("annotations") or {}
    return Stored(rows, tuple(others), _texts(annotations.get(SEEN)), _texts(annotations.get(SEALED)))


def write(form: Format, report: Mapping[str, Any], stored: Stored, owner: Mapping[str, Any] | None) -> Object:
    """The report with this in it. Of `report` everything else stays; its metadata needs a name, and a namespace."""
    metadata = dict(report["metadata"])
    namespace = metadata.get("namespace") or ""
    annotations = {**(metadata.get("annotations") or {}), SEEN: _json(stored.seen), SEALED: _json(stored.sealed)}
    if not stored.sealed:
        del annotations[SEALED]
    metadata |= {"labels": {**(metadata.get("labels") or {}), **MANAGED}, "annotations": annotations}
    if owner is not None:
        known = metadata.get("ownerReferences") or ()
        others = [each for each in known if (each.get("kind"), each.get("name")) != (owner["kind"], owner["name"])]
        metadata["ownerReferences"] = [*others, dict(owner)]
    ours = [result_of(row) for _, row in sorted(stored.rows.items(), key=lambda item: (*_order(item[1]), item[0]))]
    results = [*stored.others, *ours]
    made: Object = {
        **report,
        "apiVersion": f"{form.group}/{form.version}",
        "kind": form.kind if namespace else form.cluster_kind,
        "metadata": metadata,
        "summary": _summary(results),
        "results": results,
    }
    if namespace:
        made["scope"] = {"apiVersion": "v1", "kind": "Namespace", "name": namespace}
    if form.has_source and not stored.others:
        made["source"] = SOURCE
    return made


def result_of(row: Row) -> Object:
    """A row in the words of both formats."""
    record = row.record
    acts = record.would != "record"
    properties = {name: value for name in _PLAIN if (value := getattr(record, name))}
    properties |= {
        "paths": _json(list(record.paths)),
        "count": str(record.count),
        "counts": _json({journal: dict(days) for journal, days in row.counts.items()}),
        "first": _moment(record.first),
        "last": _moment(record.last),
    }
    result: Object = {
        "source": SOURCE,
        "policy": record.policy,
        "rule": record.rule,
        "category": _CATEGORIES.get(record.event, "Field ownership"),
        "severity": _SEVERITIES.get(record.event, "low"),
        "result": "fail" if acts else "warn",
        "scored": acts,
        "message": message(record),
        "timestamp": {"seconds": int(record.last.timestamp()), "nanos": record.last.microsecond * 1000},
        "properties": properties,
    }
    if row.subject:
        result["resources"] = [dict(row.subject)]
    return result


def row_of(result: Mapping[str, Any]) -> Row | None:
    """None where it is no row, or not as it was written."""
    try:
        told = result["properties"]
        counts = {text(journal): _days(days) for journal, days in json.loads(told["counts"]).items()}
        paths = json.loads(told["paths"])
        if not isinstance(paths, list):
            return None
        plain = {name: text(told.get(name, "")) for name in _PLAIN}
        record = Record(
            policy=text(result["policy"]),
            rule=text(result.get("rule", "")),
            dry_run=False,
            paths=tuple(map(text, paths)),
            count=0,
            first=read_moment(told["first"]),
            last=read_moment(told["last"]),
            **plain,  # type: ignore[arg-type]  # all of them are texts
        )
        (subject, *_) = result.get("resources") or (None,)
        return Row.of(record, {journal: days for journal, days in counts.items() if days}, subject)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def message(record: Record) -> str:
    """A sentence for people.

    It names who, what, and what came of it.
    """
    who = record.manager or "an unknown manager"
    if record.operation:
        who += f" ({record.operation})"
    did = _DID.get(record.event, "wrote")
    where = ", ".join(record.paths[:3]) + (", …" if len(record.paths) > len(record.paths[:3]) else "")
    whose = f", owned by {record.owner}" if record.owner else ""
    return f"{who} by {record.user or 'an unknown user'} {did} {where or record.resource}{whose}: {_outcome(record)}"


def _outcome(record: Record) -> str:
    if record.outcome != "recorded":
        return record.outcome
    if record.would == "record":
        return "recorded"
    if record.would == "deny":
        return "recorded; Enforce refuses it"
    return f"recorded; Enforce {_WILL.get(record.would, 'acts on')} it"


def bounded_paths(*groups: Sequence[str]) -> tuple[str, ...]:
    """Each once, sorted, as many as a row holds; MORE among them says that there were others."""
    known = sorted({path for group in groups for path in group} - {MORE})
    kept: list[str] = []
    size = 0
    for path in known[:MOST_PATHS]:
        size += len(path.encode()) + 3
        if size > LONGEST_PATHS:
            break
        kept.append(path)
    more = len(kept) < len(known) or any(MORE in group for group in groups)
    return (*kept, MORE) if more else tuple(kept)


def size_of(row: Row) -> int:
    """Bytes that it takes in a report."""
    return len(_json(result_of(row)).encode("utf-8", "replace"))


def moment_of(at: dt.datetime) -> str:
    """As it stands in annotations: to the second."""
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _order(row: Row) -> tuple[str, ...]:
    record = row.record
    return record.policy, record.rule, record.resource, record.name


def _summary(results: Sequence[Mapping[str, Any]]) -> Object:
    told = dict.fromkeys(("pass", "fail", "warn", "error", "skip"), 0)
    for result in results:
        if result.get("result") in told:
            told[result["result"]] += 1
    return told


def _days(given: Any) -> dict[str, int]:
    days = {}
    for day, count in given.items():
        if type(count) is not int or not 0 < count <= _MOST_OF_A_DAY:
            raise ValueError
        days[read_day(day)] = count
    return days


def _moment(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def _texts(given: Any) -> dict[str, str]:
    """An annotation of texts; nothing where somebody has written something else there."""
    try:
        told = json.loads(given)
        return {text(key): text(value) for key, value in told.items() if isinstance(value, str)}
    except (TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _json(given: Any) -> str:
    return json.dumps(given, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
