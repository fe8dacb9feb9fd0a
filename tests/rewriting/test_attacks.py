"""Ways around a rewrite, and rewrites that took too much: each was possible once."""

from __future__ import annotations

import json
from typing import Any

from tests.rewriting.conftest import Place, Web, container, drop_sidecar
from tests.rewriting.conftest import add_sidecar as with_sidecar
from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.support import JSON_PATCH, MERGE_PATCH, Object, Story

ITS = "kustomize-controller (Apply)"
KUBECTLS = "kubectl (Apply)"
APPLIED = "change restore/applied"
SIDE = '.spec.template.spec.containers[name="side"]'


def autoscaler_in_v1(namespace: str) -> Object:
    item = manifests.autoscaler(namespace)
    spec = {"maxReplicas": 5, "scaleTargetRef": item["spec"]["scaleTargetRef"]}
    return {**item, "apiVersion": "autoscaling/v1", "spec": spec}


def test_another_version_does_not_take_the_claim(tell: Tell, place: Place) -> None:
    """The value came back and the claim did not: the same write passed when it was sent again."""
    story = applied(tell(autoscaler_in_v1(place("restore"))))
    newer = story.path.replace("/v1/", "/v2/")
    for size in (9, 11):
        body = {"metadata": {"labels": {"note": str(size)}}, "spec": {"maxReplicas": size}}
        answer = story.request("PATCH", body, content_type=MERGE_PATCH, path=newer)
        answer.rewrote(f"{APPLIED} .spec.maxReplicas")
        assert (story.value(".spec.maxReplicas"), story.owners(".spec.maxReplicas")) == (5, [ITS])
        assert story.value(".metadata.labels.note") == str(size)


def sidecar(story: Story) -> Object:
    """A manifest of nothing but the sidecar, with another image."""
    pod = {"containers": [{"name": "side", "image": "side:2"}]}
    head = {name: story.git[name] for name in ("apiVersion", "kind")}
    meta = {name: story.git["metadata"][name] for name in ("name", "namespace")}
    return {**head, "metadata": meta, "spec": {"template": {"spec": pod}}}


def test_a_restored_apply_keeps_no_item_alive(web: Web) -> None:
    """Its claim on the item's key was left: dropped from Git, the container could not go, nor anything be applied."""
    story = web("restore")
    with_sidecar(story.git)
    story.flux().allowed()
    answer = story.apply(sidecar(story), "kubectl", force=True).rewrote(f"{APPLIED} {SIDE}.image")
    assert not answer.stored
    assert story.claims() == [ITS]
    drop_sidecar(story.git)
    story.flux().allowed()
    assert story.value(SIDE) is None


def test_a_returned_value_keeps_no_item_alive(web: Web) -> None:
    story = web("reassign")
    with_sidecar(story.git)
    story.flux().allowed()
    story.apply(sidecar(story), "kubectl", "oncall", force=True).rewrote(f"change reassign/break-glass {SIDE}.image")
    assert (story.value(f"{SIDE}.image"), story.owners(SIDE), story.owners(f"{SIDE}.image")) == ("side:2", [ITS], [ITS])
    drop_sidecar(story.git)
    story.flux().allowed()
    assert story.value(SIDE) is None


def test_what_the_owner_applies_beside_an_empty_map_stays(tell: Tell, place: Place) -> None:
    """Nothing is stored of an empty map, so each of two appliers takes it from the other, and no value shows that."""
    story = tell(manifests.config_map(place("restore")))
    story.git["metadata"]["labels"] = {}
    story.apply(story.git, "kubectl").allowed()
    story.git["data"]["color"] = "red"
    assert story.flux().ok
    assert (story.value(".data.color"), story.owners(".data.color")) == ("red", [ITS])
    story.git["data"]["color"] = "green"
    story.apply(story.git, "kubectl", force=True).rewrote(f"{APPLIED} .data.color .metadata.labels")
    assert (story.value(".data.color"), story.owners(".data.color")) == ("red", [ITS])


