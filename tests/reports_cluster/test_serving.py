"""`fieldwarden serve` that reports what it judges, and `fieldwarden report` that reads it back."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.reports_cluster.support import Counted, Recorder, counted, counted_in, event, reporting_with, reports
from tests.reports_cluster.test_on_a_server import BOTH
from tests.server.serving import eventually, policy, review, running
from webhook.cli.report import report
from webhook.cluster.report_objects import OPENREPORTS, POLICYREPORT, Format
from webhook.cluster.report_source import ClusterReports
from webhook.report.asking import Unreached, Unusable
from webhook.sandbox import Sandbox

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "label.yaml").write_text(policy("no-labels", "kubectl-label"))
    (folder / "patch.yaml").write_text(policy("no-patches", "kubectl-patch", "Audit"))
    return folder


def telling(sandbox: Sandbox, folder: Path, form: Format, *more: str, owner: str = "") -> list[str]:
    """The flags of a server that reports."""
    arguments = ["--journal", str(folder / "journal.db"), "--reports", form.name, "--report-interval", "0.2"]
    owned = ["--reports-owner", owner] if owner else []
    return [*arguments, *owned, "--kubeconfig", str(sandbox.kubeconfig()), *more]


def in_namespace(namespace: str, name: str) -> bytes:
    told = json.loads(review(name))
    told["request"]["namespace"] = namespace
    return json.dumps(told).encode()


def owner_of(sandbox: Sandbox, name: str) -> str:
    assert sandbox.request("POST", ROLES, {"metadata": {"name": name}}).status == 201
    return name


@BOTH
def test_what_a_server_judges_stands_in_reports_without_a_value(
    form: Format, reporting: Sandbox, namespace: str, policies: Path, tmp_path: Path
) -> None:
    owner = owner_of(reporting, f"serving-{namespace}")
    with running(tmp_path, policies, *telling(reporting, tmp_path, form, "--events", owner=owner)) as server:
        for name in ("secret-update", "kubectl-label-overwrite", "kubectl-label-overwrite"):
            server.post(in_namespace(namespace, name))
        eventually(lambda: counted(reporting, form, owner).total() == 3)
        eventually(lambda: server.metric("fieldwarden_reports_rows") == 2)
        assert server.metric("fieldwarden_reports_failing") == 0
        events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        eventually(lambda: len(reporting.request("GET", events).body["items"]) == 1)
        assert server.ready()["warnings"] == []
        shown = json.dumps([reports(reporting, form, namespace), reporting.request("GET", events).body])
    secret = json.loads(review("secret-update"))["request"]
    values = [text for side in ("object", "oldObject") for text in secret[side]["data"].values()]
    assert values
    plain = [base64.b64decode(text).decode() for text in values]
    assert [value for value in (*values, *plain) if value in shown] == []
    assert "no-patches" in shown, "the write of the Secret is there"


def test_what_was_found_last_is_reported_before_the_server_ends(
    reporting: Sandbox, namespace: str, policies: Path, tmp_path: Path
) -> None:
    owner = owner_of(reporting, f"ending-{namespace}")
    arguments = telling(reporting, tmp_path, OPENREPORTS, "--report-interval", "3600", owner=owner)
    with running(tmp_path, policies, *arguments) as server:
        eventually(lambda: server.metric("fieldwarden_reports_last_success_timestamp_seconds") > 0)
        server.post(in_namespace(namespace, "kubectl-label-overwrite"))
        assert counted(reporting, OPENREPORTS, owner) == Counted()
        assert server.stop() == 0
    assert counted(reporting, OPENREPORTS, owner).total() == 1
    assert counted(reporting, OPENREPORTS, owner) == counted_in(tmp_path / "journal.db")


def test_missing_definitions_are_a_warning_and_the_server_stays_ready(
    own_sandbox: Sandbox, policies: Path, tmp_path: Path
) -> None:
    with running(tmp_path, policies, *telling(own_sandbox, tmp_path, POLICYREPORT)) as server:
        eventually(lambda: server.metric("fieldwarden_reports_failing") == 1)
        status, body = server.get("/readyz")
        assert status == 200
        assert "cannot be reported: this cluster does not serve wgpolicyk8s.io/v1alpha2: install" in body
        assert [line["level"] for line in server.lines("what was found cannot be reported")] == ["warning"]
        assert server.post(review()).allowed is False
    with pytest.raises(Unusable, match=r"serves neither openreports\.io/v1alpha1 nor wgpolicyk8s\.io/v1alpha2"):
        list(ClusterReports.connect(own_sandbox.kubeconfig()).records(None))


def test_the_command_reads_the_clusters_reports(reporting: Sandbox, tmp_path: Path) -> None:
    """Of all replicas together, as it would read their journals."""
    recorders = [Recorder(tmp_path / str(number)) for number in range(2)]
    space = "reading"
    assert reporting.request("POST", "/api/v1/namespaces", {"metadata": {"name": space}}).status == 201
    for one in recorders:
        one.record(event(1, space), event(1, space), event(2, space, would="record"))
        with reporting_with(reporting, one.path, "openreports", "read"):
            eventually(lambda at=one: at.journal.id in json.dumps(reports(reporting, OPENREPORTS, space)))  # type: ignore[misc]
    kubeconfig = str(reporting.kubeconfig())
    told = [
        CliRunner().invoke(report, [*sources, "--namespace", space, "-o", "json"])
        for sources in (["--kubeconfig", kubeconfig], [str(one.path) for one in recorders])
    ]
    assert [one.exit_code for one in told] == [1, 1], told
    cluster, journals = (_but_for_sources(json.loads(one.stdout)) for one in told)
    assert cluster == journals


def _but_for_sources(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in ("made", "sources", "notes")}


def test_the_newer_of_two_formats_is_read(reporting: Sandbox, namespace: str, tmp_path: Path) -> None:
    """As after a change of the format: added up they would tell everything twice."""
    recorder = Recorder(tmp_path)
    recorder.record(event(1, namespace))
    for form in (OPENREPORTS, POLICYREPORT):
        with reporting_with(reporting, recorder.path, form.name, f"both-{namespace}"):
            eventually(lambda at=form: counted(reporting, at, f"both-{namespace}").total() > 0)  # type: ignore[misc]
        recorder.record(event(1, namespace))
    source = ClusterReports.connect(reporting.kubeconfig())
    found = [record for record in source.records(None) if record.namespace == namespace]
    assert len(found) == 1
    assert any("are left aside" in note for note in source.notes())


def test_a_cluster_that_is_not_reached_is_no_wrong_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = CliRunner().invoke(report, [])
    assert done.exit_code == 3
    assert "no cluster is named" in done.stderr
    with pytest.raises(Unreached):
        ClusterReports.connect(tmp_path / "nowhere")
    both = CliRunner().invoke(report, ["--kubeconfig", "x", "journal.db"])
    assert (both.exit_code, "where no SOURCE is given" in both.stderr) == (2, True)
