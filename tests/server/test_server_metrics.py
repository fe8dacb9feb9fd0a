"""Numbers that are right with several workers, and stay so when one is killed."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import with_policy
from serving import Server, eventually, review, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("metrics")
    with running(folder, with_policy(folder / "policies"), "--workers", "3") as started:
        yield started


def test_calls_on_three_workers_add_up(server: Server) -> None:
    for _ in range(30):
        server.post(review())
        server.post(review("kubectl-annotate"), "/mutate")
    for _ in range(5):
        server.post(b"{")
    total = "fieldwarden_requests_total"
    assert server.metric(total) == 65
    assert server.metric(total, phase="validate", decision="denied") == 30
    assert server.metric(total, phase="mutate", decision="allowed") == 30
    assert server.metric(total, phase="validate", decision="error") == 5
    assert server.metric("fieldwarden_bad_calls_total", reason="unreadable-json") == 5
    assert server.metric("fieldwarden_request_duration_seconds_count") == 65
    assert server.metric("fieldwarden_events_total", policy="no-labels-by-hand", event="writer", mode="Enforce") == 30
    assert server.metric("fieldwarden_policies_loaded") == 1
    assert server.metric("fieldwarden_build_info") == 1
    assert server.metric("fieldwarden_certificate_expiry_timestamp_seconds") > 1.7e9


def test_a_killed_worker_takes_no_number_with_it_and_is_replaced(server: Server) -> None:
    before, killed = server.metric("fieldwarden_requests_total"), server.workers()[0]
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: killed not in server.workers())
    assert server.metric("fieldwarden_requests_total") == before
    assert server.get("/readyz")[0] == 200
    assert not server.post(review()).allowed
    eventually(lambda: len(server.workers()) == 3)
    assert server.metric("fieldwarden_requests_total") == before + 1


def test_a_killed_operations_process_is_replaced(server: Server) -> None:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    (operations,) = {int(pid) for pid in children} - set(server.workers())
    os.kill(operations, signal.SIGKILL)
    eventually(lambda: server.lines("the operations process has ended and is started again"))
    assert server.get("/healthz")[0] == 200


def test_no_label_holds_a_name_without_bounds(server: Server) -> None:
    server.post(review())
    text = server.get("/metrics")[1]
    for unbounded in ("developer@example.com", "web", "kubectl-label", ".metadata"):
        assert f'"{unbounded}"' not in text


def test_a_call_is_one_line_that_says_who_what_and_why(server: Server) -> None:
    uid = json.loads(review())["request"]["uid"]
    before = len(server.lines("review"))
    server.post(review())
    lines = eventually(lambda: server.lines("review")[before:])
    assert len(lines) == 1
    line = lines[0]
    assert {
        key: line[key] for key in ("uid", "user", "manager", "decision", "policies", "phase", "dry_run", "level")
    } == {
        "uid": uid,
        "user": "developer@example.com",
        "manager": "kubectl-label",
        "decision": "denied",
        "policies": ["no-labels-by-hand"],
        "phase": "validate",
        "dry_run": False,
        "level": "info",
    }
    assert (line["operation"], line["resource"], line["namespace"], line["name"]) == (
        "UPDATE",
        "deployments.apps",
        "default",
        "web",
    )
    assert line["duration_ms"] > 0
    assert [(result["rule"], result["event"], result["action"]) for result in line["results"]] == [
        ("who-writes", "writer", "Deny")
    ]


def test_no_value_of_a_secret_is_in_log_or_metrics(server: Server) -> None:
    body = review("secret-update")
    request = json.loads(body)["request"]
    secrets = {value for part in ("object", "oldObject") for value in request[part]["data"].values()}
    secrets |= {base64.b64decode(value).decode() for value in secrets}
    assert secrets
    before = len(server.lines("review"))
    server.post(body)
    server.post(body.replace(b'"managedFields"', b'"managedFields": 7, "was"'))
    server.post(body[:-9])
    eventually(lambda: len(server.lines("review")) == before + 3)
    told = server.log_file.read_text() + server.get("/metrics")[1] + server.get("/readyz")[1]
    assert not [secret for secret in secrets if secret in told]
