"""The ghost: a label that Git no longer has, and the object still does."""

from __future__ import annotations

import json

from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import Story

LABEL = ".metadata.labels.tier"
FLUX = "kustomize-controller (Apply)"


def test_the_ghost_label(web: Story) -> None:
    web.kubectl("label deployment web tier=front").allowed()
    assert web.owners(LABEL) == ["kubectl-label (Update)"]

    web.git["metadata"]["labels"]["tier"] = "front"  # somebody brings it to Git, too
    web.flux().recorded(f"share flux-owns/applied {LABEL}")
    assert web.owners(LABEL) == ["kubectl-label (Update)", FLUX]

    del web.git["metadata"]["labels"]["tier"]  # and somebody takes it out again
    answer = web.flux().rewrote(f"ghost flux-owns/applied {LABEL}")
    assert f"pruned {LABEL}: dropped by {FLUX}, kept alive by kubectl-label (Update)" in answer.told
    assert (web.value(LABEL), web.owners(LABEL)) == (None, [])

    web.flux().allowed()  # it is told once, by the apply that dropped it


def test_flux_is_told_in_its_dry_run_too(web: Story) -> None:
    web.kubectl("label deployment web tier=front").allowed()
    web.git["metadata"]["labels"]["tier"] = "front"
    web.flux().recorded(f"share flux-owns/applied {LABEL}")
    del web.git["metadata"]["labels"]["tier"]
    answer = web.flux(dry_run=True).rewrote(f"ghost flux-owns/applied {LABEL}")
    assert "kept alive by kubectl-label (Update)" in answer.told
    assert not answer.stored


def test_the_ghost_of_an_adopted_object(tell: Tell, namespace: str) -> None:
    """Made by hand, adopted by Flux, dropped in Git: kubectl's claim keeps it alive."""
    story = tell(manifests.deployment(namespace))
    story.git["metadata"]["labels"]["tier"] = "front"
    story.kubectl("apply -f -", stdin=json.dumps(story.git)).allowed()
    story.flux().allowed()  # not Flux's before, and so nothing that a policy about Flux's objects sees
    assert story.owners(LABEL) == ["kubectl-client-side-apply (Update)", FLUX]

    del story.git["metadata"]["labels"]["tier"]
    story.flux().rewrote(f"ghost flux-owns/applied {LABEL}")
    assert (story.value(LABEL), story.owners(LABEL)) == (None, [])


def test_what_flux_alone_owned_goes_and_is_no_ghost(web: Story) -> None:
    del web.git["metadata"]["labels"]["team"]
    web.flux().allowed()
    assert web.value(".metadata.labels.team") is None


def test_what_another_applier_still_wants_is_no_ghost(web: Story) -> None:
    label = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "payments"}}}
    web.apply(label, "team-tool").recorded("share flux-owns/applied .metadata.labels.team")
    del web.git["metadata"]["labels"]["team"]
    web.flux().allowed()
    assert web.owners(".metadata.labels.team") == ["team-tool (Apply)"]


def test_replicas_handed_over_to_an_autoscaler_are_no_ghost(tell: Tell, namespace: str) -> None:
    story = tell(manifests.deployment(namespace))
    story.git["spec"]["replicas"] = 2
    story.flux().allowed()
    replicas = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}
    story.apply(replicas, "keeper", "autoscaler").allowed()
    del story.git["spec"]["replicas"]
    story.flux().allowed()
    assert (story.value(".spec.replicas"), story.owners(".spec.replicas")) == (2, ["keeper (Apply)"])
    story.kubectl("scale deployment web --replicas=5", user="autoscaler").allowed()
    story.flux().allowed()
    assert story.value(".spec.replicas") == 5
