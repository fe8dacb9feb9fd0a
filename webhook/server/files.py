"""Which files there are and which version of each, so that a change is seen however it was made."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

Outcome = Literal["same", "loaded", "failed"]
"""Of comparing files with what was read of them last, and reading them again if they differ."""

Signature = tuple[tuple[str, int, int, int], ...]

SETTLE = 0.2
"""Seconds without a further change before files are read: a file half written is not to be read."""

MAX_SETTLE = 5.0
"""Seconds after which files that never rest are read as they are."""


def signature(paths: Sequence[Path]) -> Signature:
    """Name, inode, time and size of each file. Symbolic links are followed, so that a swapped folder shows.

    Hidden names are left out below the paths given, as the loader leaves them out: a mounted ConfigMap keeps its
    versions in such folders.
    """
    found: list[tuple[str, int, int, int]] = []
    for root in paths:
        for file in files_below(root):
            try:
                stat = file.stat()
            except OSError:
                found.append((str(file), -1, -1, -1))
            else:
                found.append((str(file), stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def digest(paths: Sequence[Path]) -> str:
    """Of the names and contents: the same for whoever read the same. Raises OSError."""
    found = hashlib.sha256()
    for root in paths:
        for file in files_below(root):
            content = file.read_bytes()
            found.update(f"{file.relative_to(root)} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()[:12]


def settled(paths: Sequence[Path]) -> Signature:
    """The signature once the files have rested for SETTLE seconds; blocks for MAX_SETTLE at most."""
    deadline = time.monotonic() + MAX_SETTLE
    now = signature(paths)
    while time.monotonic() < deadline:
        time.sleep(SETTLE)
        previous, now = now, signature(paths)
        if previous == now:
            break
    return now


def files_below(root: Path) -> Iterator[Path]:
    """The file itself, or all files below a folder in order, hidden names left out."""
    if not root.is_dir():
        yield root
        return
    seen = set()
    for folder, folders, files in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a loop of links
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(files) if not name.startswith("."))
