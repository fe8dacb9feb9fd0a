"""A copy of the newest policy files that loaded: what a worker begins with when the files themselves do not load."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.server.files import digest, files_below


@dataclass(frozen=True, slots=True)
class Copy:
    """The digest of a set of files, and when it was copied in seconds since the epoch."""

    generation: str
    kept_at: float


class LastGood:
    """Copies in a folder of the running server, one below it for each digest; `newest` names the one that counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._newest = folder / "newest"

    def keep(self, generation: str, paths: Sequence[Path]) -> None:
        """Copy the files, unless they are no longer those of the digest. Raises OSError."""
        target = self._folder / generation
        if target.exists():
            if digest(paths) != generation:
                return  # a newer set may have been kept by a faster worker
        else:
            draft = self._folder / f".{generation}.{os.getpid()}"
            try:
                copies = _copy(paths, draft)
                if digest(copies) != generation:
                    return
                with contextlib.suppress(OSError):  # another worker was faster
                    draft.rename(target)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        before = self.newest()
        note = self._folder / f".newest.{os.getpid()}"
        note.write_text(generation, encoding="ascii")
        note.replace(self._newest)
        for older in self._folder.glob("[!.]*/"):
            if older.is_dir() and older.name not in (generation, before.generation if before else None):
                shutil.rmtree(older, ignore_errors=True)

    def newest(self) -> Copy | None:
        """The copy that counts."""
        with contextlib.suppress(FileNotFoundError), self._newest.open(encoding="ascii") as note:
            return Copy(note.read(), os.fstat(note.fileno()).st_mtime)
        return None

    def paths(self, generation: str, originals: Sequence[Path]) -> tuple[Path, ...]:
        """Where the copies of the originals are, in the same order."""
        return tuple(_place(self._folder / generation, number, path) for number, path in enumerate(originals))


def _copy(paths: Sequence[Path], target: Path) -> tuple[Path, ...]:
    places = []
    for number, root in enumerate(paths):
        place = _place(target, number, root)
        for file in files_below(root):
            copy = place / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        if root.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        places.append(place)
    return tuple(places)


def _place(folder: Path, number: int, original: Path) -> Path:
    """The name is kept: a loader may go by it."""
    return folder / str(number) / (original.name or "policies")
