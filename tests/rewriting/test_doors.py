"""Where nothing can be rewritten: side doors, other versions, deletion, policies that only warn, no mutating call at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rewriting.conftest import Place, Web
from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.server import Server
from tests.stories.support import MERGE_PATCH, Answer, Story

ITS = "kustomize-controller (Apply)"
TEAM, TIER = ".metadata.labels.team", ".metadata.labels.tier"
MINE = {"metadata": {"labels": {"team": "mine"}}}


def test_a_label_through_status_is_refused(tell: Tell, place: Place) -> None:
    """Through most /status endpoints labels are stored; what came through them is not rewritten."""
    story = applied(tell(manifests.service(place("restore"))))
    answer = story.request("PATCH", MINE, content_type=MERGE_PATCH, subresource="status", params={"fieldManager": "d"})
    answer.denied(f"change restore/applied {TEAM}")
    assert (answer.rewritten, story.owners(TEAM)) == ([], [ITS])


def test_a_status_passes(tell: Tell, place: Place) -> None:
    story = applied(tell(manifests.service(place("restore"))))
    condition = {"type": "Fine", "status": "True", "reason": "Is", "message": "", "lastTransitionTime": None}
    condition["lastTransitionTime"] = "2030-01-01T00:00:00Z"
    status = {"status": {"conditions": [condition]}}
    assert story.request("PATCH", status, content_type=MERGE_PATCH, subresource="status").allowed().stored


def test_another_api_version(tell: Tell, place: Place) -> None:
    """A write through one version comes back in another, whole or not at all."""
    story = applied(tell(manifests.autoscaler(place("restore"))))
    old, named = story.path.replace("/v2/", "/v1/"), {"fieldManager": "old-client"}

    def write(**spec: int) -> Answer:
        return story.request("PATCH", {"spec": spec}, content_type=MERGE_PATCH, path=old, params=named)

    before = story.get()
    assert not write(maxReplicas=9).rewrote("change restore/applied .spec.maxReplicas").stored
    # Flux's claim loses the metrics, which the other version spells as another field.
    assert not write(targetCPUUtilizationPercentage=80).rewrote("change restore/applied .spec.metrics").stored
    answer = write(targetCPUUtilizationPercentage=80, minReplicas=2).denied("change restore/applied .spec.metrics")
    assert "the write was in another API version, and changed other fields too" in answer.told
    assert story.get() == before
    assert write(minReplicas=2).allowed().stored


def test_a_custom_resources_scale(widget: Web) -> None:
    """Its replicas stand at .spec.size, which Flux claims."""
    story = widget("restore")
    answer = story.kubectl("scale widgets.stories one --replicas=5").rewrote("change sizes/applied .spec.size")
    assert "[sizes/applied] restored .spec.size" in answer.told
    assert (story.value(".spec.size"), story.owners(".spec.size")) == (2, [ITS])
    assert not story.flux().allowed().stored


def test_finalizers_go_once_an_object_is_being_deleted(settings: Web) -> None:
    story = settings("restore")
    path = '.metadata.finalizers[="example.com/hold"]'
    story.git["metadata"]["finalizers"] = ["example.com/hold"]
    story.flux().allowed()
    none = {"metadata": {"finalizers": None}}
    assert not story.request("PATCH", none, content_type=MERGE_PATCH).rewrote(f"change restore/applied {path}").stored
    story.kubectl("delete configmap settings --wait=false").allowed()
    story.request("PATCH", none, content_type=MERGE_PATCH).recorded(f"change restore/applied {path}")
    assert story.get() == {}


def test_a_policy_that_warns_says_what_it_would_do(web: Web) -> None:
    story = web("warned")
    answer = story.kubectl("label deployment web team=mine --overwrite")
    answer.recorded(f"change warned/applied {TEAM}", "rename warned/people")
    assert "[warned/applied] Restore is called for: " in answer.told
    assert (story.value(TEAM), story.owners(TEAM)) == ("mine", ["kubectl-label (Update)"])
    story.git["metadata"]["labels"]["team"] = "mine"
    answer = story.flux()
    assert (answer.ok, answer.rewritten) == (True, [])
    assert story.owners(TEAM) == ["kubectl-label (Update)", ITS]
    del story.git["metadata"]["labels"]["team"]
    answer = story.flux()
    assert f"ghost warned/applied {TEAM}" in answer.found
    assert (story.value(TEAM), story.owners(TEAM)) == ("mine", ["kubectl-label (Update)"])


@pytest.fixture(scope="module")
def unheard(server: Server) -> Iterator[None]:
    """The API server asks the validating call alone."""
    server.register(phases=["validate"])
    yield
    server.register()


WRITES = {
    "restore": ("label deployment web team=mine --overwrite", "developer", f"change restore/applied {TEAM}"),
    "reassign": ("label deployment web team=mine --overwrite", "oncall", f"change reassign/break-glass {TEAM}"),
    "people": ("label deployment web tier=front", "developer", "rename people/one-name"),
}


@pytest.mark.parametrize("policy", WRITES)
def test_without_the_mutating_call_it_is_refused(web: Web, unheard: None, policy: str) -> None:
    command, user, event = WRITES[policy]
    story = web(policy)
    answer = story.kubectl(command, user).denied(event)
    assert "was not done" in answer.told


def test_without_the_mutating_call_shares_and_ghosts_are_refused(web: Web, unheard: None) -> None:
    for policy, event in (("release", f"share release/applied {TIER}"), ("prune", f"ghost prune/applied {TIER}")):
        story: Story = web(policy)
        story.kubectl("label deployment web tier=front").allowed()
        story.git["metadata"]["labels"]["tier"] = "front"
        if policy == "prune":
            assert story.flux().ok
            del story.git["metadata"]["labels"]["tier"]
        assert "was not done" in story.flux().denied(event).told
