"""One API server with fieldwarden registered, failing closed, and objects that Flux has applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stories import manifests
from tests.stories.server import Server, serving
from tests.stories.support import Object, Story
from webhook.sandbox import Sandbox

POLICIES = Path(__file__).parent / "policies"

Tell = Callable[[Object], Story]


@pytest.fixture(scope="package")
def widgets(sandbox: Sandbox) -> None:
    """The custom resource of the stories is served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert sandbox.request("POST", path, manifests.widget_definition()).status in (201, 409)
    group = manifests.WIDGETS
    sandbox.wait_until(lambda: sandbox.request("GET", f"/apis/{group}").status == 200, "kube-apiserver")
    listed = f"/apis/{group}/widgets"
    sandbox.wait_until(lambda: sandbox.request("GET", listed).status == 200, "kube-apiserver")


@pytest.fixture(scope="package")
def server(sandbox: Sandbox, widgets: None) -> Iterator[Server]:
    """fieldwarden with the stories' policies."""
    with serving(sandbox, POLICIES) as running:
        running.register()
        yield running
        sandbox.unregister_webhooks()


@pytest.fixture
def tell(sandbox: Sandbox, server: Server) -> Tell:
    """A story of an object that is not there yet."""
    return lambda item: Story(sandbox, server, item)


@pytest.fixture
def web(tell: Tell, namespace: str) -> Story:
    """A Deployment that Flux has applied: labels app and team, image nginx:1, variable A; nobody's replicas."""
    return applied(tell(manifests.deployment(namespace)))


@pytest.fixture
def settings(tell: Tell, namespace: str) -> Story:
    """A ConfigMap that Flux has applied: color and size."""
    return applied(tell(manifests.config_map(namespace)))


@pytest.fixture
def widget(tell: Tell, namespace: str) -> Story:
    """A custom resource that Flux has applied: size, colors (a set), parts (a keyed list), steps (atomic), and more."""
    return applied(tell(manifests.widget(namespace)))


def applied(story: Story) -> Story:
    story.flux().allowed()
    return story
