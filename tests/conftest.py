"""Fixtures for tests that need a real kube-apiserver; the others pay nothing for them."""

from __future__ import annotations

import itertools
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from webhook.sandbox import Sandbox

_SERVER_FIXTURES = {"sandbox", "own_sandbox"}
_RUN = secrets.token_hex(2)
_LEFT_OUT = pytest.StashKey[dict[str, str]]()
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cluster",
        action="store_true",
        help="tell the stories on the cluster that KUBECONFIG names, through real pods",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    _take_time()
    config.addinivalue_line("markers", "e2e: needs the cluster that KUBECONFIG names, and installs fieldwarden there")


def _take_time() -> None:
    """How long an example takes says how busy the machine is. Before the plugin loads a profile that was asked for."""
    from hypothesis import HealthCheck, settings

    settings.register_profile("fieldwarden", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("fieldwarden")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """End-to-end tests are run when they are named: they need a cluster."""
    return True if collection_path == Path(__file__).parent / "e2e" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whoever asks for a sandbox is marked `server`, so that `-m "not server"` leaves them all out."""
    if config.getoption("--cluster"):
        _leave_out(config, items)
    for item in items:
        if _SERVER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("server")


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What cannot be told on a cluster; a part of a file named by hand may lack names that we know."""
    from tests.e2e.elsewhere import split

    left_out, unknown = split(item.nodeid for item in items)
    if unknown and not any("::" in given for given in config.args):
        raise pytest.UsageError(f"tests/e2e/elsewhere.py names what is not there: {', '.join(unknown)}")
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]
    config.stash[_LEFT_OUT] = left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reasons = Counter(config.stash.get(_LEFT_OUT, {}).values())
    for why, count in reasons.items():
        terminalreporter.write_line(f"not told on a cluster: {count}, since {why}")


@pytest.fixture(scope="session")
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A real API server: one for the whole run, or for each xdist worker; with --cluster a whole cluster."""
    if request.config.getoption("--cluster"):
        from tests.e2e.stage import staged

        with staged() as stage:
            yield stage
        return
    from webhook.sandbox import Sandbox, binaries

    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
        programs = binaries()
    with Sandbox.start(programs) as running:
        yield running


@pytest.fixture
def namespace(sandbox: Sandbox, request: pytest.FixtureRequest) -> str:
    """A fresh namespace of this test's own. It stays: nobody finishes a namespace's deletion in a sandbox."""
    return make_namespace(sandbox, "test")


def make_namespace(sandbox: Sandbox, prefix: str, **labels: str) -> str:
    """A cluster may still have those of an earlier run."""
    name = f"{prefix}-{_RUN}-{next(_numbers)}"
    metadata = {"name": name, "labels": {**getattr(sandbox, "namespace_labels", {}), **labels}}
    reply = sandbox.request("POST", "/api/v1/namespaces", {"metadata": metadata})
    assert reply.status == 201, reply.body
    return name
