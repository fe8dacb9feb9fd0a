"""Records are read from whatever the server leaves behind, and what cannot be read is said."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.report.made import DAY, DEVELOPER, MONDAY, OBSERVING, REVIEWS, SHIPPED, policies, record
from webhook.admission import Engine
from webhook.policy import Mode
from webhook.policy.compiled import globs
from webhook.report.asking import Asked, Unusable, is_cut
from webhook.report.folding import fold, seen
from webhook.report.journal import Journal
from webhook.report.records import Record
from webhook.report.source_log import MAX_LINE
from webhook.report.sources import KINDS, open_source
from webhook.server.logs import make_logger, results


def line(**given: Any) -> dict[str, Any]:
    """A line of the log, with one event."""
    item = {"event": "change", "policy": "labels", "rule": "team", "mode": "Audit", "action": "Deny"}
    base = {
        "time": "2026-11-16T09:30:00Z",
        "level": "info",
        "event": "review",
        "uid": "1",
        "user": DEVELOPER,
        "manager": "kubectl-edit",
        "operation": "UPDATE",
        "resource": "deployments.apps",
        "namespace": "team-a",
        "name": "web",
        "dry_run": False,
        "policies": ["labels"],
        "phase": "validate",
        "decision": "allowed",
        "duration_ms": 1.0,
        "results": [{**item, "outcome": "recorded", "paths": [".metadata.labels.team"]}],
    }
    return base | given


def read(path: Path | str, since: dt.datetime | None = None) -> tuple[list[Record], tuple[str, ...]]:
    source = open_source(str(path), KINDS)
    return list(source.records(since)), source.notes()


def log(folder: Path, *lines: dict[str, Any] | bytes) -> Path:
    path = folder / "server.log"
    path.write_bytes(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines))
    return path


def test_a_line_is_a_record_of_each_of_its_events(tmp_path: Path) -> None:
    found, notes = read(log(tmp_path, line()))
    assert found == [record(operation="", owner="")]
    assert notes == ()


def test_a_line_may_say_more_than_it_does_today(tmp_path: Path) -> None:
    item = {**line()["results"][0], "owner": "kustomize-controller (Apply)", "operation": "Update", "would": "deny"}
    assert read(log(tmp_path, line(results=[item])))[0] == [record()]


def test_what_the_server_writes_is_what_was_found(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    engine, written, expected = Engine(policies(OBSERVING, SHIPPED), Mode.AUDIT), make_logger("info"), []
    for path in REVIEWS:
        answer = engine.answer(path.read_bytes(), "validate")
        review, decision = answer.review, answer.decision
        expected += [seen(result, MONDAY) for result in decision.results]
        told = {"user": review.user.name, "namespace": review.namespace, "name": review.name, "dry_run": review.dry_run}
        told |= {"manager": decision.manager, "resource": "x", "operation": review.operation}
        written.info("review", **told, results=results(decision.results))
    path = tmp_path / "server.log"
    path.write_text(capfd.readouterr().out)
    found, _ = read(path)

    def told_of(one: Record) -> tuple[object, ...]:
        names = (one.policy, one.rule, one.event, one.namespace, one.name, one.user, one.manager)
        return *names, one.dry_run, one.outcome, one.mode, one.would

    assert len(found) > 100
    assert [told_of(one) for one in found] == [told_of(one) for one in expected]
    whole = [(one, other) for one, other in zip(found, expected, strict=True) if not is_cut(one)]
    assert all(one.paths == other.paths for one, other in whole)
    assert len(whole) > 100


def test_what_a_line_left_out_is_said(tmp_path: Path) -> None:
    item = line()["results"][0]
    path = log(tmp_path, line(results=[{**item, "more_paths": 3}]), line(results=[item, {"more_results": 2}]))
    found, notes = read(path)
    assert [is_cut(one) for one in found] == [True, False]
    assert notes == (f"{path}: 2 lines left out paths or events; the journal holds more",)


def test_a_path_that_the_log_cut_is_known_to_be_cut(tmp_path: Path) -> None:
    item = {**line()["results"][0], "paths": ["." + "a" * 255]}
    assert is_cut(read(log(tmp_path, line(results=[item])))[0][0])


BAD = [
    b"Traceback (most recent call last):",
    b'{"event": "review", "results": [{',
    b"[1, 2]",
    b"{" * 2000,
    b'{"event":"review","results":' + b"[" * 100_000,
    b"\xff\xfe{\x00",
    b"{" + b"x" * MAX_LINE + b"}",
    json.dumps(line(user=7)).encode(),
    json.dumps(line(time="soon")).encode(),
    json.dumps(line(results=[{}])).encode(),
    json.dumps(line(results=[1])).encode(),
    json.dumps(line(results=[{**line()["results"][0], "outcome": "eaten"}])).encode(),
    json.dumps(line(results=[{**line()["results"][0], "paths": [None]}])).encode(),
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_line_that_cannot_be_read_is_counted_and_costs_no_other(tmp_path: Path, bad: bytes) -> None:
    path = log(tmp_path, line(), bad, line())
    found, notes = read(path)
    assert len(found) == 2
    assert notes == (f"{path}: 1 line could not be read",)


def test_other_lines_of_the_server_are_passed_over_in_silence(tmp_path: Path) -> None:
    quiet = line()
    del quiet["results"]
    assert read(log(tmp_path, {"event": "reloaded", "level": "info"}, quiet, b"")) == ([], ())


@pytest.mark.parametrize("prefix", ["[pod/fieldwarden-1/webhook] ", "2026-11-16T09:30:00Z stdout F ", "\t"])
def test_a_prefix_is_read_over(tmp_path: Path, prefix: str) -> None:
    assert len(read(log(tmp_path, prefix.encode() + json.dumps(line()).encode()))[0]) == 1


def test_a_compressed_log_is_read_and_a_damaged_one_as_far_as_it_goes(tmp_path: Path) -> None:
    text = b"".join(json.dumps(line(uid=os.urandom(8).hex())).encode() + b"\n" for _ in range(5000))
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(text))
    assert len(read(path)[0]) == 5000
    path.write_bytes(gzip.compress(text)[:-10_000])
    found, notes = read(path)
    assert 0 < len(found) < 5000
    assert notes[-1] == f"{path}: is damaged; what stands before the damage was read"


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(line()).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert len(read("-")[0]) == 1


def test_a_journal_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    engine = Engine(policies(SHIPPED), Mode.AUDIT)
    with contextlib.closing(Journal.open(path)) as journal:
        answer = engine.answer((REVIEWS[0].parent / "kubectl-label-overwrite.json").read_bytes(), "validate")
        journal.record(answer.decision.results, MONDAY)
    before = path.read_bytes()
    found, notes = read(path)
    assert {one.policy for one in found} == {result.policy for result in answer.decision.results}
    assert (path.read_bytes(), notes) == (before, ())
    assert read(path, since=MONDAY + DAY)[0] == []


def test_what_is_no_source_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="No such file"):
        read(tmp_path / "nowhere")
    with pytest.raises(Unusable, match="Is a directory"):
        read(tmp_path)
    other = tmp_path / "other.db"
    other.write_bytes(b"SQLite format 3\x00" + b"\x00" * 200)
    with pytest.raises(Unusable, match=r"other\.db"):
        read(other)


def test_since_takes_the_days_that_came_after() -> None:
    days = {"2026-11-14": 5, "2026-11-15": 3, "2026-11-16": 1}
    long = record(first=MONDAY - 2 * DAY, last=MONDAY, count=9, days=days)
    part = Asked(since=MONDAY - DAY).part(long)
    assert part is not None
    assert (part.count, part.days) == (4, {"2026-11-15": 3, "2026-11-16": 1})
    assert Asked(since=MONDAY + DAY).part(long) is None
    assert Asked(since=MONDAY - 9 * DAY).part(long) == long


@pytest.mark.parametrize(
    ("namespaces", "names", "count"),
    [((), (), 3), (("team-a",), (), 1), (("team-*",), (), 2), (("",), (), 1), ((), ("lab*",), 3), ((), ("x",), 0)],
)
def test_namespaces_and_policies_are_chosen_by_glob(
    namespaces: tuple[str, ...], names: tuple[str, ...], count: int
) -> None:
    every = [record(), record(namespace="team-b"), record(namespace="")]
    assert len(list(Asked(None, globs(namespaces), globs(names)).of(every))) == count


def test_what_several_sources_say_of_one_thing_is_one_record() -> None:
    (found,) = fold([record(count=2), record(last=MONDAY + DAY, paths=(".spec",))]).values()
    assert (found.count, found.paths, found.first) == (3, (".metadata.labels.team", ".spec"), MONDAY)
