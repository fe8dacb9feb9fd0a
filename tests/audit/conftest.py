"""The stories of tests/stories and tests/rewriting, told to two API servers at once: see retelling.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audit.retelling import TESTS, Shelf
from tests.audit.servers import Twins

HERE = Path(__file__).parent


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if module_path.name != "test_retold.py":
        return None
    folder = TESTS / module_path.parent.relative_to(HERE)
    shelf: Shelf = Shelf.from_parent(parent, path=module_path, folder=folder)
    return shelf


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Twins]:
    with Twins.started() as twins:
        yield twins
