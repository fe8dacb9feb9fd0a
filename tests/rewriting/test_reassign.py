"""Reassign: people on call change what an applier owns, and it stays the applier's, whose next apply takes it back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from kubernetes import client, dynamic

from tests.rewriting.conftest import NOBODYS, Place, Web
from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import FLUX, MERGE_PATCH, Answer, Story

IMAGE = '.spec.template.spec.containers[name="c"].image'
LABEL = ".metadata.labels.team"
FLUXS = "kustomize-controller (Apply)"
BROKEN = f"change reassign/break-glass {IMAGE}"

Owner = Callable[[Story], Answer]


def flux(story: Story) -> Answer:
    """A plain client that applies, without force."""
    return story.apply(story.git, FLUX, "flux")


def kubectl(story: Story) -> Answer:
    return story.kubectl("apply --server-side -f -", "platform", stdin=json.dumps(story.git))


def python(story: Story) -> Answer:
    def call(api: client.ApiClient) -> None:
        known = dynamic.DynamicClient(api)  # type: ignore[no-untyped-call]
        deployments = known.resources.get(api_version="apps/v1", kind="Deployment")
        meta = story.git["metadata"]
        deployments.server_side_apply(story.git, meta["name"], meta["namespace"], field_manager=FLUX)

    return story.python(call, "flux")


OWNERS: dict[str, tuple[Owner, str]] = {
    "a plain client": (flux, FLUXS),
    "kubectl": (kubectl, "kubectl (Apply)"),
    "the Python client": (python, FLUXS),
}


def edited(story: Story) -> Answer:
    """Somebody on call changes the image in an editor."""
    return story.kubectl("edit deployment web", "oncall", editor="sed -i s/nginx:1/nginx:2/")


@pytest.mark.parametrize("who", OWNERS)
def test_the_owners_next_apply_takes_it_back(tell: Tell, place: Place, who: str) -> None:
    owner, name = OWNERS[who]
    story = tell(manifests.deployment(place("reassign")))
    owner(story).allowed()
    answer = edited(story).rewrote(BROKEN)
    assert f"[reassign/break-glass] returned {IMAGE} to {name}" in answer.told
    assert answer.moved == [f"{IMAGE}: kubectl-edit (Update) -> {name}"]
    assert (story.value(IMAGE), story.owners(IMAGE)) == ("nginx:2", [name])
    assert story.claims() == [name]

    assert owner(story).allowed().stored
    assert (story.value(IMAGE), story.owners(IMAGE)) == ("nginx:1", [name])


@pytest.mark.parametrize("who", OWNERS)
def test_without_fieldwarden_it_conflicts(tell: Tell, place: Place, who: str) -> None:
    owner, _ = OWNERS[who]
    story = tell(manifests.deployment(place(NOBODYS)))
    owner(story).allowed()
    edited(story).allowed()
    assert story.owners(IMAGE) == ["kubectl-edit (Update)"]
    answer = owner(story)
    assert not answer.ok
    assert f'conflict with "kubectl-edit" using apps/v1: {IMAGE}' in answer.told
    assert story.value(IMAGE) == "nginx:2"


def test_everybody_else_is_refused(web: Web) -> None:
    story = web("reassign")
    answer = story.kubectl("set image deployment web c=nginx:2").denied(f"change reassign/applied {IMAGE}")
    assert answer.rewritten == []
    story.kubectl("set image deployment web c=nginx:2", "platform").denied(f"change reassign/applied {IMAGE}")
    story.kubectl("set image deployment web c=nginx:2", "oncall").rewrote(BROKEN)
    assert (story.value(IMAGE), story.owners(IMAGE)) == ("nginx:2", [FLUXS])
    # It is Flux's still, and so nobody else may change it now.
    story.kubectl("set image deployment web c=nginx:3").denied(f"change reassign/applied {IMAGE}")
    story.kubectl("set image deployment web c=nginx:3", "oncall").rewrote(BROKEN)
    assert (story.value(IMAGE), story.owners(IMAGE)) == ("nginx:3", [FLUXS])


def test_what_nobody_owned_is_the_writers(web: Web) -> None:
    """One write changes the owner's image and adds a label of its own."""
    story = web("reassign")
    patch = {
        "metadata": {"labels": {"incident": "4711"}},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}},
    }
    story.kubectl(f"patch deployment web -p '{json.dumps(patch)}'", "oncall").rewrote(BROKEN)
    assert story.owners(".metadata.labels.incident") == ["kubectl-patch (Update)"]
    assert story.owners(IMAGE) == [FLUXS]
    assert flux(story).allowed().stored
    assert (story.value(IMAGE), story.value(".metadata.labels.incident")) == ("nginx:1", "4711")


def test_a_dry_run_shows_what_a_write_does(web: Web) -> None:
    story = web("reassign")
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    kind = "application/strategic-merge-patch+json"
    answer = story.request("PATCH", image, "oncall", kind, params={"dryRun": "All"}).rewrote(BROKEN)
    assert not answer.stored
    assert [claim["manager"] for claim in answer.body["metadata"]["managedFields"]] == [FLUX]


def test_the_same_write_again_changes_nothing(web: Web) -> None:
    story = web("reassign")
    mine = {"metadata": {"labels": {"team": "mine"}}}
    assert story.request("PATCH", mine, "oncall", MERGE_PATCH).rewrote(f"change reassign/break-glass {LABEL}").stored
    assert not story.request("PATCH", mine, "oncall", MERGE_PATCH).allowed().stored
    assert not story.request("PUT", story.get(), "oncall").allowed().stored


def test_an_apply_by_force_is_given_back_too(web: Web) -> None:
    story = web("reassign")
    label = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "mine"}}}
    forced = story.kubectl("apply --server-side --force-conflicts -f -", "oncall", stdin=json.dumps(label))
    forced.rewrote(f"change reassign/break-glass {LABEL}")
    assert (story.value(LABEL), story.owners(LABEL)) == ("mine", [FLUXS])
    assert flux(story).allowed().stored
    assert story.value(LABEL) == "payments"


def test_what_the_write_removed_comes_with_the_next_apply(web: Web) -> None:
    """There is no value to own: it is recorded, and passes."""
    story = web("reassign")
    story.kubectl("label deployment web team-", "oncall").recorded(f"change reassign/break-glass {LABEL}")
    assert (story.value(LABEL), story.owners(LABEL)) == (None, [])
    assert flux(story).allowed().stored
    assert (story.value(LABEL), story.owners(LABEL)) == ("payments", [FLUXS])


def test_what_the_write_added_is_not_given_to_the_owner(settings: Web) -> None:
    """A rule may guard paths that nobody claims. Given to the owner's claim, the owner's next apply would delete it."""
    story = settings("matching")
    more = {"data": {"shape": "round", "color": "red"}}
    answer = story.request("PATCH", more, "oncall", MERGE_PATCH, params={"fieldManager": "hotfix"})
    answer.rewrote("change matching/break-glass .data.color", recorded=["change matching/break-glass .data.shape"])
    assert story.owners(".data.color") == [FLUXS]
    assert story.owners(".data.shape") == ["hotfix (Update)"]
    assert flux(story).allowed().stored
    assert story.get()["data"] == {"color": "blue", "size": "5", "shape": "round"}
    story.request("PATCH", {"data": {"edge": "sharp"}}, content_type=MERGE_PATCH).denied(
        "change matching/applied .data.edge"
    )
