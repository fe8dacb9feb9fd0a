"""`fieldwarden serve --policies-from-cluster` beside a real API server, with two workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support import ANNOTATE, LABEL, PATH, Object, denied, following, in_force, install, invalid, policy
from tests.server.serving import Server, eventually
from webhook.sandbox import Sandbox


@pytest.fixture(scope="module")
def shared(fieldpolicies: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for the tests that only change policies. Its files are compared once in ten minutes: news alone counts."""
    with following(fieldpolicies, tmp_path_factory.mktemp("shared"), "--reload-interval", "600") as server:
        yield server


@pytest.fixture
def server(shared: Server, clean: Sandbox) -> Server:
    in_force(shared, label=False, annotate=False)
    eventually(lambda: is_empty(shared))  # also of policies that denied neither
    return shared


def is_empty(server: Server) -> bool:
    told = server.ready()
    return not told["warnings"] and {worker["policies"] for worker in told["workers"]} == {0}


def apply(sandbox: Sandbox, item: Object) -> None:
    sandbox.kubectl("apply", "-f", "-", input=json.dumps(item))


def warnings(server: Server) -> str:
    return "\n".join(server.ready()["warnings"])


def test_without_any_policy_it_is_ready_and_has_nothing_to_say(server: Server) -> None:
    status, body = server.get("/readyz")
    assert (status, json.loads(body)["warnings"]) == (200, [])
    assert server.metric("fieldwarden_cluster_followed") == 1
    assert server.metric("fieldwarden_cluster_policies") == 0


def test_a_policy_is_in_force_soon_after_it_is_applied_changed_and_deleted(server: Server, clean: Sandbox) -> None:
    apply(clean, policy())
    in_force(server, label=True, annotate=False)
    eventually(lambda: server.metric("fieldwarden_cluster_policies") == 1)
    apply(clean, policy(denied=ANNOTATE))
    in_force(server, label=False, annotate=True)
    clean.kubectl("delete", "fwp", "no-labels")
    in_force(server, label=False, annotate=False)
    assert len(server.generations()) == 1


def test_an_invalid_one_is_left_out_and_holds_up_no_other(server: Server, clean: Sandbox) -> None:
    apply(clean, invalid("bad"))
    apply(clean, policy("good"))
    in_force(server, label=True, annotate=False)
    said = "fieldpolicies/bad is not in force: spec.rules[0].writers.deny[0]: [ has no meaning"
    eventually(lambda: said in warnings(server))  # the mirror says it once it has written what is in force
    assert server.get("/readyz")[0] == 200
    assert server.metric("fieldwarden_cluster_policies_left_out") == 1
    clean.kubectl("delete", "fwp", "bad")
    eventually(lambda: not server.ready()["warnings"])


def test_one_that_becomes_invalid_stays_as_it_last_was_good(server: Server, clean: Sandbox) -> None:
    apply(clean, policy("a"))
    in_force(server, label=True)
    apply(clean, invalid("a"))
    apply(clean, policy("b", ANNOTATE))
    in_force(server, label=True, annotate=True)
    eventually(lambda: "fieldpolicies/a stays in force as it last was good: spec.rules[0]" in warnings(server))
    assert server.metric("fieldwarden_policies_stale") == 0, "the set itself loads"
    apply(clean, policy("a", "nobody"))
    in_force(server, label=False, annotate=True)
    eventually(lambda: not server.ready()["warnings"])


def test_labels_of_namespaces_select_as_they_are_now(server: Server, clean: Sandbox, namespace: str) -> None:
    apply(clean, policy(namespaceSelector={"matchLabels": {"team": "a"}}))
    eventually(lambda: {worker["policies"] for worker in server.ready()["workers"]} == {1})

    def selected(wanted: bool) -> None:
        eventually(lambda: denied(server, LABEL, namespace) == {wanted})

    selected(False)
    generations = server.generations()
    clean.kubectl("label", "namespace", namespace, "team=a")
    selected(True)
    clean.kubectl("label", "namespace", namespace, "team=b", "--overwrite")
    selected(False)
    clean.kubectl("label", "namespace", namespace, "team-")
    selected(False)
    assert server.generations() == generations, "policies are not loaded again for a label"
    assert denied(server, LABEL, "not-known-yet") == {True}, "in doubt a policy is about a namespace"


