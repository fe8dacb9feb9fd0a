"""Fixtures for tests that need a real kube-apiserver; the others pay nothing for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from webhook.sandbox import Sandbox

_SERVER_FIXTURES = {"sandbox", "own_sandbox"}
_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for a sandbox is marked `server`, so that `-m "not server"` leaves them all out."""
    for item in items:
        if _SERVER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("server")


@pytest.fixture(scope="session")
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A real API server: one for the whole run, or for each xdist worker."""
    from webhook.sandbox import Sandbox, binaries

    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
        programs = binaries()
    with Sandbox.start(programs) as running:
        yield running


@pytest.fixture
def namespace(sandbox: Sandbox, request: pytest.FixtureRequest) -> str:
    """A fresh namespace of this test's own. It stays: nobody finishes a namespace's deletion in a sandbox."""
    name = f"test-{next(_numbers)}"
    reply = sandbox.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert reply.status == 201, reply.body
    return name
