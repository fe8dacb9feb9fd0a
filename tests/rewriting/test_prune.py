"""Prune: what Git drops goes at once, also where only leftovers claim it."""

from __future__ import annotations

import json

import pytest

from tests.rewriting.conftest import NOBODYS, Place, Web, add_sidecar, container, drop_sidecar, lasting
from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.support import FLUX, MERGE_PATCH, Object, Story, without

ITS = "kustomize-controller (Apply)"
LABEL = ".metadata.labels.tier"
SIDE = '.spec.template.spec.containers[name="side"]'
GHOST = f"ghost prune/applied {LABEL}"
SHARED = f"share prune/applied {LABEL}"


def haunted(story: Story) -> Story:
    """Somebody set a label, Git took it over, and drops it now."""
    story.kubectl("label deployment web tier=front")
    story.git["metadata"]["labels"]["tier"] = "front"
    assert story.flux().ok
    assert story.owners(LABEL) == ["kubectl-label (Update)", ITS]
    del story.git["metadata"]["labels"]["tier"]
    return story


def test_the_ghost_label_goes_there_and_then(web: Web) -> None:
    story = haunted(web("prune"))
    answer = story.flux().rewrote(GHOST)
    assert f"[prune/applied] pruned {LABEL}: dropped by {ITS}, kept alive by kubectl-label (Update)" in answer.told
    assert answer.moved == [f"{LABEL}: kubectl-label (Update) ->"]
    assert (story.value(LABEL), story.claims()) == (None, [ITS])
    assert not story.flux().allowed().stored


def test_without_fieldwarden_it_stays(web: Web) -> None:
    story = haunted(web(NOBODYS))
    story.flux().allowed()
    assert (story.value(LABEL), story.owners(LABEL)) == ("front", ["kubectl-label (Update)"])


def test_a_dry_run_shows_what_a_write_does(web: Web) -> None:
    story = haunted(web("prune"))
    dry = story.flux(dry_run=True).rewrote(GHOST)
    assert not dry.stored
    assert (story.value(LABEL), story.owners(LABEL)) == ("front", ["kubectl-label (Update)", ITS])
    wet = story.flux().rewrote(GHOST)
    assert lasting(dry.body) == lasting(wet.body) == lasting(story.get())


def test_what_else_the_leftover_claims_stays(web: Web) -> None:
    story = haunted(web("prune"))
    story.kubectl("label deployment web zone=a").allowed()
    story.flux().rewrote(GHOST)
    assert (story.value(".metadata.labels.zone"), story.value(LABEL)) == ("a", None)
    assert story.owners(".metadata.labels.zone") == ["kubectl-label (Update)"]


def test_a_map_that_becomes_empty_goes_too(tell: Tell, place: Place) -> None:
    story = tell(without(manifests.config_map(place("prune")), "metadata", "labels"))
    applied(story)
    story.kubectl("label configmap settings tier=front").allowed()
    story.git["metadata"]["labels"] = {"tier": "front"}
    story.flux().recorded(SHARED)
    del story.git["metadata"]["labels"]
    story.flux().rewrote(GHOST)
    assert story.value(".metadata.labels") is None
    assert story.claims() == [ITS]


def adopted(story: Story) -> Story:
    """Made with `kubectl apply`, then applied by Flux, then without the second container in Git."""
    add_sidecar(story.git)
    story.kubectl("apply -f -", stdin=json.dumps(story.git)).allowed()
    assert story.flux().ok
    drop_sidecar(story.git)
    return story


