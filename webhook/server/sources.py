"""The policies in force, out of files and out of the cluster.

Either is kept current by itself, and keeps what last loaded when its newest state does not.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import cast

from webhook.cluster.mirrored import KnownLabels, Mirrored, load_mirrored, united
from webhook.policy import PolicySet
from webhook.server.files import Outcome
from webhook.server.policies import InForce, PolicyKeeper


class Sources:
    """`in_force` is None until everything that was asked for has been read once. One thread at a time."""

    def __init__(self, files: PolicyKeeper | None, mirrored: Mirrored | None, *, strict: bool = False) -> None:
        self.files = files
        self._mirrored = mirrored
        self._cluster = PolicyKeeper((mirrored.policies,), load_mirrored, strict=strict) if mirrored else None
        self._labels = KnownLabels(mirrored.namespaces) if mirrored else None
        self.in_force: InForce | None = None
        self._unite()

    @property
    def failure(self) -> tuple[str, ...]:
        """Of the newest states, where they did not load."""
        return tuple(text for keeper in (self.files, self._cluster) if keeper for text in keeper.failure)

    @property
    def folders(self) -> list[Path]:
        """What to watch."""
        found = [path for path in (self.files.paths if self.files else ()) if path.is_dir()]
        return [*found, self._mirrored.folder] if self._mirrored else found

    def check(self, *, force: bool = False) -> Outcome:
        """Load what differs from what was read last; all if forced. `failed` if any of it does not load."""
        outcomes = [self.files.check(force=force)] if self.files else []
        if self._labels:
            self._labels.refresh()
        if self._cluster and self._mirrored and self._mirrored.is_read:
            outcomes.append(self._cluster.check(force=force))
        if "loaded" in outcomes:
            self._unite()
        return next((outcome for outcome in ("failed", "loaded") if outcome in outcomes), "same")

    def adopt(self, files: tuple[Path, ...]) -> bool:
        """Take copies of an earlier state of the files into force, where the files themselves do not load."""
        taken = self.files is not None and self.files.adopt(files)
        if taken:
            self._unite()
        return taken

    def _unite(self) -> None:
        files = self.files.in_force if self.files else None
        if not (self._cluster and self._labels):
            self.in_force = files
            return
        cluster = self._cluster.in_force
        if cluster is None or (self.files and files is None):
            return
        self.in_force = InForce(
            policies=united(_set(files) if files else None, _set(cluster), self._labels),
            generation=_one(files.generation if files else "", cluster.generation),
            warnings=(*(files.warnings if files else ()), *cluster.warnings),
            loaded_at=max(files.loaded_at if files else 0.0, cluster.loaded_at),
        )


def _set(loaded: InForce) -> PolicySet:
    return cast("PolicySet", loaded.policies)  # what both loaders make


def _one(files: str, cluster: str) -> str:
    return hashlib.sha256(f"{files} {cluster}".encode()).hexdigest()[:12]