def test_what_is_first_in_an_empty_map_of_the_owner_stays(tell: Tell, place: Place) -> None:
    story = tell(manifests.config_map(place("restore")))
    story.git["metadata"]["labels"] = {}
    story.flux().allowed()
    story.kubectl("label configmap settings tier=front").allowed()
    assert story.value(".metadata.labels.tier") == "front"
    assert story.flux().ok
    assert story.value(".metadata.labels.tier") == "front"


def test_a_map_is_not_pruned_from_under_others(tell: Tell, place: Place) -> None:
    """Git dropped an empty map, a leftover had made it, and somebody alive keeps values in it."""
    story = tell(manifests.widget(place("prune")))
    made = {**story.git, "spec": {**story.git["spec"], "anything": {"made": 1}}}
    story.kubectl("create -f -", stdin=json.dumps(made)).allowed()
    story.git["spec"]["anything"] = {}
    assert story.flux().ok
    state: dict[str, Any] = {"spec": {"anything": {"state": 1}}}
    story.request("PATCH", state, content_type=MERGE_PATCH, params={"fieldManager": "operator"}).allowed()
    del story.git["spec"]["anything"]
    assert story.flux().ok
    assert story.value(".spec.anything.state") == 1
    assert story.owners(".spec.anything.state") == ["operator (Update)"]


def test_an_item_that_comes_back_before_a_changed_one(widget: Web) -> None:
    """The one that comes back shifts the other: both have to be in the patch."""
    story = widget("restore")
    story.git["spec"]["parts"] = [{"id": name, "weight": 1} for name in "abc"]
    story.flux().allowed()
    changed = {**story.get(), "spec": {**story.get()["spec"]}}
    changed["spec"]["parts"] = [
        {"id": "b", "weight": 1},
        {"id": "mine", "weight": 2},
        {"id": "c", "weight": 2},
    ]
    answer = story.request("PUT", changed)
    assert (answer.ok, answer.refused, answer.found) == (True, [], []), answer
    weights = {part["id"]: part["weight"] for part in story.value(".spec.parts")}
    assert weights == {"a": 1, "b": 1, "c": 1, "mine": 2}
    assert story.owners('.spec.parts[id="c"].weight') == [ITS]


def test_one_variable_twice_does_not_slip_in(web: Web) -> None:
    """The last of two counts when the container starts, and there is no telling where the old one belongs."""
    story = web("restore")
    before = story.get()
    twice = story.get()
    container(twice)["env"].append({"name": "A", "value": "mine"})
    answer = story.request("PUT", twice)
    assert (answer.ok, answer.stored) == (False, False)
    assert story.get() == before


def test_a_rename_by_hand_hides_no_edit(web: Web) -> None:
    """Done by hand as a policy would do it, with a little more: the claim of the applier thinned, another's fattened."""
    story = web("all")
    story.kubectl("label deployment web tier=front", user="admin").allowed()
    claims = story.get()["metadata"]["managedFields"]
    at = next(at for at, claim in enumerate(claims) if claim["manager"] == "kubectl-label")
    flux = next(at for at, claim in enumerate(claims) if claim["operation"] == "Apply")
    labels = "fieldsV1/f:metadata/f:labels"
    rename = {"op": "replace", "path": f"/metadata/managedFields/{at}/manager", "value": "people"}
    more = [
        {"op": "add", "path": f"/metadata/managedFields/{at}/{labels}/f:team", "value": {}},
        {"op": "remove", "path": f"/metadata/managedFields/{flux}/{labels}/f:team"},
    ]
    for edit in (more[:1], more[1:], more):
        for value in ([], [{"op": "add", "path": "/metadata/labels/more", "value": "1"}]):
            answer = story.request("PATCH", [rename, *edit, *value], content_type=JSON_PATCH)
            assert not answer.stored, answer
            assert any(event.startswith("tamper ") for event in (*answer.refused, *answer.rewritten)), answer
    assert story.owners(".metadata.labels.team") == [ITS]
