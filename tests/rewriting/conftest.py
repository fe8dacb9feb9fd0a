"""fieldwarden with policies that rewrite, both calls registered. A namespace's name says which policy is about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import make_namespace
from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.conftest import widgets as widgets
from tests.stories.server import Server, serving
from tests.stories.support import Object, Story
from webhook.sandbox import Sandbox

POLICIES = Path(__file__).parent / "policies"
NOBODYS = "plain"  # the one policy that is none: what happens without fieldwarden

Place = Callable[[str], str]
Web = Callable[[str], Story]


@pytest.fixture(scope="package")
def server(sandbox: Sandbox, widgets: None) -> Iterator[Server]:
    """fieldwarden with this folder's policies."""
    with serving(sandbox, POLICIES) as running:
        running.register()
        yield running
        sandbox.unregister_webhooks()


@pytest.fixture
def place(sandbox: Sandbox) -> Place:
    """A fresh namespace of a policy."""
    return lambda policy: make_place(sandbox, policy)


def make_place(sandbox: Sandbox, policy: str, **labels: str) -> str:
    return make_namespace(sandbox, policy, **labels)


@pytest.fixture
def tell(sandbox: Sandbox, server: Server) -> Tell:
    """A story of an object that is not there yet."""
    return lambda item: Story(sandbox, server, item)


@pytest.fixture
def web(tell: Tell, place: Place) -> Web:
    """In a policy's namespace, a Deployment that Flux has applied."""
    return lambda policy: applied(tell(manifests.deployment(place(policy))))


@pytest.fixture
def settings(tell: Tell, place: Place) -> Web:
    """In a policy's namespace, a ConfigMap that Flux has applied."""
    return lambda policy: applied(tell(manifests.config_map(place(policy))))


@pytest.fixture
def widget(tell: Tell, place: Place) -> Web:
    """In a policy's namespace, a custom resource that Flux has applied."""
    return lambda policy: applied(tell(manifests.widget(place(policy))))


def container(item: Object, number: int = 0) -> Object:
    """One of a Deployment's containers."""
    found: Object = item["spec"]["template"]["spec"]["containers"][number]
    return found


def add_sidecar(item: Object) -> None:
    item["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})


def drop_sidecar(item: Object) -> None:
    del item["spec"]["template"]["spec"]["containers"][1]


def lasting(item: Object) -> Object:
    """An object without what differs between a dry run and a write: its versions, its uid, and when claims were made."""
    meta = {name: value for name, value in item["metadata"].items() if name not in ("resourceVersion", "generation")}
    claims = [{name: value for name, value in claim.items() if name != "time"} for claim in meta["managedFields"]]
    return {**item, "metadata": {**meta, "managedFields": claims}}
