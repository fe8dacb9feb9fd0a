"""Helm for the chart's tests: the sandbox's, built on first use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from charting import Helm

if TYPE_CHECKING:
    from webhook.sandbox import Sandbox


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    from webhook.sandbox import binaries

    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
        program = binaries({"helm"})["helm"]
    return Helm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One without any definition of FieldPolicy: Helm would not take over what it has not made."""
    from webhook.sandbox import Sandbox

    with Sandbox.start() as running:
        yield running
