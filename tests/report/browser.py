"""A real browser for the tests: the machine's own Chromium, else Debian's, unpacked into the user's cache.

Nothing is installed: the packages are fetched as apt would fetch them, and unpacked beside each other.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome-headless-shell")
PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core", "fontconfig-config")
PROGRAM = "usr/lib/chromium/chromium-headless-shell"
REMEDY = "Install Chromium, so that one of these is on PATH: " + ", ".join(NAMES) + "."


class NoBrowserError(Exception):
    """There is no Chromium, and none could be had: says why, and the way out."""


@contextmanager
def browsing() -> Iterator[Browser]:
    """A headless Chromium, closed at the end."""
    from playwright.sync_api import sync_playwright

    program, environment = chromium()
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's own sandbox refuses root
        browser = playwright.chromium.launch(executable_path=program, env={**os.environ, **environment}, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def chromium() -> tuple[Path, Mapping[str, str]]:
    """The program, and what its environment needs."""
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found), {}
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fieldwarden" / "chromium"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes fetch it once
        root = cache / "root"
        if not _runs(root):
            _unpack(cache, root)
        if not _runs(root):
            raise NoBrowserError(f"Debian's chromium-headless-shell does not run here. {REMEDY}")
    return root / PROGRAM, _environment(root)


def _environment(root: Path) -> dict[str, str]:
    folders = sorted({path.parent for path in (root / "usr/lib").glob("*-linux-gnu*/**/*.so*")})
    libraries = [str(folder) for folder in folders]
    return {"LD_LIBRARY_PATH": ":".join(libraries), "FONTCONFIG_FILE": str(root / "fonts.conf")}


def _runs(root: Path) -> bool:
    program = root / PROGRAM
    if not program.exists():
        return False
    command, environment = [program, "--version"], {**os.environ, **_environment(root)}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def _unpack(cache: Path, root: Path) -> None:
    sys.__stderr__.write(f"tests: no Chromium on PATH, unpacking Debian's into {cache} (100 MB)\n")  # type: ignore[union-attr]
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NoBrowserError(f"There is no Chromium on PATH, and no {tool} to fetch Debian's with. {REMEDY}")
    apt, fresh = cache / "apt", cache / "fresh"
    for folder in (apt, fresh, root):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in (apt / "lists" / "partial", apt / "archives" / "partial", fresh):
        folder.mkdir(parents=True)
    _apt(apt, "update")
    # apt reckons with what is installed here, so this brings exactly what is missing.
    _apt(apt, "install", "--reinstall", "--download-only", "--no-install-recommends", "--yes", *PACKAGES)
    for package in sorted((apt / "archives").glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(fresh)])
    fonts = f'<fontconfig><dir>{root}/usr/share/fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>\n'
    (fresh / "fonts.conf").write_text(f'<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n{fonts}')
    fresh.rename(root)
    shutil.rmtree(apt)


def _apt(folder: Path, *arguments: str) -> None:
    """apt-get with lists and archives of its own, so that the machine's are neither needed nor touched."""
    own = [f"Dir::State::lists={folder / 'lists'}", f"Dir::Cache::archives={folder / 'archives'}"]
    own += ["Debug::NoLocking=1", "Acquire::Languages=none", "Acquire::Retries=3", "APT::Update::Post-Invoke::="]
    own += ["APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    _run(["apt-get", "--quiet=2", *(part for option in own for part in ("-o", option)), *arguments])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise NoBrowserError(f"There is no Chromium on PATH, and Debian's could not be fetched: {said} {REMEDY}")
