"""Claims are not edited by hand: cleared, renamed, thinned, forged. kubectl's own migration is none of these."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import FLUX, JSON_PATCH, MERGE_PATCH, Answer, Object, Story

ITS = "kustomize-controller (Apply)"
LABEL = ".metadata.labels.team"
CLAIMS = "/metadata/managedFields"


def edit(story: Story, *patch: dict[str, Any], manager: str = "", user: str = "developer") -> Answer:
    """A JSON patch by a plain client, under a fieldManager if one is given."""
    params = {"fieldManager": manager} if manager else {}
    return story.request("PATCH", list(patch), user, JSON_PATCH, params=params)


def tampered(story: Story, answer: Answer) -> None:
    """It is refused as the edit of Flux's claim that it is, and the claim stands."""
    assert [event.split(" ")[:2] for event in answer.refused] == [["tamper", "claims/unedited"]], answer
    answer.denied(*answer.refused)
    assert f"may not edit claims: the claim of {ITS}" in answer.told
    assert story.owners(LABEL) == [ITS]


EDITS: dict[str, list[dict[str, Any]]] = {
    "cleared": [{"op": "replace", "path": CLAIMS, "value": [{}]}],
    "renamed": [{"op": "replace", "path": f"{CLAIMS}/0/manager", "value": "mine"}],
    "thinned": [{"op": "remove", "path": f"{CLAIMS}/0/fieldsV1/f:metadata/f:labels/f:team"}],
    "fattened": [{"op": "add", "path": f"{CLAIMS}/0/fieldsV1/f:spec/f:paused", "value": {}}],
    "made an Update": [{"op": "replace", "path": f"{CLAIMS}/0/operation", "value": "Update"}],
    "made a subresource's": [{"op": "add", "path": f"{CLAIMS}/0/subresource", "value": "status"}],
    "in a version that is not served": [{"op": "replace", "path": f"{CLAIMS}/0/apiVersion", "value": "apps/v0"}],
}


@pytest.mark.parametrize("told", EDITS)
def test_an_edited_claim_is_refused(web: Story, told: str) -> None:
    answer = edit(web, *EDITS[told])
    # Renamed, a claim is lost to one name and won by another: both are named.
    assert {event.split(" ")[0] for event in answer.refused} == {"tamper"}, answer
    answer.denied(*answer.refused)
    assert (web.claims(), web.owners(LABEL)) == ([ITS], [ITS])


@pytest.mark.parametrize("told", EDITS)
def test_under_fluxs_name_it_is_refused_too(web: Story, told: str) -> None:
    """With its own claim thinned or fattened it could be an apply: then only the user gives it away."""
    answer = edit(web, *EDITS[told], manager=FLUX)
    assert "impersonation names/bound" in answer.refused, answer
    answer.denied(*answer.refused)
    assert (web.claims(), web.owners(LABEL)) == ([ITS], [ITS])


def test_cleared_by_kubectl(web: Story) -> None:
    clear = """patch deployment web --type=merge -p '{"metadata":{"managedFields":[{}]}}'"""
    tampered(web, web.kubectl(clear))


def test_not_even_flux_edits_its_claim(web: Story) -> None:
    """A policy could let it, with `integrity.allow`; this one does not."""
    answer = edit(web, *EDITS["thinned"], manager=FLUX, user="flux")
    tampered(web, answer)


def test_the_writer_that_hides_behind_the_owners_entry(web: Story) -> None:
    """One PUT without a fieldManager removes the label, adds to Flux's claim, and moves its time."""
    stored = web.get()
    del stored["metadata"]["labels"]["team"]
    (claim,) = stored["metadata"]["managedFields"]
    claim["fieldsV1"]["f:spec"]["f:paused"] = {}
    claim["time"] = "2030-01-01T00:00:00Z"
    web.request("PUT", stored).denied("tamper claims/unedited .spec.paused", f"change flux-owns/applied {LABEL}")


def test_a_forged_claim_on_what_the_same_write_adds_is_never_stored(web: Story) -> None:
    """The value is the client's, and so is the claim that is stored: the server does not believe the body's."""
    stored = web.get()
    stored["metadata"]["labels"]["extra"] = "mine"
    (claim,) = stored["metadata"]["managedFields"]
    claim["fieldsV1"]["f:metadata"]["f:labels"]["f:extra"] = {}
    claim["time"] = "2030-01-01T00:00:00Z"
    web.request("PUT", stored).allowed()
    assert web.owners(".metadata.labels.extra") == ["some-client (Update)"]


def test_a_forged_before_first_apply(web: Story) -> None:
    forged = {
        "manager": "before-first-apply",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}},
    }
    answer = edit(web, {"op": "add", "path": f"{CLAIMS}/-", "value": forged})
    answer.denied(f"tamper claims/unedited {LABEL}")
    assert (web.claims(), web.owners(LABEL)) == ([ITS], [ITS])
    del web.git["metadata"]["labels"]["team"]
    web.flux().allowed()
    assert web.value(LABEL) is None  # nothing keeps it alive


