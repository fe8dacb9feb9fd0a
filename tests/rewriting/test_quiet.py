"""Writes that change nothing change nothing, through every rewriting policy at once: no version, no claim, no time."""

from __future__ import annotations

import json
import time

import pytest

from tests.rewriting.conftest import Place, add_sidecar
from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import FLUX, JSON_PATCH, MERGE_PATCH, Object, Story

ROUNDS = 200
MAKE = {"deployment": manifests.deployment, "config map": manifests.config_map, "custom resource": manifests.widget}


def crowded(story: Story) -> Story:
    """Made by hand, shared, haunted and under many names, by somebody exempt: every policy would have something to do."""
    if story.git["kind"] == "Deployment":
        add_sidecar(story.git)
    story.kubectl("apply -f -", "admin", stdin=json.dumps(story.git))
    story.git["metadata"]["labels"]["tier"] = "front"
    kind = story.git["kind"].lower()
    name = story.git["metadata"]["name"]
    story.kubectl(f"label {kind} {name} tier=front zone=a", "admin")
    story.kubectl(f"annotate {kind} {name} note=hello", "admin")
    assert story.apply(story.git, FLUX, "admin", force=True).ok
    assert len(story.claims()) == 4
    return story


@pytest.mark.parametrize("kind", MAKE)
def test_two_hundred_rounds(tell: Tell, place: Place, kind: str) -> None:
    story = crowded(tell(MAKE[kind](place("all"))))
    before, mark, began = story.get(), story.server.mark(), time.time()
    sandbox = story.sandbox
    # Times of claims are whole seconds.
    sandbox.wait_until(lambda: int(time.time()) > int(began), "kube-apiserver")
    for _ in range(ROUNDS // len(MAKE) + 1):
        assert sandbox.apply(story.git, FLUX, "flux", force=True).body == before
        found = sandbox.request("GET", story.path).body
        assert sandbox.request("PUT", story.path, found, "developer").body == before
    assert sandbox.apply(story.git, FLUX, "flux", force=True, dry_run=True).body == before
    assert story.get() == before
    reviews = story.server.reviews(mark)
    assert {line["phase"] for line in reviews} == {"mutate", "validate"}
    assert not [line for line in reviews if line["decision"] != "allowed" or line.get("results")]


def test_clients_that_change_nothing(tell: Tell, place: Place) -> None:
    story = crowded(tell(manifests.deployment(place("all"))))
    last = story.get()
    del last["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    story.request("PUT", last, "admin")
    before = story.get()
    story.kubectl("replace -f -", stdin=json.dumps(before)).allowed()
    story.kubectl("label deployment web tier=front").allowed()
    story.request("PATCH", {"metadata": {"labels": {"tier": "front"}}}, content_type=MERGE_PATCH).allowed()
    story.request("PATCH", [], content_type=JSON_PATCH).allowed()
    assert story.get() == before


def test_one_write_is_put_right_by_several_policies_and_then_is_quiet(tell: Tell, place: Place) -> None:
    """Flux drops one label that only leftovers keep, and shares another: pruned, released and renamed in one go."""
    story = crowded(tell(manifests.config_map(place("all"))))
    story.git["metadata"]["labels"]["zone"] = "a"
    del story.git["metadata"]["labels"]["tier"]
    answer = story.flux()
    assert answer.ok, answer
    assert {event.split(" ")[1] for event in answer.rewritten} == {
        "prune/applied",
        "release/applied",
        "people/one-name",
    }
    assert story.value(".metadata.labels.tier") is None
    assert story.owners(".metadata.labels.zone") == ["kustomize-controller (Apply)"]
    assert story.claims() == ["kustomize-controller (Apply)", "people (Update)"]
    assert story.owners(".metadata.annotations.note") == ["people (Update)"]
    again: Object = story.flux().allowed().body
    assert again == story.get()
