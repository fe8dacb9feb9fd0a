from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Server, policy, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for a module whose tests change nothing: two workers, a policy that denies `kubectl label`."""
    folder = tmp_path_factory.mktemp("serve")
    with running(folder, with_policy(folder / "policies")) as started:
        yield started


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A folder with the policy that denies `kubectl label`."""
    return with_policy(tmp_path / "policies")


def with_policy(folder: Path) -> Path:
    folder.mkdir()
    (folder / "labels.yaml").write_text(policy())
    return folder
