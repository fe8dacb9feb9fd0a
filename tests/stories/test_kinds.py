"""Custom resources, and objects without a namespace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.support import JSON_PATCH, MERGE_PATCH, Object, Story, without

ITS = "kustomize-controller (Apply)"
APPLIED = "change flux-owns/applied"

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "a value in a keyed list": (
        {"op": "replace", "path": "/spec/parts/1/weight", "value": 9},
        '.spec.parts[id="b"].weight',
    ),
    "a member of a set": ({"op": "remove", "path": "/spec/colors/1"}, '.spec.colors[="red"]'),
    "an atomic list": ({"op": "add", "path": "/spec/steps/-", "value": "paint"}, ".spec.steps"),
    "what has no schema": ({"op": "replace", "path": "/spec/anything/deep/er", "value": 2}, ".spec.anything.deep.er"),
}


@pytest.mark.parametrize("told", CHANGES)
def test_a_custom_resource(widget: Story, told: str) -> None:
    patch, path = CHANGES[told]
    answer = widget.request("PATCH", [patch], content_type=JSON_PATCH)
    answer.denied(f"{APPLIED} {path}")
    assert widget.owners(path) == [ITS]


def test_a_custom_resources_item_removed(widget: Story) -> None:
    answer = widget.request("PATCH", [{"op": "remove", "path": "/spec/parts/0"}], content_type=JSON_PATCH)
    item = '.spec.parts[id="a"]'
    answer.denied(f"{APPLIED} {item} {item}.id {item}.weight")


def test_beside_what_flux_owns_there_is_room(widget: Story) -> None:
    more = [
        {"op": "add", "path": "/spec/parts/-", "value": {"id": "c", "weight": 3}},
        {"op": "add", "path": "/spec/colors/-", "value": "green"},
        {"op": "add", "path": "/spec/anything/mine", "value": True},
    ]
    widget.request("PATCH", more, content_type=JSON_PATCH, params={"fieldManager": "me"}).allowed()
    paths = ['.spec.parts[id="c"].weight', '.spec.colors[="green"]', ".spec.anything.mine"]
    assert [widget.owners(path) for path in paths] == [["me (Update)"]] * 3
    widget.flux().allowed()
    assert [widget.owners(path) for path in paths] == [["me (Update)"]] * 3


def test_a_custom_resource_edited_with_kubectl(widget: Story) -> None:
    widget.kubectl("edit widgets.stories one", editor="sed -i s/glue/weld/").denied(f"{APPLIED} .spec.steps")
    widget.kubectl("label widgets.stories one team=mine --overwrite").denied(f"{APPLIED} .metadata.labels.team")
    widget.kubectl("label widgets.stories one tier=front").allowed()


def test_a_custom_resource_replaced_by_itself(widget: Story) -> None:
    assert not widget.kubectl("replace -f -", stdin=json.dumps(widget.get())).allowed().stored


def test_a_custom_resource_shared_and_forced(widget: Story) -> None:
    other = {**widget.git, "spec": {"steps": ["cut", "glue"]}}
    widget.apply(without(other, "metadata", "labels"), "other").recorded("share flux-owns/applied .spec.steps")
    other["spec"] = {"steps": ["cut"]}
    widget.apply(without(other, "metadata", "labels"), "other", force=True).denied(f"{APPLIED} .spec.steps")


@pytest.fixture
def role(tell: Tell, namespace: str) -> Story:
    """A ClusterRole that Flux has applied, with a name of its own."""
    return applied(tell(manifests.cluster_role(f"reader-{namespace}")))


def test_a_cluster_scoped_object(role: Story) -> None:
    name = role.git["metadata"]["name"]
    label = f"label clusterrole {name}"
    role.kubectl(f"{label} team=mine --overwrite").denied(f"{APPLIED} .metadata.labels.team")
    role.kubectl(f"{label} tier=front").allowed()
    assert role.owners(".metadata.labels.tier") == ["kubectl-label (Update)"]


def test_a_cluster_scoped_objects_rules(role: Story) -> None:
    verbs = [{"op": "add", "path": "/rules/0/verbs/-", "value": "delete"}]
    role.request("PATCH", verbs, content_type=JSON_PATCH).denied(f"{APPLIED} .rules")
    emptied: Object = {"metadata": {"managedFields": [{}]}}
    (event,) = role.request("PATCH", emptied, content_type=MERGE_PATCH).refused
    assert event == "tamper claims/unedited .rules .metadata.labels.team"
    assert role.claims() == [ITS]


def test_a_cluster_scoped_ghost(role: Story) -> None:
    name = role.git["metadata"]["name"]
    role.kubectl(f"label clusterrole {name} tier=front").allowed()
    role.git["metadata"]["labels"]["tier"] = "front"
    role.flux().recorded("share flux-owns/applied .metadata.labels.tier")
    del role.git["metadata"]["labels"]["tier"]
    role.flux().rewrote("ghost flux-owns/applied .metadata.labels.tier")
    assert role.value(".metadata.labels.tier") is None
