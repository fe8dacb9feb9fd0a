"""The policies that are in force: loaded whole, compared with the files, and kept when the new ones do not load."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.server.files import MAX_SETTLE, Outcome, Signature, digest, settled, signature
from webhook.server.state import Load, PolicySetLike


@dataclass(frozen=True, slots=True)
class InForce:
    """A set that loaded."""

    policies: PolicySetLike
    generation: str  # a digest of what was read
    warnings: tuple[str, ...]
    loaded_at: float  # seconds since the epoch


class PolicyKeeper:
    """Reads policies again when their files have changed. One thread at a time; the newest good set stays in force."""

    def __init__(self, paths: Sequence[Path], load: Load, *, strict: bool = False) -> None:
        self.paths = tuple(paths)
        self._load = load
        self._strict = strict
        self._seen: Signature | None = None
        self.in_force: InForce | None = None
        self.failure: tuple[str, ...] = ()

    def check(self, *, force: bool = False) -> Outcome:
        """Load if the files differ from those read last, or if forced. The first time does not wait for files to rest."""
        if self._seen is None:
            self._seen = signature(self.paths)
        elif force or signature(self.paths) != self._seen:
            self._seen = settled(self.paths)
        else:
            return "same"
        deadline = time.monotonic() + MAX_SETTLE
        while True:  # until what was read is what is there: a set is never half used
            read = self._read(self.paths)
            if signature(self.paths) == self._seen or time.monotonic() > deadline:
                break
            self._seen = settled(self.paths)
        if isinstance(read, InForce):
            self.in_force, self.failure = read, ()
            return "loaded"
        self.failure = read
        return "failed"

    def adopt(self, paths: Sequence[Path]) -> bool:
        """Take copies of an earlier state of the files into force, where the files themselves do not load."""
        read = self._read(paths)
        if isinstance(read, InForce):
            self.in_force = read
        return isinstance(read, InForce)

    def _read(self, paths: Sequence[Path]) -> InForce | tuple[str, ...]:
        """The set, or why there is none."""
        try:
            loaded = self._load(paths, strict=self._strict)
            problems = tuple(str(problem) for problem in loaded.problems)
            if loaded.policies is None:
                return problems
            return InForce(loaded.policies, digest(paths), problems, time.time())
        except OSError as error:
            return (f"{error.filename or 'policies'}: {error.strerror or type(error).__name__}",)
