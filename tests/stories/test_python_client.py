"""The same with the Python client, which names no manager unless it is told to: OpenAPI-Generator."""

from __future__ import annotations

from collections.abc import Callable

from kubernetes import client, dynamic

from tests.stories.support import FLUX, Story

ITS = "kustomize-controller (Apply)"
LABEL = ".metadata.labels.team"
IMAGE = '.spec.template.spec.containers[name="c"].image'


def where(story: Story) -> tuple[str, str]:
    return story.git["metadata"]["name"], story.git["metadata"]["namespace"]


def test_a_patch(web: Story) -> None:
    mine = {"metadata": {"labels": {"team": "mine"}}}
    answer = web.python(lambda api: client.AppsV1Api(api).patch_namespaced_deployment(*where(web), mine))
    answer.denied(f"change flux-owns/applied {LABEL}")
    assert answer.causes == [LABEL]
    named = web.python(
        lambda api: client.AppsV1Api(api).patch_namespaced_deployment(*where(web), mine, field_manager="bot")
    )
    named.denied(f"change flux-owns/applied {LABEL}")
    assert "bot (Update) by developer@example.com" in named.told


def test_a_removal_names_nobody(web: Story) -> None:
    gone = {"metadata": {"labels": {"team": None}}}
    answer = web.python(lambda api: client.AppsV1Api(api).patch_namespaced_deployment(*where(web), gone))
    answer.denied(f"change flux-owns/applied {LABEL}")
    assert "an unknown manager by developer@example.com" in answer.told


def test_read_change_and_replace(web: Story) -> None:
    def image(api: client.ApiClient) -> None:
        apps = client.AppsV1Api(api)
        found = apps.read_namespaced_deployment(*where(web))
        pod = found.spec.template.spec
        assert pod is not None
        pod.containers[0].image = "nginx:2"
        apps.replace_namespaced_deployment(*where(web), found)

    web.python(image).denied(f"change flux-owns/applied {IMAGE}")

    def pause(api: client.ApiClient) -> None:
        apps = client.AppsV1Api(api)
        found = apps.read_namespaced_deployment(*where(web))
        found.spec.paused = True
        apps.replace_namespaced_deployment(*where(web), found)

    web.python(pause).allowed()
    assert web.owners(".spec.paused") == ["OpenAPI-Generator (Update)"]


def test_read_and_replace_changes_nothing(web: Story) -> None:
    def same(api: client.ApiClient) -> None:
        apps = client.AppsV1Api(api)
        apps.replace_namespaced_deployment(*where(web), apps.read_namespaced_deployment(*where(web)))

    assert not web.python(same).allowed().stored


def test_a_server_side_apply(settings: Story) -> None:
    def applying(color: str, manager: str, force: bool) -> Callable[[client.ApiClient], None]:
        def call(api: client.ApiClient) -> None:
            known = dynamic.DynamicClient(api)  # type: ignore[no-untyped-call]
            maps = known.resources.get(api_version="v1", kind="ConfigMap")
            name, namespace = where(settings)
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"color": color}}
            maps.server_side_apply(body, name, namespace, field_manager=manager, force_conflicts=force)

        return call

    settings.python(applying("blue", "bot", False)).denied("share config/unshared .data.color")
    settings.python(applying("red", "bot", True)).denied("change flux-owns/applied .data.color")
    settings.python(applying("red", FLUX, True)).denied(
        "change flux-owns/applied .data.color .data.size .metadata.labels.app", "impersonation names/bound"
    )
    settings.python(applying("green", FLUX, True), user="flux").allowed()
    assert settings.get()["data"] == {"color": "green"}


def test_scale(web: Story) -> None:
    three = {"spec": {"replicas": 3}}

    def scale(api: client.ApiClient) -> None:
        client.AppsV1Api(api).patch_namespaced_deployment_scale(*where(web), three)

    web.python(scale).denied("change replicas/autoscaled .spec.replicas")
    web.python(scale, user="autoscaler").allowed()
    assert web.value(".spec.replicas") == 3


def test_a_dry_run(web: Story) -> None:
    mine = {"metadata": {"labels": {"team": "mine"}}}
    web.python(lambda api: client.AppsV1Api(api).patch_namespaced_deployment(*where(web), mine, dry_run="All")).denied(
        f"change flux-owns/applied {LABEL}"
    )
