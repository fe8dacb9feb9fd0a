"""Records as rows of both formats, and back."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reports_cluster.world import START, seen_once
from webhook.cluster.report_merging import Own, publish
from webhook.cluster.report_objects import (
    GONE,
    MOST_PATHS,
    OPENREPORTS,
    POLICYREPORT,
    Row,
    Stored,
    bounded_paths,
    read,
    result_of,
    row_of,
    size_of,
    write,
)
from webhook.cluster.report_placing import Bounds, Part, Shelf
from webhook.report.asking import MORE
from webhook.report.folding import key_of
from webhook.report.records import Record

TEXT = st.text(max_size=20)
DAYS = st.dictionaries(
    st.dates(dt.date(2026, 1, 1), dt.date(2026, 12, 31)).map(dt.date.isoformat), st.integers(1, 10**6), max_size=4
)
MOMENTS = st.datetimes(dt.datetime(2026, 1, 1), dt.datetime(2026, 12, 31), timezones=st.just(dt.UTC))


@st.composite
def records(draw: st.DrawFn) -> Record:
    plain = ("policy", "rule", "event", "resource", "name", "manager", "operation", "user", "outcome")
    texts = {name: draw(TEXT) for name in (*plain, "mode", "would", "owner")}
    paths = tuple(sorted(draw(st.sets(TEXT, max_size=5))))
    return seen_once(0, draw(TEXT), draw(MOMENTS), paths=paths, **texts)


@given(records(), st.dictionaries(TEXT, DAYS.filter(bool), max_size=3))
def test_a_row_is_read_as_it_was_written(record: Record, counts: dict[str, dict[str, int]]) -> None:
    row = Row.of(record, counts)
    stored = json.loads(json.dumps(result_of(row)))
    assert row_of(stored) == row
    assert key_of(row_of(stored).record) == key_of(record)  # type: ignore[union-attr]


@pytest.mark.parametrize("form", [OPENREPORTS, POLICYREPORT], ids=lambda form: form.name)
@pytest.mark.parametrize("namespace", ["team-a", ""])
def test_a_report_is_read_as_it_was_written(form: object, namespace: str) -> None:
    record = seen_once(1, namespace, START)
    stored = publish(Stored(), Own("a" * 16, {key_of(record): record}), START)
    assert isinstance(form, type(OPENREPORTS))
    made = write(form, {"metadata": {"name": "x"} | ({"namespace": namespace} if namespace else {})}, stored, None)
    assert read(made) == stored
    assert made["kind"] == (form.kind if namespace else form.cluster_kind)


def test_what_somebody_has_spoilt_is_no_row() -> None:
    good = result_of(Row.of(seen_once(1, "a", START), {"x": {"2026-11-02": 1}}))
    spoilt = [
        {"counts": "no JSON"},
        {"counts": '{"x": {"2026-11-02": "1"}}'},
        {"counts": '{"x": {"tomorrow": 1}}'},
        {"counts": '{"x": {"2026-11-02": -1}}'},
        {"paths": "{}"},
        {"first": "then"},
        {"last": None},
    ]
    for change in spoilt:
        assert row_of({**good, "properties": {**good["properties"], **change}}) is None
    assert row_of({"source": "fieldwarden", "policy": "x"}) is None


def test_in_a_report_only_so_many_paths_are_named() -> None:
    many = tuple(f".metadata.labels.l{number:03}" for number in range(100))
    kept = bounded_paths(many)
    assert kept == (*many[:MOST_PATHS], MORE)
    assert bounded_paths(kept, many[:2]) == kept, "what was cut once stays so"
    assert bounded_paths(("." + "x" * 3000,)) == (MORE,)


def test_the_words_of_the_formats() -> None:
    told = {
        ("deny", "recorded"): ("fail", True, "recorded; Enforce refuses it"),
        ("restore", "recorded"): ("fail", True, "recorded; Enforce restores it"),
        ("deny", "refused"): ("fail", True, "refused"),
        ("prune", "rewritten"): ("fail", True, "rewritten"),
        ("record", "recorded"): ("warn", False, "recorded"),
    }
    for (would, outcome), expected in told.items():
        result = result_of(Row.of(seen_once(1, "a", START, would=would, outcome=outcome), {}))
        assert (result["result"], result["scored"], result["message"].rpartition(": ")[2]) == expected
    severities = {"tamper": "high", "impersonation": "high", "change": "medium", "writer": "medium", "ghost": "low"}
    for event, severity in severities.items():
        assert result_of(Row.of(seen_once(1, "a", START, event=event), {}))["severity"] == severity


def test_counts_of_those_that_are_gone_are_in_the_sum() -> None:
    row = Row.of(seen_once(1, "a", START), {GONE: {"2026-11-01": 4}, "x": {"2026-11-01": 1, "2026-11-02": 2}})
    assert (row.record.count, row.record.days) == (7, {"2026-11-01": 5, "2026-11-02": 2})


def test_a_row_stays_where_it_is_however_many_come() -> None:
    bounds = Bounds(rows=4, add=10**6, most=10**7)
    first = Shelf("told", {}, bounds).place((f"b{number}", 10) for number in range(10))
    assert {name: len(keys) for name, keys in first.items()} == {"told": 4, "told-2": 4, "told-3": 2}
    parts = {name: Part(set(keys), set(keys), 100) for name, keys in first.items()}
    every = [f"{letter}{number}" for letter in "abc" for number in range(10)]
    again = Shelf("told", parts, bounds).place((key, 10) for key in every)
    assert all(keys <= again[name] for name, keys in first.items())
    assert {key for keys in again.values() for key in keys} == set(every)
    assert max(map(len, again.values())) == 4


def test_a_row_fits_into_a_report_many_times() -> None:
    """The longest that a journal can hold."""
    names = ("policy", "rule", "name", "manager", "operation", "user", "owner")
    long: dict[str, Any] = dict.fromkeys(names, "x" * 512)
    record = seen_once(1, "a", START, paths=tuple("." + "y" * 1000 + str(n) for n in range(100)), **long)
    days = {f"2026-11-{day:02}": 10**6 for day in range(1, 31)}
    record = replace(record, paths=bounded_paths(record.paths))
    row = Row.of(record, {f"{number:016}": days for number in range(20)})
    assert size_of(row) * 20 < 1 << 20
