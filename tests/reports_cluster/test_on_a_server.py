"""Reporters, each a process of its own, against a real API server that serves the published definitions."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import make_namespace
from tests.reports_cluster.installing import install, uninstall
from tests.reports_cluster.support import (
    Busy,
    Object,
    Process,
    Recorder,
    counted,
    counted_in,
    event,
    reporting_with,
    reports,
)
from tests.server.serving import eventually
from webhook.cluster.report_objects import FORMATS, OPENREPORTS, POLICYREPORT, Format, read
from webhook.sandbox import Sandbox

_numbers = itertools.count(1)
LONG = 240.0
"""Seconds in which what failed for a while is tried again: the pauses between two tries grow to one minute."""
BOTH = pytest.mark.parametrize("form", [OPENREPORTS, POLICYREPORT], ids=lambda form: form.name)


@pytest.fixture
def name() -> str:
    """Reports of this test's own."""
    return f"told-{next(_numbers)}"


@BOTH
def test_each_namespace_and_the_cluster_have_a_report(
    form: Format, reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path)
    recorder.record(event(1, namespace), event(1, namespace), event(2, ""), event(3, namespace, dry_run=True))
    with reporting_with(reporting, recorder.path, form.name, name):
        eventually(lambda: counted(reporting, form, name) == recorder.counted)
    [found] = [one for one in reports(reporting, form, namespace) if one["metadata"]["name"] == name]
    assert found["kind"] == form.kind
    assert found["scope"] == {"apiVersion": "v1", "kind": "Namespace", "name": namespace}
    assert found["summary"] == {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0}
    [result] = found["results"]
    assert (result["source"], result["policy"], result["rule"]) == ("fieldwarden", "flux", "labels")
    assert (result["result"], result["severity"], result["scored"]) == ("fail", "medium", True)
    assert result["resources"] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": "app-1"}
    ]
    told = result["properties"]
    assert told["count"] == "2"
    assert json.loads(told["paths"]) == [".metadata.labels.team"]
    assert (told["manager"], told["operation"], told["user"]) == ("kubectl-edit", "Update", "developer@example.com")
    assert (told["event"], told["mode"], told["would"], told["outcome"]) == ("change", "Audit", "deny", "recorded")
    assert json.loads(told["counts"]) == {recorder.journal.id: {told["last"][:10]: 2}}
    [cluster] = [one for one in reports(reporting, form, "") if one["metadata"]["name"] == name]
    assert (cluster["kind"], cluster.get("scope")) == (form.cluster_kind, None)
    assert cluster["results"][0]["resources"] == [{"apiVersion": "v1", "kind": "Node", "name": "app-2"}]
    assert found["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "fieldwarden"}


@BOTH
def test_several_reporters_some_of_them_killed_lose_and_double_nothing(
    form: Format, reporting: Sandbox, name: str, tmp_path: Path
) -> None:
    namespaces = [*(make_namespace(reporting, "told") for _ in range(2)), ""]
    recorders = [Recorder(tmp_path / str(number)) for number in range(3)]
    more = {"interval": 0.05, "bounds": {"rows": 25, "add": 30_000, "most": 60_000}}
    running = [Process(reporting, one.path, form.name, name, **more) for one in recorders]
    try:
        with Busy(recorders, namespaces):
            for number in itertools.islice(itertools.cycle(range(3)), 9):
                before = running[number].state.writes
                eventually(lambda at=number, past=before: running[at].state.writes > past + 3)  # type: ignore[misc]
                running[number].kill()
                running[number] = Process(reporting, recorders[number].path, form.name, name, **more)
        expected: Counter[tuple[str, str]] = Counter()
        for one in recorders:
            expected.update(one.counted)
        eventually(lambda: counted(reporting, form, name) == expected, LONG)
    finally:
        for process in running:
            process.kill()
    found = [one for one in reports(reporting, form) if one["metadata"]["name"].startswith(f"{name}-")]
    assert found, "what is too much for one report stands in a second"
    assert all(len(one["results"]) <= 40 for one in found)


def test_a_report_that_somebody_deletes_comes_back_with_all_of_it(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path)
    recorder.record(*(event(number, namespace) for number in range(5)))
    path = f"{OPENREPORTS.collection(namespace)}/{name}"
    with reporting_with(reporting, recorder.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted)
        assert reporting.request("DELETE", path).status == 200
        recorder.record(event(7, namespace))
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted)


def test_what_others_write_into_a_report_stays(reporting: Sandbox, namespace: str, name: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.record(event(1, namespace))
    path = f"{OPENREPORTS.collection(namespace)}/{name}"
    with reporting_with(reporting, recorder.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted)
        theirs = {"source": "scanner", "policy": "images", "result": "pass"}
        item = reporting.request("GET", path).body
        item["results"].append(theirs)
        item["metadata"]["labels"]["team"] = "a"
        eventually(lambda: _put(reporting, path, theirs))
        recorder.record(event(2, namespace))
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted)
    found = reporting.request("GET", path).body
    assert [one for one in found["results"] if one["source"] == "scanner"] == [theirs]
    assert found["metadata"]["labels"]["team"] == "a"
    assert found["summary"]["pass"] == 1