def test_a_namespace_that_is_new_is_known_by_its_labels(server: Server, clean: Sandbox) -> None:
    apply(clean, policy(namespaceSelector={"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}))
    in_force(server, label=True)
    made = clean.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": "new-", "labels": {"team": "a"}}})
    name = made.body["metadata"]["name"]
    eventually(lambda: denied(server, LABEL, name) == {False})


def test_files_and_cluster_stand_together_and_the_file_has_the_name(
    clean: Sandbox, folder: Path, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "file.yaml").write_text(json.dumps(policy("same", ANNOTATE)))
    apply(clean, policy("same", LABEL))
    with following(clean, folder, files=files) as server:
        assert denied(server, ANNOTATE) == {True}
        assert denied(server, LABEL) == {False}
        told = warnings(server)
        assert "fieldpolicies/same is not in force: metadata.name: there is a policy same already" in told
        assert str(files / "file.yaml") in told
        apply(clean, policy("other", LABEL))
        in_force(server, label=True, annotate=True)
        clean.kubectl("delete", "fwp", "other")
        in_force(server, label=False, annotate=True)
        (files / "file.yaml").write_text(json.dumps(policy("renamed", ANNOTATE)))
        in_force(server, label=True, annotate=True)
        eventually(lambda: not server.ready()["warnings"])


def test_broken_files_hold_up_nothing_from_the_cluster(clean: Sandbox, folder: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "file.yaml").write_text(json.dumps(policy("file", ANNOTATE)))
    apply(clean, policy("cluster", LABEL))
    with following(clean, folder, files=files) as server:
        in_force(server, label=True, annotate=True)
        (files / "broken.yaml").write_text("kind: FieldPolicy\n")
        eventually(lambda: "do not load" in warnings(server))
        clean.kubectl("delete", "fwp", "cluster")
        in_force(server, label=False, annotate=True)
        (files / "broken.yaml").unlink()
        eventually(lambda: not server.ready()["warnings"])


def test_it_needs_no_more_rights_than_to_read_policies_and_namespaces(clean: Sandbox, folder: Path) -> None:
    rbac = "rbac.authorization.k8s.io"
    clean.kubectl("create", "clusterrole", "mirror", "--verb=get,list,watch",
                  "--resource=fieldpolicies.fieldwarden.dev,namespaces")  # fmt: skip
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "mirror"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "mirror"},
        "subjects": [{"kind": "User", "apiGroup": rbac, "name": "outsider@example.com"}],
    }
    with following(clean, folder, user="outsider", wait=False) as server:
        eventually(lambda: "forbidden" in warnings(server))
        assert server.ready()["reasons"][0] == "policies from the cluster have not been read yet"
        assert server.get("/healthz")[0] == 200
        assert clean.request("POST", f"/apis/{rbac}/v1/clusterrolebindings", binding).status == 201
        apply(clean, policy())
        eventually(lambda: server.get("/readyz")[0] == 200)
        in_force(server, label=True)
    assert clean.request("DELETE", f"/apis/{rbac}/v1/clusterrolebindings/mirror").status == 200
    clean.kubectl("delete", "clusterrole", "mirror")


def test_the_order_of_installation_does_not_matter(own_sandbox: Sandbox, folder: Path) -> None:
    """The custom resource may come after the server."""
    with following(own_sandbox, folder, wait=False) as server:
        eventually(lambda: "404" in warnings(server))
        assert server.get("/readyz")[0] == 503
        asked = server.post(b"{}")
        assert (asked.status, asked.body["error"]["reason"]) == (503, "policies-not-read"), "nothing is let in unjudged"
        install(own_sandbox)
        assert own_sandbox.request("POST", PATH, policy()).status == 201
        eventually(lambda: server.get("/readyz")[0] == 200)
        in_force(server, label=True)