def test_a_whole_container_goes(tell: Tell, place: Place) -> None:
    story = adopted(tell(manifests.deployment(place("prune"))))
    answer = story.flux()
    assert [event.split(" ")[:2] for event in answer.rewritten] == [["ghost", "prune/applied"]], answer
    assert f"{SIDE}.image" in answer.told
    assert story.value(SIDE) is None
    assert container(story.get())["image"] == "nginx:1"
    assert story.owners(SIDE) == []
    kubectls = next(m for m in story.get()["metadata"]["managedFields"] if m["manager"] == "kubectl-client-side-apply")
    assert 'k:{"name":"side"}' not in kubectls["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert 'k:{"name":"c"}' in kubectls["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert not story.flux().allowed().stored


def test_a_whole_container_stays_without_fieldwarden(tell: Tell, place: Place) -> None:
    story = adopted(tell(manifests.deployment(place(NOBODYS))))
    story.flux().allowed()
    assert story.value(f"{SIDE}.image") == "side:1"


def test_a_container_that_somebody_else_wants_stays(tell: Tell, place: Place) -> None:
    """A second applier has put a variable into it: the container is not the leftovers' alone."""
    story = adopted(tell(manifests.deployment(place("prune"))))
    side = {"name": "side", "env": [{"name": "B", "value": "1"}]}
    item = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    story.apply({**item, "spec": {"template": {"spec": {"containers": [side]}}}}, "injector").allowed()
    assert story.flux().allowed().stored
    assert story.value(f"{SIDE}.image") == "side:1"
    assert story.value(f'{SIDE}.env[name="B"].value') == "1"


def test_a_variable_goes_and_its_container_stays(web: Web) -> None:
    story = web("prune")
    story.kubectl("set env deployment web -c c B=2").allowed()
    variables = container(story.git)["env"]
    variables.append({"name": "B", "value": "2"})
    assert story.flux().ok
    variables.pop()
    path = '.spec.template.spec.containers[name="c"].env[name="B"]'
    story.flux().rewrote(f"ghost prune/applied {path}.value")
    assert (story.value(path), story.claims()) == (None, [ITS])
    assert container(story.get())["env"] == [{"name": "A", "value": "1"}]


LISTS: dict[str, tuple[Object, Object, str]] = {
    "a member of a set": ({"colors": ["blue", "red", "green"]}, {"colors": ["blue", "red"]}, '.spec.colors[="green"]'),
    "a part": (
        {"parts": [{"id": "a", "weight": 1}, {"id": "c", "weight": 1}]},
        {"parts": [{"id": "a", "weight": 1}]},
        '.spec.parts[id="c"]',
    ),
    "what stands in a subtree": ({"anything": {"deep": {"down": 1}}}, {"anything": {}}, ".spec.anything.deep"),
}


@pytest.mark.parametrize("told", LISTS)
def test_in_a_custom_resource(tell: Tell, place: Place, told: str) -> None:
    more, less, path = LISTS[told]
    story = tell(manifests.widget(place("prune")))
    story.git["spec"] = less
    applied(story)
    story.kubectl(f"patch widgets.stories one --type=merge -p '{json.dumps({'spec': more})}'").allowed()
    story.git["spec"] = more
    assert story.flux().ok
    story.git["spec"] = less
    answer = story.flux()
    assert [event.split(" ")[:2] for event in answer.rewritten] == [["ghost", "prune/applied"]], answer
    assert path in answer.told
    assert (story.value(path), story.claims()) == (None, [ITS])
    assert not story.flux().allowed().stored


def test_what_another_applier_still_wants_is_no_ghost(web: Web) -> None:
    story = web("prune")
    team = ".metadata.labels.team"
    label = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "payments"}}}
    story.apply(label, "team-tool").recorded(f"share prune/applied {team}")
    del story.git["metadata"]["labels"]["team"]
    story.flux().allowed()
    assert (story.value(team), story.owners(team)) == ("payments", ["team-tool (Apply)"])


def test_replicas_handed_over_to_whoever_scales_are_no_ghost(tell: Tell, place: Place) -> None:
    """Claims with a subresource are nobody's leftovers, whatever their name: 5 replicas must not become 1."""
    story = tell(manifests.deployment(place("prune")))
    story.git["spec"]["replicas"] = 2
    applied(story)
    five, scaler = {"spec": {"replicas": 5}}, {"fieldManager": "kubectl-scale"}
    answer = story.request("PATCH", five, content_type=MERGE_PATCH, subresource="scale", params=scaler)
    answer.recorded("change prune/applied .spec.replicas")
    story.git["spec"]["replicas"] = 5
    story.flux().recorded("share prune/applied .spec.replicas")
    assert story.owners(".spec.replicas") == ["kubectl-scale (Update, scale)", ITS]
    del story.git["spec"]["replicas"]
    story.flux().allowed()
    assert (story.value(".spec.replicas"), story.owners(".spec.replicas")) == (5, ["kubectl-scale (Update, scale)"])


def test_somebody_elses_apply_prunes_nothing(web: Web) -> None:
    """Only the owner's own drop is Git's word."""
    story = web("prune")
    story.kubectl("label deployment web tier=front").allowed()
    label = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"tier": "front"}}}
    story.apply(label, "team-tool").allowed()
    story.apply(without(label, "metadata", "labels"), "team-tool").allowed()
    assert story.value(LABEL) == "front"


def test_an_impostors_drop_prunes_nothing(web: Web) -> None:
    story = haunted(web("prune"))
    answer = story.apply(story.git, FLUX, "developer")
    assert (answer.ok, answer.rewritten) == (True, [])  # the policy does not bind the name
    assert story.value(LABEL) == "front"
