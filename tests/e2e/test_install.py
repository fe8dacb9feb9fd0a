"""`helm install` as a reader of the docs types it: it works the first time, and denies nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.cluster import Cluster, Object
from tests.e2e.release import POLICIES, Release
from tests.e2e.served import Served, in_force, is_ready
from tests.stories.support import MERGE_PATCH
from webhook.sandbox import Completed, Reply

WITHIN = 20.0  # seconds in which a change of policies is in force also where a node has much else to do; it takes two


def owned(name: str = "colors", field: str = "color") -> Object:
    """Nobody but the platform's people writes this field of a ConfigMap."""
    owners = [{"manager": "owner", "subjects": [{"user": "platform@example.com"}]}]
    rule = {"fields": [f".data.{field}"], "owners": owners, "guard": "Matching", "onChange": "Deny"}
    return {
        "apiVersion": "fieldwarden.dev/v1alpha1",
        "kind": "FieldPolicy",
        "metadata": {"name": name},
        "spec": {
            "description": "Who writes it.",
            "mode": "Enforce",
            "match": {"resources": [{"groups": [""], "resources": ["configmaps"]}], "namespaces": ["e2e-*"]},
            "rules": [{"name": "owned", "ownership": rule}],
        },
    }


def change(cluster: Cluster, namespace: str, field: str = "color") -> Reply:
    """A developer changes a field."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/settings"
    if not cluster.get(path):
        cluster.request("POST", path.rpartition("/")[0], {"metadata": {"name": "settings"}})
    data = {"data": {field: str(time.monotonic())}}
    return cluster.request("PATCH", path, data, "developer", MERGE_PATCH)


def is_denied(reply: Reply, policy: str = "colors") -> bool:
    return reply.status == 403 and f"[{policy}/owned]" in str(reply.body["message"])


@pytest.fixture(scope="module")
def installed(release: Release) -> Completed:
    """With the chart's defaults, on a cluster that knows nothing of it."""
    return release.install({})


@pytest.fixture(scope="module")
def enforcing(release: Release, installed: Completed) -> Release:
    release.having(mode="Enforce")
    return release


@pytest.fixture
def colors(release: Release) -> Iterator[None]:
    in_force(release, owned())
    yield
    in_force(release)


def test_all_pods_are_ready_and_helm_test_passes(installed: Completed, release: Release) -> None:
    assert "Mode Audit" in installed.stdout
    assert [len(release.pods(component)) for component in ("webhook", "controller")] == [2, 1]
    said = release.test().stdout
    assert "Phase:          Succeeded" in said
    assert "/validate answers as fieldwarden-webhook.fieldwarden.svc" in said


def test_nothing_is_denied_and_all_is_recorded(
    installed: Completed, release: Release, cluster: Cluster, namespace: str, colors: None
) -> None:
    with Served(release) as served:
        mark = served.mark()
        reply = change(cluster, namespace)
        assert (reply.status, reply.warnings) == (200, [])
        results = [result for line in served.reviews(mark) for result in line.get("results", ())]
    assert [(result["policy"], result["outcome"], result["paths"]) for result in results] == [
        ("colors", "recorded", [".data.color"])
    ]


def test_a_policy_denies_within_seconds(enforcing: Release, cluster: Cluster, namespace: str) -> None:
    in_force(enforcing)
    assert change(cluster, namespace).status == 200
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(owned()))
    cluster.wait_until(lambda: all(is_denied(change(cluster, namespace)) for _ in range(20)), seconds=WITHIN)
    cluster.wait_until(lambda: is_ready(cluster.get(f"{POLICIES}/colors")), seconds=WITHIN)
    cluster.kubectl("delete", "fieldpolicy", "colors")
    cluster.wait_until(lambda: all(change(cluster, namespace).status == 200 for _ in range(20)), seconds=WITHIN)


def test_a_policys_status_says_how_it_is(enforcing: Release, cluster: Cluster, colors: None) -> None:
    item = cluster.get(f"{POLICIES}/colors")
    (condition,) = item["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "True", "InForce")
    assert item["status"]["matchedResources"] == ["configmaps"]
    assert item["status"]["lastLoadTime"] >= item["metadata"]["creationTimestamp"]
    head, row = cluster.kubectl("get", "fieldpolicies", "-o", "wide").stdout.splitlines()
    assert head.split() == ["NAME", "MODE", "EFFECTIVE", "READY", "REASON", "DESCRIPTION", "AGE"]
    assert row.split()[:5] == ["colors", "Enforce", "Enforce", "True", "InForce"]


def test_an_invalid_policy_is_refused_with_the_linters_words(enforcing: Release, cluster: Cluster) -> None:
    wrong = owned()
    wrong["spec"]["rules"][0]["ownership"]["fields"] = [".data[color"]
    wrong["spec"]["rules"][0]["ownership"]["onGost"] = "Prune"
    said = cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(wrong), check=False)
    assert said.returncode != 0
    assert 'The FieldPolicy "colors" is invalid' in said.stderr
    assert "spec.rules[0].ownership.fields[0]: " in said.stderr
    assert "spec.rules[0].ownership.onGost: there is no key onGost here (did you mean onGhost?)" in said.stderr
    assert cluster.get(f"{POLICIES}/colors") == {}


def test_policies_from_files_of_ones_own(enforcing: Release, cluster: Cluster, namespace: str) -> None:
    """A file that changes is taken into use by the running pods; kubelet looks at once when a pod is touched."""
    data = {"sizes.yaml": yaml.safe_dump(owned("sizes", "size"))}
    place = {"name": "own-policies", "namespace": enforcing.namespace}
    cluster.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": data})
    enforcing.having(mode="Enforce", policies={"existingConfigMap": "own-policies"})
    cluster.wait_until(lambda: is_denied(change(cluster, namespace, "size"), "sizes"), seconds=WITHIN)

    data["sizes.yaml"] = yaml.safe_dump(owned("sizes", "shape"))
    cluster.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": data})
    enforcing.touch()
    cluster.wait_until(lambda: is_denied(change(cluster, namespace, "shape"), "sizes"))
    cluster.wait_until(lambda: all(change(cluster, namespace, "size").status == 200 for _ in range(20)))
