"""An API server that knows FieldPolicies, and servers that follow it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support import install
from webhook.sandbox import Options, Sandbox


@pytest.fixture(scope="package")
def fieldpolicies(sandbox: Sandbox) -> Sandbox:
    """The run's sandbox, with the custom resource installed."""
    install(sandbox)
    return sandbox


@pytest.fixture
def clean(fieldpolicies: Sandbox) -> Iterator[Sandbox]:
    """The same, without any policy before and after."""
    path = "/apis/fieldwarden.dev/v1alpha1/fieldpolicies"
    assert fieldpolicies.request("DELETE", path).status == 200
    yield fieldpolicies
    assert fieldpolicies.request("DELETE", path).status == 200


@pytest.fixture
def own_sandbox() -> Iterator[Sandbox]:
    """A sandbox of one test's own, whose API server may be stopped, and which knows no FieldPolicies yet."""
    with Sandbox.start(options=Options(audit="Metadata")) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "serve"
