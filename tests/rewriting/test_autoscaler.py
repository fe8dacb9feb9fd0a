"""Replicas belong to a real horizontal pod autoscaler, whatever Git says: no apply resets them any more.

A namespace each: replicas in Git and not, guarded and not. The autoscaler wants three, without looking at any metrics.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rewriting.conftest import NOBODYS, POLICIES, make_place
from tests.stories import manifests
from tests.stories.server import serving
from tests.stories.support import Story
from webhook.sandbox import Sandbox

REPLICAS = ".spec.replicas"
AUTOSCALERS = ["kube-controller-manager (Update, scale)"]
RESTORED = f"change replicas/autoscaled {REPLICAS}"

Stories = dict[str, Story]


@pytest.fixture(scope="module")
def own_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """With a controller manager, which would disturb other stories. A cluster has one."""
    if request.config.getoption("--cluster"):
        yield request.getfixturevalue("sandbox").alive()
        return
    with Sandbox.start() as running:
        running.start_controller_manager()
        yield running


@pytest.fixture(scope="module")
def scaled(own_sandbox: Sandbox) -> Iterator[Stories]:
    """Deployments that Flux has applied, scaled to three by their autoscalers since."""
    with serving(own_sandbox, POLICIES) as server:
        server.register()
        stories = {}
        for name, policy, replicas in (
            ("in Git", "restore", 2),
            ("not in Git", "restore", None),
            ("unguarded", NOBODYS, 2),
            ("handed over", "prune", 2),
        ):
            namespace = make_place(own_sandbox, policy)
            stories[name] = story = Story(own_sandbox, server, manifests.deployment(namespace))
            if replicas:
                story.git["spec"]["replicas"] = replicas
            assert story.flux().ok
            autoscaler = manifests.autoscaler(namespace)
            autoscaler["spec"]["minReplicas"] = 3
            assert own_sandbox.apply(autoscaler, "setup").status == 201
        own_sandbox.wait_until(
            lambda: all(story.value(REPLICAS) == 3 for story in stories.values()), "kube-controller-manager"
        )
        yield stories


def test_an_apply_with_replicas_does_not_reset_them(own_sandbox: Sandbox, scaled: Stories) -> None:
    story = scaled["in Git"]
    assert story.owners(REPLICAS) == AUTOSCALERS

    def drifts() -> bool:
        """Its controller may still be writing the Deployment's status."""
        before = story.get()
        return not story.flux(dry_run=True).rewrote(RESTORED).body == before == story.flux().rewrote(RESTORED).body

    own_sandbox.wait_until(lambda: not drifts(), "kube-controller-manager")
    assert (story.value(REPLICAS), story.owners(REPLICAS)) == (3, AUTOSCALERS)


def test_it_is_told_why(scaled: Stories) -> None:
    told = scaled["in Git"].flux(dry_run=True).told
    assert f"[replicas/autoscaled] restored {REPLICAS}: it is owned by kube-controller-manager" in told


def test_an_apply_with_replicas_resets_them_without_fieldwarden(scaled: Stories) -> None:
    story = scaled["unguarded"]
    assert story.owners(REPLICAS) == AUTOSCALERS
    answer = story.flux().allowed()
    assert answer.body["spec"]["replicas"] == 2


def test_replicas_that_nobody_claims(own_sandbox: Sandbox, scaled: Stories) -> None:
    """Not in Git at first, and then the server does not track who scales. Later somebody adds them to Git."""
    story = scaled["not in Git"]
    assert story.owners(REPLICAS) == []
    assert story.flux().allowed().body["spec"]["replicas"] == 3
    story.git["spec"]["replicas"] = 2
    assert story.flux(dry_run=True).rewrote(RESTORED).body["spec"]["replicas"] == 3
    assert story.flux().rewrote(RESTORED).body["spec"]["replicas"] == 3
    assert (story.value(REPLICAS), story.owners(REPLICAS)) == (3, [])


def test_people_do_not_scale(scaled: Stories) -> None:
    for name, owners in (("in Git", AUTOSCALERS), ("not in Git", [])):
        story = scaled[name]
        answer = story.kubectl("scale deployment web --replicas=1").rewrote(RESTORED)
        assert f"restored {REPLICAS}" in answer.told
        assert (story.value(REPLICAS), story.owners(REPLICAS)) == (3, owners)


def test_handing_replicas_over_prunes_nothing(scaled: Stories) -> None:
    """Git follows the autoscaler for a while, and then lets go."""
    story = scaled["handed over"]
    story.git["spec"]["replicas"] = 3
    story.flux().recorded(f"share prune/applied {REPLICAS}")
    assert story.owners(REPLICAS) == [*AUTOSCALERS, "kustomize-controller (Apply)"]
    del story.git["spec"]["replicas"]
    story.flux().allowed()
    assert (story.value(REPLICAS), story.owners(REPLICAS)) == (3, AUTOSCALERS)
