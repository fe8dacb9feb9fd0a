"""Where the sandbox's programs come from: KUBEBUILDER_ASSETS, the user's cache, or a build of the pinned Go modules."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from webhook.sandbox.errors import SandboxError
from webhook.sandbox.golang import environment, find_go

MODULE = Path(__file__).parent / "module"
SERVER = frozenset({"etcd", "kube-apiserver", "kubectl"})
"""What it takes to start a sandbox; also what KUBEBUILDER_ASSETS supplies."""


@dataclass(frozen=True, slots=True)
class Target:
    """One program of a pinned module. `seconds` is how long a first build takes on two cores, roughly."""

    name: str
    package: str
    seconds: int
    module: Path = MODULE
    stamps: tuple[str, ...] = ()  # variables that hold the version of the module `versioned`
    versioned: str = ""
    sources: tuple[str, ...] = ()  # files of the module that it is built from


_KUBERNETES = "k8s.io/kubernetes"
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_HELM = "helm.sh/helm/v4"


def _kubernetes(name: str, seconds: int) -> Target:
    return Target(name, f"{_KUBERNETES}/cmd/{name}", seconds, stamps=_STAMPED, versioned=_KUBERNETES)


TARGETS = {
    target.name: target
    for target in (
        Target("oracle", "./oracle", 10, sources=("oracle/main.go",)),
        Target("etcd", "go.etcd.io/etcd/server/v3", 60),
        _kubernetes("kube-apiserver", 180),
        _kubernetes("kubectl", 45),
        _kubernetes("kube-controller-manager", 60),
        Target("helm", f"{_HELM}/cmd/helm", 90, MODULE / "helm", (f"{_HELM}/internal/version",), _HELM),
    )
}


def binaries(names: Collection[str] = SERVER) -> dict[str, Path]:
    """The named programs by name, built when they are nowhere yet (progress on standard error).

    Names are those of TARGETS. Raises SandboxError for an unknown name, and when nothing can supply a program.
    """
    if unknown := set(names) - TARGETS.keys():
        raise SandboxError(f"There is no program {', '.join(sorted(unknown))}; there are {', '.join(sorted(TARGETS))}.")
    wanted = [target for target in TARGETS.values() if target.name in names]
    return {target.name: _supplied(target) or _cached(target) for target in wanted}


def missing(names: Collection[str] = SERVER) -> list[str]:
    """Those of the named programs that `binaries` would have to build first."""
    return [name for name in sorted(names) if not _supplied(TARGETS[name]) and not _kept(TARGETS[name]).exists()]


def cache_dir() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/fieldwarden`; it can be removed at any time and comes back by itself."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "fieldwarden"


def _supplied(target: Target) -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder or target.name not in SERVER:
        return None
    program = Path(folder) / target.name
    return program if os.access(program, os.X_OK) else None


def _cached(target: Target) -> Path:
    cache, program = cache_dir(), _kept(target)
    if program.exists():
        return program
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        with _lock(program.parent / ".lock", f"another process is building in {program.parent}"):
            if not program.exists():  # somebody else may have built it meanwhile
                _build(target, program, cache)
    except OSError as error:
        raise SandboxError(
            f"The cache {cache} cannot be used: {error}. Set XDG_CACHE_HOME to a writable folder."
        ) from error
    return program


def _kept(target: Target) -> Path:
    return cache_dir() / "bin" / _digest(target) / target.name


def _digest(target: Target) -> str:
    """Of all that decides what is built: the pins, own sources, versions and flags, and the machine's kind."""
    content = hashlib.sha256(f"{sys.platform} {platform.machine()} {_linker_flags(target)}".encode())
    for name in ("go.mod", "go.sum", *target.sources):
        content.update((target.module / name).read_bytes())
    return content.hexdigest()[:16]


def _linker_flags(target: Target) -> str:
    flags = ["-s", "-w"]
    if not target.versioned:
        return " ".join(flags)
    version = _pinned_version(target)
    major, minor, *_ = version.removeprefix("v").split(".")
    for package in target.stamps:
        if target.versioned == _HELM:
            flags.append(f"-X {package}.version={version}")
        else:
            stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
            flags += [f"-X {package}.{name}={value}" for name, value in stamps.items()]
    return " ".join(flags)


def _pinned_version(target: Target) -> str:
    for line in (target.module / "go.mod").read_text().splitlines():
        words = line.replace("require", "").split()
        if len(words) >= 2 and words[0] == target.versioned and words[1].startswith("v"):
            return words[1]
    raise SandboxError(f"{target.module / 'go.mod'} does not pin {target.versioned}.")


@contextmanager
def _lock(path: Path, busy: str) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting: {busy}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(target: Target, program: Path, cache: Path) -> None:
    go = find_go(cache, target.module)
    # A build that was killed leaves its folder; we hold the lock, so nobody is using it.
    for stale in program.parent.glob(".build-*"):
        for file in stale.iterdir():
            file.unlink()
        stale.rmdir()
    with tempfile.TemporaryDirectory(dir=program.parent, prefix=".build-") as folder:
        built, log = Path(folder) / target.name, Path(folder) / "log"
        command = [str(go), "build", "-o", str(built), "-ldflags", _linker_flags(target), target.package]
        _run_with_progress(target, command, log)
        built.rename(program)


def _run_with_progress(target: Target, command: list[str], log: Path) -> None:
    started = time.monotonic()
    about = f"{target.seconds} s" if target.seconds < 100 else f"{target.seconds // 60} min"
    _say(f"building {target.name}, once: up to {about} on two cores, far less when Go's own cache is warm")
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=target.module, env=environment(), stdout=output, stderr=output)  # noqa: S603
        try:
            while True:
                try:
                    status = process.wait(timeout=10)
                    break
                except subprocess.TimeoutExpired:
                    _say(f"building {target.name}: {time.monotonic() - started:.0f} s of about {about}")
        finally:
            process.kill()
            process.wait()
    if status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise SandboxError(f"Building {target.name} failed (go build, status {status}):\n{tail}")
    _say(f"built {target.name} in {time.monotonic() - started:.0f} s")


def _say(text: str) -> None:
    sys.stderr.write(f"sandbox: {text}\n")
    sys.stderr.flush()
