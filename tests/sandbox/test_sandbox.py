"""The sandbox as its users meet it."""

from __future__ import annotations

import json

import pytest

from webhook.sandbox import Sandbox, SandboxError


def test_kubectl_version_reads_right_on_both_sides(sandbox: Sandbox) -> None:
    said = json.loads(sandbox.kubectl("version", "-o", "json").stdout)
    versions = [said[side][key] for side in ("clientVersion", "serverVersion") for key in ("gitVersion", "minor")]
    assert versions == ["v1.36.3", "36", "v1.36.3", "36"]


@pytest.mark.parametrize(
    ("user", "name", "groups"),
    [
        ("admin", "admin", {"system:masters"}),
        ("developer", "developer@example.com", {"developers"}),
        (
            "flux",
            "system:serviceaccount:flux-system:kustomize-controller",
            {"system:serviceaccounts", "system:serviceaccounts:flux-system"},
        ),
        (
            "argocd",
            "system:serviceaccount:argocd:argocd-application-controller",
            {"system:serviceaccounts", "system:serviceaccounts:argocd"},
        ),
        (
            "autoscaler",
            "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
            {"system:serviceaccounts", "system:serviceaccounts:kube-system"},
        ),
        ("helm", "helm-ci@example.com", {"deployers"}),
        ("oncall", "oncall@example.com", {"oncall"}),
        ("platform", "platform@example.com", {"platform-admins"}),
        ("outsider", "outsider@example.com", set()),
    ],
)
def test_each_user_is_who_the_stories_say(sandbox: Sandbox, user: str, name: str, groups: set[str]) -> None:
    said = json.loads(sandbox.kubectl("auth", "whoami", "-o", "json", user=user).stdout)["status"]["userInfo"]
    assert said["username"] == name
    assert set(said["groups"]) == groups | {"system:authenticated"}


def test_everybody_may_write_but_the_outsider(sandbox: Sandbox, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    status = {
        user: sandbox.request("POST", path, {"metadata": {"name": user}}, user).status
        for user in sandbox.users
        if user != "controller-manager"
    }
    assert status.pop("outsider") == 403
    assert set(status.values()) == {201}


def test_an_apply_is_claimed_by_its_manager(sandbox: Sandbox, namespace: str) -> None:
    item = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]},
            },
        },
    }
    dry = sandbox.apply(item, "kustomize-controller", "flux", dry_run=True)
    assert (dry.status, sandbox.request("GET", sandbox.path_of(item)).status) == (201, 404)
    reply = sandbox.apply(item, "kustomize-controller", "flux")
    assert reply.status == 201
    (claim,) = reply.body["metadata"]["managedFields"]
    assert (claim["manager"], claim["operation"]) == ("kustomize-controller", "Apply")
    scale = sandbox.request("GET", sandbox.path_of(item, "scale"))
    assert scale.body["kind"] == "Scale"


def test_a_conflict_and_a_warning_come_back_as_they_are(sandbox: Sandbox, namespace: str) -> None:
    item = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": namespace},
        "data": {"a": "1"},
    }
    assert sandbox.apply(item, "one").status == 201
    refused = sandbox.apply({**item, "data": {"a": "2"}}, "two")
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (409, ".data.a")
    path = sandbox.path_of(item)
    unknown = sandbox.request("PUT", path, {**item, "nonsense": 1}, params={"fieldValidation": "Warn"})
    assert (unknown.status, unknown.warnings) == (200, ['unknown field "nonsense"'])


def test_kubectl_reads_its_input_and_reports_failure(sandbox: Sandbox, namespace: str) -> None:
    manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "piped"}})
    sandbox.kubectl("-n", namespace, "apply", "-f", "-", user="developer", input=manifest)
    assert sandbox.kubectl("-n", namespace, "get", "configmap", "piped", "-o", "name").stdout == "configmap/piped\n"
    refused = sandbox.kubectl("-n", namespace, "get", "configmaps", user="outsider", check=False)
    assert refused.returncode == 1
    assert "Forbidden" in refused.stderr
    with pytest.raises(SandboxError, match="NotFound"):
        sandbox.kubectl("-n", namespace, "get", "configmap", "missing")


def test_an_unknown_user_is_named(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="no user nobody"):
        sandbox.kubeconfig("nobody")
