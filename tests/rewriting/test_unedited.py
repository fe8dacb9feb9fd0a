"""Restore of edited claims: cleared, renamed, thinned or forged, they are as they were; moves that tools make pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rewriting.conftest import NOBODYS, Place, Web
from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import FLUX, JSON_PATCH, MERGE_PATCH, Answer, Story

ITS = "kustomize-controller (Apply)"
LABEL = ".metadata.labels.team"
CLAIMS = "/metadata/managedFields"
FORGED = {
    "manager": "before-first-apply",
    "operation": "Update",
    "apiVersion": "apps/v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}},
}

EDITS: dict[str, list[dict[str, Any]]] = {
    "cleared": [{"op": "replace", "path": CLAIMS, "value": [{}]}],
    "renamed": [{"op": "replace", "path": f"{CLAIMS}/0/manager", "value": "mine"}],
    "thinned": [{"op": "remove", "path": f"{CLAIMS}/0/fieldsV1/f:metadata/f:labels/f:team"}],
    "fattened": [{"op": "add", "path": f"{CLAIMS}/0/fieldsV1/f:spec/f:paused", "value": {}}],
    "forged": [{"op": "add", "path": f"{CLAIMS}/-", "value": FORGED}],
    "made an Update": [{"op": "replace", "path": f"{CLAIMS}/0/operation", "value": "Update"}],
    "made a subresource's": [{"op": "add", "path": f"{CLAIMS}/0/subresource", "value": "status"}],
    "in a version that is not served": [{"op": "replace", "path": f"{CLAIMS}/0/apiVersion", "value": "apps/v0"}],
}


def edit(story: Story, patch: list[dict[str, Any]], user: str = "developer", **params: str) -> Answer:
    return story.request("PATCH", patch, user, JSON_PATCH, params=params)


def put_right(answer: Answer) -> None:
    """Somebody edited claims; they are restored, and the client is told."""
    assert answer.ok, answer
    assert (answer.refused, answer.found) == ([], [])
    assert {event.split(" ")[:2] == ["tamper", "unedited/claims"] for event in answer.rewritten} == {True}, answer
    assert "[unedited/claims] restored the claim of " in answer.told
    assert not answer.stored


@pytest.mark.parametrize("told", EDITS)
def test_an_edited_claim_comes_back(web: Web, told: str) -> None:
    story = web("unedited")
    put_right(edit(story, EDITS[told]))
    assert story.owners(LABEL) == [ITS]
    dry = edit(story, EDITS[told], dryRun="All")
    put_right(dry)
    assert dry.body == story.get()


@pytest.mark.parametrize("told", EDITS)
def test_an_edited_claim_is_stored_without_fieldwarden(web: Web, told: str) -> None:
    story = web(NOBODYS)
    assert edit(story, EDITS[told]).allowed().stored
    assert story.claims() != [ITS] or told in ("thinned", "fattened")


@pytest.mark.parametrize("told", EDITS)
def test_with_another_change_it_is_refused(web: Web, told: str) -> None:
    story = web("unedited")
    answer = edit(story, [*EDITS[told], {"op": "add", "path": "/spec/minReadySeconds", "value": 5}])
    assert answer.refused, answer
    assert {event.split(" ")[0] for event in answer.refused} == {"tamper"}
    answer.denied(*answer.refused)
    assert (answer.rewritten, story.claims(), story.value(".spec.minReadySeconds")) == ([], [ITS], None)


def test_one_of_several_claims_comes_back(web: Web) -> None:
    story = web("unedited")
    story.kubectl("label deployment web tier=front").allowed()
    story.kubectl("annotate deployment web note=hello").allowed()
    claims = story.get()["metadata"]["managedFields"]
    put_right(edit(story, [{"op": "replace", "path": CLAIMS, "value": claims[:1]}]))
    put_right(edit(story, [{"op": "remove", "path": f"{CLAIMS}/1"}]))
    put_right(edit(story, EDITS["cleared"]))
    assert set(story.claims()) == {ITS, "kubectl-annotate (Update)", "kubectl-label (Update)"}


def test_cleared_by_kubectl(web: Web) -> None:
    story = web("unedited")
    put_right(story.kubectl("""patch deployment web --type=merge -p '{"metadata":{"managedFields":[{}]}}'"""))
    mine = """patch deployment web --type=merge -p '{"metadata":{"managedFields":[{}],"labels":{"team":"mine"}}}'"""
    answer = story.kubectl(mine)
    assert not answer.ok
    assert answer.refused[0].startswith("tamper unedited/claims")
    assert (story.value(LABEL), story.claims()) == ("payments", [ITS])


def test_an_edited_claim_of_a_custom_resource_comes_back(widget: Web) -> None:
    story = widget("unedited")
    put_right(edit(story, EDITS["cleared"]))
    put_right(edit(story, EDITS["renamed"]))
    assert story.claims() == [ITS]


def test_kubectls_own_move_is_left_alone(tell: Tell, place: Place) -> None:
    """From `kubectl apply` to `kubectl apply --server-side`: kubectl folds its claim with a JSON patch of its own."""
    story = tell(manifests.deployment(place("unedited")))
    manifest = json.dumps(story.git)
    story.kubectl("apply -f -", stdin=manifest).allowed()
    story.kubectl("apply --server-side -f -", stdin=manifest).allowed()
    assert story.owners(LABEL) == ["kubectl (Apply)"]
    assert "kubectl-client-side-apply (Update)" not in story.claims()
    del story.git["metadata"]["labels"]["team"]
    story.kubectl("apply --server-side -f -", stdin=json.dumps(story.git)).allowed()
    assert story.value(LABEL) is None


def test_what_comes_too_late_is_not_put_right(web: Web) -> None:
    """The server asks for a write that it will then refuse with 409, or, for a patch, begin anew with what is stored."""
    story = web("unedited")
    late = story.get()
    for change in ("tier=front", "tier-"):
        assert story.kubectl(f"label deployment web {change}").allowed().stored
    late["metadata"]["managedFields"] = [{}]
    answer = story.request("PUT", late)
    assert not answer.ok
    assert "the object has been modified" in answer.told
    assert (answer.rewritten, answer.refused, answer.found, answer.stored) == ([], [], [], False)
    assert "Warning" not in answer.told
    put_right(story.request("PUT", {**story.get(), "metadata": story.get()["metadata"] | {"managedFields": [{}]}}))


def folded(story: Story) -> list[dict[str, Any]]:
    """What Flux sends before it applies: claims of kubectl become its own, for this version of the object."""
    item = story.get()
    claims = item["metadata"]["managedFields"]
    mine = next(claim for claim in claims if claim["manager"] == FLUX)
    others = [claim for claim in claims if claim["manager"].startswith("kubectl")]
    for other in others:
        merge(mine["fieldsV1"], other["fieldsV1"])
    return [
        {"op": "replace", "path": CLAIMS, "value": [claim for claim in claims if claim not in others]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": item["metadata"]["resourceVersion"]},
    ]


def merge(into: dict[str, Any], other: dict[str, Any]) -> None:
    for key, below in other.items():
        merge(into.setdefault(key, {}), below)


def test_fluxs_own_move_is_left_alone(web: Web) -> None:
    """Flux may edit claims by the policy; nobody else may, in the very same way."""
    story = web("unedited")
    story.kubectl("label deployment web tier=front").allowed()
    patch = folded(story)
    put_right(edit(story, patch[:1], fieldManager=FLUX))
    assert edit(story, patch, "flux", fieldManager=FLUX).allowed().stored
    assert story.claims() == [ITS]
    assert story.owners(".metadata.labels.tier") == [ITS]
    story.flux().allowed()
    assert story.value(".metadata.labels.tier") is None


def test_claims_may_be_left_out(web: Web) -> None:
    """Which is no edit: the server keeps those that it has."""
    story = web("unedited")
    item = story.get()
    del item["metadata"]["managedFields"]
    assert not story.request("PUT", item).allowed().stored
    story.request("PATCH", {"metadata": {"managedFields": None}}, content_type=MERGE_PATCH).allowed()
    assert story.claims() == [ITS]


def test_kubectls_own_move_under_every_policy(tell: Tell, place: Place) -> None:
    """Its Update claim has another name by then, holds the annotation that the server writes anew, and moves all the same."""
    story = tell(manifests.deployment(place("all")))
    manifest = json.dumps(story.git)
    story.kubectl("apply -f -", stdin=manifest)
    assert story.owners(LABEL) == ["people (Update)"]
    assert story.kubectl("apply --server-side -f -", stdin=manifest).ok
    assert story.owners(LABEL) == ["kubectl (Apply)"]
    assert {claim.split(" ")[1] for claim in story.claims()} == {"(Apply)"}  # and one of the annotation's alone


def test_an_apply_by_kubectl_of_what_was_not_renamed_yet(tell: Tell, place: Place) -> None:
    story = tell(manifests.deployment(place("all")))
    manifest = json.dumps(story.git)
    story.kubectl("apply -f -", stdin=manifest, user="admin")  # exempt
    assert story.owners(LABEL) == ["kubectl-client-side-apply (Update)"]
    answer = story.kubectl("apply --server-side -f -", stdin=manifest)
    assert answer.ok, answer
    assert story.owners(LABEL) == ["kubectl (Apply)"]
    assert "kubectl-client-side-apply (Update)" not in story.claims()
