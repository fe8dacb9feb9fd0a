"""From the chart before to this one, and away: writes go on, and nothing is left that the docs do not name."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.load import Load, failed, shown
from tests.e2e.release import CHART, DEFINITION, POLICIES, Release

MakeLoad = Callable[[], Load]

CLOSED = {"mode": "Enforce", "webhooks": {"failurePolicy": "Fail"}}
NAMED = f"customresourcedefinition.apiextensions.k8s.io/{DEFINITION.rpartition('/')[2]}"


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The chart before this one. There is no release yet: it is this chart under an older version."""
    chart = tmp_path / "fieldwarden"
    shutil.copytree(CHART, chart)
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    described["version"] = "0.0.1"
    (chart / "Chart.yaml").write_text(yaml.safe_dump(described))
    return chart


def everything(cluster: Cluster, release: Release) -> list[str]:
    """Objects of the release of any kind, also what its namespace holds beside what every namespace does."""
    listed = ("api-resources", "--verbs=list,delete", "--output=name")
    kinds = {kind for kind in cluster.kubectl(*listed).stdout.split() if not kind.startswith("events")}
    chosen = f"--selector=app.kubernetes.io/instance={release.name}"
    found = cluster.kubectl("get", ",".join(sorted(kinds)), "-A", chosen, "-o", "name").stdout.split()
    inside = cluster.kubectl(
        "get", "secrets,configmaps,leases,roles,rolebindings", "-n", release.namespace, "-o", "name"
    )
    found += [name for name in inside.stdout.split() if name != "configmap/kube-root-ca.crt"]
    return sorted(set(found))


def test_an_upgrade_from_the_chart_before(cluster: Cluster, release: Release, load: MakeLoad, before: Path) -> None:
    release.purge()
    older = {**CLOSED, "webhook": {"workers": 1, "logLevel": "debug", "drainSeconds": 5}, "commonLabels": {"team": "a"}}
    release.install(older, before)
    hook = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/fieldwarden"
    with load() as running:
        began = time.monotonic()
        rules = cluster.get(hook)["webhooks"][0]["rules"]
        release.upgrade(CLOSED)
        running.settle()
    lost = failed(running.since(began))
    assert not lost, shown(lost, began)
    now = cluster.get(hook)
    assert now["webhooks"][0]["rules"] == rules
    assert "team" not in now["metadata"]["labels"]
    assert {len(pod["spec"]["containers"][0]["args"]) for pod in release.pods("webhook")}
    history = cluster.run(("helm", "history", release.name, "-n", release.namespace, "-o", "yaml")).stdout
    assert [one["chart"] for one in yaml.safe_load(history)][-2:] == ["fieldwarden-0.0.1", _chart_name()]


def _chart_name() -> str:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    return f"{described['name']}-{described['version']}"


def test_uninstalled_it_leaves_the_definition_and_policies_and_disturbs_nobody(
    cluster: Cluster, release: Release, load: MakeLoad
) -> None:
    release.having(**CLOSED)
    with load() as running:
        assert len(everything(cluster, release)) > 20
        began = time.monotonic()
        release.uninstall()
        ended = time.monotonic()
        cluster.wait_until(lambda: everything(cluster, release) == [NAMED])
    lost = [write for write in running.since(began) if "failed calling webhook" in write.said]
    assert not lost, shown(lost, began)
    assert [item["metadata"]["name"] for item in cluster.get(POLICIES)["items"]] == ["load"]
    assert ended > began


def test_installed_again_it_finds_its_policies(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    release.having(**CLOSED)
    with load() as running:
        began = time.monotonic()
        running.settle()
    lost = failed(running.since(began))
    assert not lost, shown(lost, began)


def test_uninstalled_with_the_definition_nothing_is_left(cluster: Cluster, release: Release) -> None:
    release.having(**CLOSED, crds={"keep": False})
    release.uninstall()
    cluster.wait_until(lambda: everything(cluster, release) == [])
