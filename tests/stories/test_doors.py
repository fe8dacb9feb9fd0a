"""The side doors of an object: /status, /scale, another API version, and the way out through deletion."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.support import MERGE_PATCH, Story

TIME = "2030-01-01T00:00:00Z"
ITS = "kustomize-controller (Apply)"
LABEL = ".metadata.labels.team"
TEAM = {"metadata": {"labels": {"team": "mine"}}}


@pytest.fixture
def service(tell: Tell, namespace: str) -> Story:
    return applied(tell(manifests.service(namespace)))


def test_a_label_through_a_services_status(service: Story) -> None:
    named = {"fieldManager": "door"}
    answer = service.request("PATCH", TEAM, content_type=MERGE_PATCH, subresource="status", params=named)
    answer.denied(f"change flux-owns/applied {LABEL}")
    assert "door (Update, status) by developer@example.com" in answer.told
    assert service.owners(LABEL) == [ITS]


def test_a_label_through_status_by_kubectl_and_without_a_name(service: Story) -> None:
    patch = """patch service web --subresource=status --type=merge -p '{"metadata":{"labels":{"team":null}}}'"""
    service.kubectl(patch).denied(f"change flux-owns/applied {LABEL}")
    service.request("PATCH", TEAM, content_type=MERGE_PATCH, subresource="status").denied(
        f"change flux-owns/applied {LABEL}"
    )


def test_a_status_that_is_only_a_status_is_nobodys_business(service: Story, web: Story, widget: Story) -> None:
    """The same writer's name would be refused in the object itself."""
    condition = {"type": "Fine", "status": "True", "reason": "Is", "message": "", "lastTransitionTime": TIME}
    named = {"fieldManager": "kubectl-client-side-apply"}
    written: list[tuple[Story, dict[str, Any]]] = [
        (service, {"status": {"conditions": [condition]}}),
        (web, {"status": {"replicas": 1}}),
        (widget, {"status": {"size": 1}}),
    ]
    for story, status in written:
        answer = story.request("PATCH", status, content_type=MERGE_PATCH, subresource="status", params=named)
        assert answer.allowed().stored
        assert story.claims()[-1] == "kubectl-client-side-apply (Update, status)"
        assert set(status["status"]) <= set(story.get()["status"])


def test_scale_is_the_autoscalers(web: Story) -> None:
    """Judged by the user: on /scale of an object whose replicas nobody claims there is no claim to see."""
    web.kubectl("scale deployment web --replicas=3").denied("change replicas/autoscaled .spec.replicas")
    web.kubectl("scale deployment web --replicas=3", user="flux").denied("change replicas/autoscaled .spec.replicas")
    web.kubectl("scale deployment web --replicas=3", user="autoscaler").allowed()
    assert web.value(".spec.replicas") == 3
    web.kubectl("scale deployment web --replicas=3").allowed()  # it is three already
    web.flux().allowed()
    assert web.value(".spec.replicas") == 3


def test_replicas_are_the_autoscalers_in_the_object_too(web: Story) -> None:
    more = {"spec": {"replicas": 3}}
    answer = web.request("PATCH", more, content_type=MERGE_PATCH)
    answer.denied("change replicas/autoscaled .spec.replicas")
    assert answer.causes == [".spec.replicas"]
    web.git["spec"]["replicas"] = 3
    web.flux().denied("change replicas/autoscaled .spec.replicas")


def test_scaling_to_zero_is_a_write_too(web: Story) -> None:
    web.kubectl("scale deployment web --replicas=0").denied("change replicas/autoscaled .spec.replicas")


def test_a_custom_resources_scale(widget: Story) -> None:
    """Its replicas stand at .spec.size, which Flux claims: the mutating call, which is shown claims, refuses."""
    answer = widget.kubectl("scale widgets.stories one --replicas=5")
    answer.denied("change sizes/applied .spec.size")
    assert 'admission webhook "mutate.fieldwarden.dev" denied the request' in answer.told
    assert (widget.value(".spec.size"), widget.owners(".spec.size")) == (2, [ITS])


def test_another_api_version_loses_what_it_cannot_show(tell: Tell, namespace: str) -> None:
    """A write through autoscaling/v1 takes .spec.metrics from Flux's claim in v2, which neither object shows."""
    story = applied(tell(manifests.autoscaler(namespace)))
    old = story.path.replace("/v2/", "/v1/")
    target = {"spec": {"targetCPUUtilizationPercentage": 80}}
    answer = story.request("PATCH", target, content_type=MERGE_PATCH, path=old, params={"fieldManager": "old-client"})
    answer.denied("change flux-owns/applied .spec.metrics")
    assert story.owners(".spec.metrics") == [ITS]


def test_another_api_version_shows_what_is_alike_in_all(tell: Tell, namespace: str) -> None:
    story = applied(tell(manifests.autoscaler(namespace)))
    old = story.path.replace("/v2/", "/v1/")
    more = {"spec": {"maxReplicas": 9}}
    story.request("PATCH", more, content_type=MERGE_PATCH, path=old).denied(
        "change flux-owns/applied .spec.maxReplicas"
    )
    least = {"spec": {"minReplicas": 2}}
    story.request("PATCH", least, content_type=MERGE_PATCH, path=old, params={"fieldManager": "old-client"}).allowed()
    assert story.value(".spec.minReplicas") == 2


def test_no_op_through_another_version(tell: Tell, namespace: str) -> None:
    story = applied(tell(manifests.autoscaler(namespace)))
    old = story.path.replace("/v2/", "/v1/")
    assert not story.request("PUT", story.get(old), path=old).allowed().stored


def test_finalizers_go_once_an_object_is_being_deleted(settings: Story) -> None:
    path = '.metadata.finalizers[="example.com/hold"]'
    settings.git["metadata"]["finalizers"] = ["example.com/hold"]
    settings.flux().allowed()
    none = {"metadata": {"finalizers": None}}
    settings.request("PATCH", none, content_type=MERGE_PATCH).denied(f"change flux-owns/applied {path}")

    settings.kubectl("delete configmap settings --wait=false").allowed()
    assert settings.value(".metadata.deletionTimestamp") is not None
    settings.request("PATCH", none, content_type=MERGE_PATCH).recorded(f"change flux-owns/applied {path}")
    assert settings.get() == {}


def test_deleting_is_nobodys_business(web: Story) -> None:
    web.kubectl("delete deployment web --cascade=orphan --wait=false").allowed()