def _put(sandbox: Sandbox, path: str, theirs: Object) -> bool:
    """As the other one does it: read, add, write, unless somebody was faster."""
    item = sandbox.request("GET", path).body
    item["results"].append(theirs)
    item["metadata"]["labels"]["team"] = "a"
    return sandbox.request("PUT", path, item).status == 200


def test_a_report_of_that_name_that_is_not_ours_is_left_alone(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    theirs = {
        "apiVersion": "openreports.io/v1alpha1",
        "kind": "Report",
        "metadata": {"name": name},
        "source": "scanner",
    }
    made = reporting.request("POST", OPENREPORTS.collection(namespace), theirs)
    assert made.status == 201
    recorder = Recorder(tmp_path)
    recorder.record(event(1, namespace))
    with reporting_with(reporting, recorder.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted)
    assert reporting.request("GET", f"{OPENREPORTS.collection(namespace)}/{name}").body == made.body
    assert reporting.request("GET", f"{OPENREPORTS.collection(namespace)}/{name}-2").status == 200


def test_what_came_while_the_api_server_was_away_is_told_when_it_is_back(own_sandbox: Sandbox, tmp_path: Path) -> None:
    files = install(own_sandbox, OPENREPORTS, tmp_path)
    assert files
    recorders = [Recorder(tmp_path / str(number)) for number in range(2)]
    running = [Process(own_sandbox, one.path, "openreports", "told") for one in recorders]
    try:
        with Busy(recorders, ["default", ""]):
            eventually(lambda: all(process.state.writes > 3 for process in running))
            own_sandbox.stop_apiserver()
            eventually(lambda: all("Connection refused" in process.state.failure for process in running))
            own_sandbox.start_apiserver()
            eventually(lambda: not any(process.state.failure for process in running), LONG)
        expected = recorders[0].counted + recorders[1].counted
        eventually(lambda: counted(own_sandbox, OPENREPORTS) == expected, LONG)
    finally:
        for process in running:
            process.kill()


def test_missing_definitions_are_said_and_their_coming_is_noticed(own_sandbox: Sandbox, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "one")
    recorder.record(event(1, "default"))
    with reporting_with(own_sandbox, recorder.path, "policyreport", "told") as process:
        eventually(lambda: "does not serve wgpolicyk8s.io/v1alpha2: install" in process.state.failure)
        uninstall(own_sandbox, install(own_sandbox, OPENREPORTS, tmp_path))
        install(own_sandbox, POLICYREPORT, tmp_path)
        process.kill()
    with reporting_with(own_sandbox, recorder.path, "policyreport", "told"):
        eventually(lambda: counted(own_sandbox, POLICYREPORT) == recorder.counted)


def test_what_comes_last_is_told_before_the_process_ends(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path)
    process = Process(reporting, recorder.path, "openreports", name, interval=3600.0)
    try:
        eventually(lambda: process.state.contact > 0)
        recorder.record(event(1, namespace), event(2, ""))
        process.finish()
        assert counted(reporting, OPENREPORTS, name) == recorder.counted
    finally:
        process.kill()


def test_a_new_journal_adds_to_what_one_that_is_gone_has_told(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    first, second = Recorder(tmp_path / "first"), Recorder(tmp_path / "second")
    first.record(event(1, namespace), event(2, namespace))
    with reporting_with(reporting, first.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == first.counted)
    second.record(event(1, namespace), event(3, namespace))
    with reporting_with(reporting, second.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == first.counted + second.counted)


def test_reports_go_away_with_their_owner(reporting: Sandbox, namespace: str, tmp_path: Path) -> None:
    """The reference is what the garbage collector goes by. Without the owner nothing is written."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    owner = f"owner-{namespace}"
    recorder = Recorder(tmp_path)
    recorder.record(event(1, namespace), event(2, ""))
    with reporting_with(reporting, recorder.path, "openreports", owner, owner=owner) as process:
        eventually(lambda: f"there is no ClusterRole {owner}" in process.state.failure)
        assert not counted(reporting, OPENREPORTS, owner)
        uid = reporting.request("POST", roles, {"metadata": {"name": owner}}).body["metadata"]["uid"]
        eventually(lambda: counted(reporting, OPENREPORTS, owner) == recorder.counted)
    for place in (namespace, ""):
        item = reporting.request("GET", f"{OPENREPORTS.collection(place)}/{owner}").body
        [reference] = item["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["name"], reference["uid"]) == ("ClusterRole", owner, uid)


def test_a_namespace_that_is_gone_holds_up_no_other(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path)
    recorder.record(event(1, "no-such-namespace"), event(2, namespace))
    with reporting_with(reporting, recorder.path, "openreports", name) as process:
        eventually(lambda: counted(reporting, OPENREPORTS, name).total() == 1)
        eventually(lambda: process.state.contact > 0)
        assert (process.state.failure, process.state.troubles) == ("", ())


def test_a_large_journal_stands_in_several_reports_of_which_each_fits(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path)
    paths = tuple(f'.spec.template.spec.containers[name="c{n}"].env[name="VARIABLE_{n}"].value' for n in range(60))
    recorder.record(*(event(number, namespace, paths=paths) for number in range(900)))
    with reporting_with(reporting, recorder.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted, LONG)
    found = [one for one in reports(reporting, OPENREPORTS, namespace) if one["metadata"]["name"].startswith(name)]
    assert len(found) >= 3
    assert max(len(json.dumps(one)) for one in found) < 1 << 20
    before = {one["metadata"]["name"]: set(read(one).rows) for one in found}
    recorder.record(*(event(number, namespace) for number in range(900, 1000)))
    with reporting_with(reporting, recorder.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == counted_in(recorder.path), LONG)
    after = {one["metadata"]["name"]: set(read(one).rows) for one in reports(reporting, OPENREPORTS, namespace)}
    assert all(rows <= after[at] for at, rows in before.items()), "no row moves for those that come"


def test_both_formats_are_offered() -> None:
    assert set(FORMATS) == {"openreports", "policyreport"}


def test_a_journal_that_was_long_not_heard_of_is_folded_and_never_doubled(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    """Even where it comes back and tells all that it knows."""
    path = f"{OPENREPORTS.collection(namespace)}/{name}"
    first, second = Recorder(tmp_path / "first"), Recorder(tmp_path / "second")
    first.record(event(1, namespace), event(2, namespace))
    before = first.counted
    with reporting_with(reporting, first.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == before)
    long_ago = {"fieldwarden.dev/journals": json.dumps({first.journal.id: "2026-01-01T00:00:00Z"})}
    merge = "application/merge-patch+json"
    patched = reporting.request("PATCH", path, {"metadata": {"annotations": long_ago}}, content_type=merge)
    assert patched.status == 200
    second.record(event(1, namespace))
    with reporting_with(reporting, second.path, "openreports", name):
        eventually(lambda: counted(reporting, OPENREPORTS, name) == before + second.counted)
    stored = read(reporting.request("GET", path).body)
    assert set(stored.sealed) == {first.journal.id}
    assert {journal for row in stored.rows.values() for journal in row.counts} == {"", second.journal.id}
    with reporting_with(reporting, first.path, "openreports", name) as process:
        eventually(lambda: process.state.contact > 0)
    assert counted(reporting, OPENREPORTS, name) == before + second.counted


def test_kubernetes_removes_the_reports_of_a_release_that_is_gone(own_sandbox: Sandbox, tmp_path: Path) -> None:
    install(own_sandbox, OPENREPORTS, tmp_path)
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert own_sandbox.request("POST", roles, {"metadata": {"name": "owner"}}).status == 201
    recorder = Recorder(tmp_path / "one")
    recorder.record(event(1, "default"), event(2, ""))
    with reporting_with(own_sandbox, recorder.path, "openreports", "owner", owner="owner"):
        eventually(lambda: counted(own_sandbox, OPENREPORTS) == recorder.counted)
    own_sandbox.start_controller_manager()
    assert own_sandbox.request("DELETE", f"{roles}/owner").status == 200
    eventually(lambda: not reports(own_sandbox, OPENREPORTS), LONG)


GROUPS = {
    "reports": "openreports.io",
    "clusterreports": "openreports.io",
    "clusterroles": "rbac.authorization.k8s.io",
    "events": "events.k8s.io",
}
INSTALL = Path(__file__).parents[2] / "docs" / "install.md"


def test_it_needs_no_more_rights_than_the_docs_tell(
    reporting: Sandbox, namespace: str, name: str, tmp_path: Path
) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rows = re.findall(r"^\| webhook \| `(\w+)`(, by name)? \| ([\w, ]+) \|", INSTALL.read_text(), re.MULTILINE)
    rules = [
        {"apiGroups": [GROUPS[resource]], "resources": [resource], "verbs": verbs.split(", ")}
        | ({"resourceNames": [name]} if named else {})
        for resource, named, verbs in rows
        if resource in GROUPS
    ]
    assert len(rules) == len(GROUPS)
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "outsider@example.com"}],
    }
    recorder = Recorder(tmp_path)
    recorder.record(event(1, namespace), event(2, namespace, outcome="refused"), event(3, ""))
    told = {"user": "outsider", "owner": name, "events": True}
    with reporting_with(reporting, recorder.path, "openreports", name, **told) as process:
        eventually(lambda: "forbidden" in process.state.failure)
        role = {"metadata": {"name": name}, "rules": rules}
        assert reporting.request("POST", f"{rbac}/clusterroles", role).status == 201
        assert reporting.request("POST", f"{rbac}/clusterrolebindings", binding).status == 201
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted)
        eventually(lambda: process.state.events == 1)
        assert (process.state.failure, process.state.troubles) == ("", ())
        assert reporting.request("DELETE", f"{OPENREPORTS.collection(namespace)}/{name}").status == 200
        recorder.record(event(4, namespace))
        eventually(lambda: counted(reporting, OPENREPORTS, name) == recorder.counted)
    assert reporting.request("DELETE", f"{rbac}/clusterrolebindings/{name}").status == 200
