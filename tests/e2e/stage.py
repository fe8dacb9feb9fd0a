"""Where stories are told with `--cluster`: the cluster with a release of its own, enforcing and failing closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.cluster import Cluster
from tests.e2e.release import Release
from tests.e2e.served import Served
from tests.e2e.served import serving as served_with

VALUES = {"mode": "Enforce", "webhooks": {"failurePolicy": "Fail"}}


class Stage(Cluster):
    """The stories ask this for a server."""

    release: Release

    @contextmanager
    def serving(self, policies: Path) -> Iterator[Served]:
        with served_with(self.release, policies) as served:
            yield served

    def unregister_webhooks(self) -> None:
        """The controller does, as policies go."""


@contextmanager
def staged() -> Iterator[Stage]:
    with Stage.opened() as stage:
        stage.release = Release(stage)
        stage.release.purge()
        try:
            stage.release.install(VALUES)
            yield stage
        finally:
            stage.release.purge()
