"""The release that the tests are about, in the cluster that KUBECONFIG names. They run in this order, file by file."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.conftest import make_namespace
from tests.e2e.cluster import Cluster
from tests.e2e.load import GUARD, Load
from tests.e2e.release import Release
from tests.e2e.served import in_force

ORDER = ("test_install", "test_policies", "test_life", "test_healing", "test_certificates", "test_upgrade")
HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.parent == HERE]
    for item in ours:
        item.add_marker("e2e")
    rank = {name: number for number, name in enumerate(ORDER)}
    ours.sort(key=lambda item: rank.get(item.path.stem, -1))
    items[:] = [*ours, *(item for item in items if item.path.parent != HERE)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the pods as they are then: afterwards they are gone."""
    report = yield
    release = getattr(item, "funcargs", {}).get("release")
    if report.failed and release is not None:
        report.sections.append(("release", release.told()))
    return report


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster.opened() as opened:
        yield opened


@pytest.fixture(scope="session")
def release(cluster: Cluster) -> Iterator[Release]:
    """None is installed before the first that asks for it."""
    made = Release(cluster)
    made.purge()
    yield made
    made.purge()


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    return make_namespace(cluster, "e2e")


@pytest.fixture
def load(cluster: Cluster, release: Release) -> Callable[[], Load]:
    """Constant writes under a policy that is in force; whoever asks has seen to the release."""

    def make() -> Load:
        in_force(release, GUARD)
        return Load(cluster, make_namespace(cluster, "load"))

    return make