def test_a_forged_claim_of_flux_beside_an_honest_change(web: Story) -> None:
    web.kubectl("label deployment web tier=front").allowed()
    stored = web.get()
    stored["spec"]["paused"] = True
    stored["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:labels"]["f:tier"] = {}
    answer = web.request("PUT", stored)
    answer.denied("tamper claims/unedited .metadata.labels.tier")
    assert web.owners(".metadata.labels.tier") == ["kubectl-label (Update)"]


def test_a_creation_with_a_forged_claim(tell: Tell, namespace: str) -> None:
    story = tell(manifests.config_map(namespace))
    fields: Object = {"f:data": {"f:absent": {}}}
    claim = {"manager": FLUX, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    story.git["metadata"]["managedFields"] = [claim]
    story.kubectl("create -f -", stdin=json.dumps(story.git)).denied("tamper claims/unedited .data.absent")
    assert story.get() == {}


def test_an_exported_manifest_created_again(settings: Story) -> None:
    exported = settings.get()
    settings.git["metadata"]["name"] = exported["metadata"]["name"] = "copy"
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        del exported["metadata"][name]
    settings.kubectl("create -f -", stdin=json.dumps(exported)).allowed()
    assert settings.claims() == ["kubectl-create (Update)"]


def test_kubectls_own_migration(tell: Tell, namespace: str) -> None:
    story = tell(manifests.deployment(namespace))
    manifest = json.dumps(story.git)
    story.kubectl("apply -f -", stdin=manifest).allowed()
    assert story.claims() == ["kubectl-client-side-apply (Update)"]
    story.kubectl("apply --server-side -f -", stdin=manifest).allowed()
    assert story.owners(LABEL) == ["kubectl (Apply)"]
    assert "kubectl-client-side-apply (Update)" not in story.claims()
    story.kubectl("apply --server-side -f -", stdin=manifest).allowed()


def test_a_known_tools_migration_and_an_unknown_ones(tell: Tell, namespace: str) -> None:
    """A policy names the tool whose Update claims an applier may take over."""
    for manager, known in (("helm", True), ("some-tool", False)):
        story = tell(manifests.config_map(namespace))
        story.git["metadata"]["name"] = manager
        item = json.dumps(story.git)
        story.kubectl(f"create -f - --field-manager={manager}", stdin=item).allowed()
        moved = [{"op": "replace", "path": f"{CLAIMS}/0/operation", "value": "Apply"}]
        moved += [{"op": "replace", "path": f"{CLAIMS}/0/manager", "value": "team-tool"}]
        answer = edit(story, *moved, manager="team-tool")
        if known:
            answer.allowed()
            assert story.claims() == ["team-tool (Apply)"]
        else:
            assert [event.split(" ")[0] for event in answer.refused] == ["tamper", "tamper"], answer
            assert story.claims() == [f"{manager} (Update)"]


@pytest.mark.parametrize("manager", ["a-first", "b-next", "z-last", ""])
def test_ten_names_push_an_update_owner_out_and_its_value_is_guarded_all_the_same(
    tell: Tell, namespace: str, manager: str
) -> None:
    """Within a second the server folds claims by name: then the writer's own may go at once."""
    story = tell(manifests.config_map(namespace))
    story.git["data"]["release"] = "1"
    story.kubectl("create -f - --field-manager=helm", user="helm", stdin=json.dumps(story.git)).allowed()
    for number in range(10):
        note(story, number).allowed()
    assert story.owners(".data.release") == ["ancient-changes (Update)"]  # helm's claim is gone
    release, named = {"data": {"release": "2"}}, {"fieldManager": manager} if manager else {}
    patched = story.request("PATCH", release, content_type=MERGE_PATCH, params=named)
    patched.denied("change config/release .data.release")
    story.request("PATCH", release, "helm", MERGE_PATCH, params={"fieldManager": "helm"}).allowed()
    assert story.value(".data.release") == "2"


@pytest.mark.parametrize("manager", ["a-first", "b-next", "z-last", ""])
def test_ten_names_do_not_push_an_applier_out(settings: Story, manager: str) -> None:
    for number in range(10):
        note(settings, number).allowed()
    assert settings.owners(".data.color") == [ITS]
    named = {"fieldManager": manager} if manager else {}
    red = settings.request("PATCH", {"data": {"color": "red"}}, content_type=MERGE_PATCH, params=named)
    red.denied("change flux-owns/applied .data.color")


def note(story: Story, number: int) -> Answer:
    """An annotation, under a name of its own."""
    body = {"metadata": {"annotations": {f"note-{number}": "x"}}}
    return story.request("PATCH", body, content_type=MERGE_PATCH, params={"fieldManager": f"name-{number}"})


def test_the_first_apply_on_an_object_without_claims(tell: Tell, namespace: str) -> None:
    """Somebody who may edit claims has emptied them. The server puts all else under before-first-apply: no forgery."""
    story = tell(manifests.service(namespace))
    story.kubectl("create -f -", stdin=json.dumps(story.git)).allowed()
    edit(story, *EDITS["cleared"], user="admin").allowed()
    assert story.claims() == []
    story.flux().allowed()
    assert story.owners(LABEL) == ["before-first-apply (Update)", ITS]
    del story.git["metadata"]["labels"]
    answer = story.flux().rewrote(f"ghost flux-owns/applied {LABEL}")
    assert "kept alive by before-first-apply (Update)" in answer.told
    assert story.value(LABEL) is None
