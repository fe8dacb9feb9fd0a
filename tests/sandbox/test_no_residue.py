"""A sandbox leaves no process and no folder, however it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from webhook.sandbox import Options, Sandbox, SandboxError, apiserver

pytestmark = pytest.mark.server

HOLDER = """
import json, sys, time
from webhook.sandbox import Sandbox
sandbox = Sandbox.start()
print(json.dumps(str(sandbox.folder)), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that no other test uses."""
    folder = tmp_path_factory.mktemp("s")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)  # tempfile remembers the first answer
    return folder


@pytest.fixture
def holder(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process that holds a sandbox."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _mentioning(place: Path) -> dict[int, str]:
    """The command lines of living processes that run in the folder or name it."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or entry.name == str(os.getpid()):
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            runs_in = str((entry / "cwd").readlink())
        except OSError:
            continue
        if str(place) in line or str(place) in runs_in:
            found[int(entry.name)] = line
    return found


def _eventually(done: Callable[[], bool], seconds: float = 60) -> bool:
    limit = time.monotonic() + seconds
    while not done():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def _audited(sandbox: Sandbox, resource: str) -> list[dict[str, Any]]:
    *lines, _unfinished = sandbox.audit_log.read_text().split("\n")
    events = [json.loads(line) for line in lines]
    return [event for event in events if event.get("objectRef", {}).get("resource") == resource]


def _folder(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(json.loads(process.stdout.readline()))


def test_stop_leaves_no_process_and_no_folder(place: Path) -> None:
    with Sandbox.start() as sandbox:
        assert sandbox.folder.parent == place
        running = " ".join(_mentioning(place).values())
        assert all(name in running for name in ("etcd", "kube-apiserver", "supervisor.py"))
        assert sandbox.kubectl("get", "namespaces", "-o", "name").returncode == 0
    assert _mentioning(place) == {}
    assert list(place.iterdir()) == []
    sandbox.stop()
    with pytest.raises(SandboxError):
        sandbox.request("GET", "/readyz")


def test_a_killed_holder_leaves_nothing(place: Path, holder: subprocess.Popen[str]) -> None:
    folder = _folder(holder)
    assert len(_mentioning(place)) >= 3
    holder.kill()
    assert _eventually(lambda: not _mentioning(place))
    assert _eventually(lambda: not folder.exists())
    assert list(place.iterdir()) == []


def test_a_killed_supervisor_takes_the_servers_along_and_the_next_sandbox_its_folder(
    place: Path, holder: subprocess.Popen[str]
) -> None:
    folder = _folder(holder)
    (supervisor,) = [number for number, line in _mentioning(place).items() if "supervisor.py" in line]
    os.kill(supervisor, signal.SIGKILL)
    assert _eventually(lambda: not _mentioning(place))
    assert folder.exists()
    with Sandbox.start():
        assert not folder.exists()
    assert list(place.iterdir()) == []


def test_a_sandbox_beside_a_living_one_leaves_it_alone(place: Path, holder: subprocess.Popen[str]) -> None:
    folder = _folder(holder)
    with Sandbox.start() as sandbox:
        assert sandbox.folder != folder
    assert folder.exists()
    assert len(_mentioning(place)) == 3


def test_a_failed_start_says_why_and_leaves_nothing(place: Path) -> None:
    with pytest.raises(SandboxError, match="no-such-flag"):
        Sandbox.start(options=Options(apiserver_flags=("--no-such-flag",)))
    assert _mentioning(place) == {}
    assert list(place.iterdir()) == []


def test_a_port_taken_meanwhile_is_no_failure(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        offered = iter([other.getsockname()[1], apiserver.free_port()])
        monkeypatch.setattr(apiserver, "free_port", lambda: next(offered))
        with Sandbox.start() as sandbox:
            assert sandbox.request("GET", "/readyz").status == 200
            assert list(offered) == []


def test_the_audit_log_is_written_on_request(place: Path) -> None:
    with Sandbox.start(options=Options(audit="Metadata")) as sandbox:
        path = "/api/v1/namespaces/default/configmaps"
        assert sandbox.request("POST", path, {"metadata": {"name": "audited"}}, "developer").status == 201

        def written() -> list[dict[str, Any]]:
            return [event for event in _audited(sandbox, "configmaps") if event["objectRef"].get("name") == "audited"]

        sandbox.wait_until(lambda: bool(written()))  # a request is written down after its answer
        (event,) = written()
        assert (event["verb"], event["stage"]) == ("create", "ResponseComplete")
        assert event["user"]["username"] == "developer@example.com"
        assert event["responseStatus"]["code"] == 201


def test_controllers_run_under_accounts_of_their_own(place: Path) -> None:
    with Sandbox.start(options=Options(audit="Metadata")) as sandbox:
        sandbox.start_controller_manager()
        item = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]},
                },
            },
        }
        assert sandbox.apply(item, "kustomize-controller", "flux").status == 201
        pods = "/api/v1/namespaces/default/pods"
        sandbox.wait_until(lambda: bool(sandbox.request("GET", pods).body["items"]), "kube-controller-manager")
        controller = "system:serviceaccount:kube-system:deployment-controller"
        sandbox.wait_until(
            lambda: controller in {event["user"]["username"] for event in _audited(sandbox, "replicasets")}
        )
    assert _mentioning(place) == {}
    assert list(place.iterdir()) == []
