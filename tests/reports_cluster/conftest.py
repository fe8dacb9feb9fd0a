"""An API server that serves both kinds of reports, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reports_cluster.installing import install
from webhook.cluster.api import Api
from webhook.cluster.report_objects import OPENREPORTS, POLICYREPORT
from webhook.sandbox import Sandbox


@pytest.fixture(scope="package")
def reporting(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The run's sandbox, with the definitions of both formats installed. Nobody else there asks for them."""
    for form in (OPENREPORTS, POLICYREPORT):
        install(sandbox, form, tmp_path_factory.mktemp("published"))
    return sandbox


@pytest.fixture
def api(reporting: Sandbox) -> Api:
    return Api.connect(reporting.kubeconfig())


@pytest.fixture
def own_sandbox() -> Iterator[Sandbox]:
    """One of a test's own, whose API server may be stopped, and which serves no reports yet."""
    with Sandbox.start() as running:
        yield running
