"""Helm 4 applies on the server, without force unless it is told to: a hotfix on call no longer stops the next upgrade."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rewriting.conftest import NOBODYS, Place
from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import Answer, Story
from webhook.sandbox import binaries

HELMS = "helm (Apply)"
COLOR = ".data.color"


class Chart:
    """A chart of one ConfigMap, released by the pipeline's user."""

    def __init__(self, folder: Path, story: Story) -> None:
        self.folder, self.story = folder, story
        (folder / "templates").mkdir()
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: settings\nversion: 0.1.0\n")
        (folder / "values.yaml").write_text("color: blue\n")
        data = {"color": "{{ .Values.color }}", "size": "5"}
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
        (folder / "templates" / "settings.yaml").write_text(json.dumps(item))

    def upgrade(self, *flags: str) -> Answer:
        home = str(self.folder.parent / "helm")
        names = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        environment = {**self.story.sandbox.environment("helm"), **dict.fromkeys(names, home)}
        namespace = self.story.git["metadata"]["namespace"]
        argv = [str(binaries({"helm"})["helm"]), "-n", namespace, "upgrade", "--install", "one", str(self.folder)]
        return self.story.program([*argv, *flags], environment)


@pytest.fixture
def chart(tmp_path: Path, tell: Tell) -> Chart:
    """Where it is released is for the test to say."""
    (tmp_path / "chart").mkdir()
    return Chart(tmp_path / "chart", tell(manifests.config_map("")))


def at(chart: Chart, namespace: str) -> Story:
    chart.story.git["metadata"]["namespace"] = namespace
    return chart.story


def test_an_upgrade_after_a_hotfix(chart: Chart, place: Place) -> None:
    story = at(chart, place("reassign"))
    chart.upgrade().allowed()
    hotfix = """patch configmap settings -p '{"data":{"color":"red"}}'"""
    story.kubectl(hotfix).denied(f"change reassign/applied {COLOR}")
    answer = story.kubectl(hotfix, "oncall").rewrote(f"change reassign/break-glass {COLOR}")
    assert f"returned {COLOR} to {HELMS}" in answer.told
    assert (story.value(COLOR), story.owners(COLOR)) == ("red", [HELMS])

    assert chart.upgrade().allowed().stored
    assert (story.value(COLOR), story.owners(COLOR)) == ("blue", [HELMS])


def test_an_upgrade_after_a_hotfix_fails_without_fieldwarden(chart: Chart, place: Place) -> None:
    story = at(chart, place(NOBODYS))
    chart.upgrade().allowed()
    story.kubectl("""patch configmap settings -p '{"data":{"color":"red"}}'""", "oncall").allowed()
    answer = chart.upgrade()
    assert not answer.ok
    assert 'Apply failed with 1 conflict: conflict with "kubectl-patch" using v1: .data.color' in answer.told
    assert story.value(COLOR) == "red"


def test_helms_own_move_to_server_side_apply_is_left_alone(chart: Chart, place: Place) -> None:
    """Helm folds its Update claim into an Apply claim with a JSON patch of its own, and then applies."""
    story = at(chart, place("unedited"))
    chart.upgrade("--server-side=false").allowed()
    assert story.claims() == ["helm (Update)"]
    chart.upgrade("--server-side=true").allowed()
    assert story.claims() == [HELMS]
    assert story.owners(COLOR) == [HELMS]
    assert chart.upgrade("--server-side=true", "--set", "color=red").allowed().stored
    assert (story.value(COLOR), story.owners(COLOR)) == ("red", [HELMS])
