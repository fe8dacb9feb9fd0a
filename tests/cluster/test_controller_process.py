"""`fieldwarden controller` as a process: it starts before what it needs, keeps up, and goes when told."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.release import AUTHORITY, FIELDPOLICIES, LEAF, LEASE, SERVICE, Installed
from tests.cluster.support import policy
from tests.server.serving import PATIENCE, eventually, held_port
from webhook.sandbox import Sandbox
from webhook.sandbox.beside import COMMAND


@contextlib.contextmanager
def controlling(release: Installed, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    argv = [
        *COMMAND,
        "controller",
        f"--namespace={release.namespace}",
        f"--name={release.name}",
        f"--webhook-service={SERVICE}",
        f"--lease={LEASE}",
        f"--tls-secret={LEAF}",
        f"--authority-secret={AUTHORITY}",
        "--policies-from-cluster",
        f"--kubeconfig={release.sandbox.kubeconfig('admin')}",
        *arguments,
    ]
    log = release.folder / "controller.log"
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env={**os.environ, "TMPDIR": str(release.folder)})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def holder(release: Installed) -> str | None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{release.namespace}/leases/{LEASE}"
    spec: dict[str, Any] = release.sandbox.request("GET", path).body.get("spec") or {}
    return spec.get("holderIdentity")


@pytest.fixture
def release(clean: Sandbox, namespace: str, tmp_path: Path) -> Iterator[Installed]:
    installed = Installed(clean, namespace, tmp_path)
    yield installed
    installed.uninstall()


def test_it_waits_for_what_it_keeps_then_acts_and_lets_go(release: Installed) -> None:
    def page(name: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=PATIENCE) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    with (
        held_port() as port,
        controlling(release, f"--ops-listen=127.0.0.1:{port}", "--identity=me") as process,
    ):
        eventually(lambda: page("readyz")[0] == 200)
        state = json.loads(page("readyz")[1])
        assert (state["ready"], state["leads"]) == (True, False)
        assert LEASE in state["leader"]
        release.install()
        eventually(lambda: release.bundle() and release.secret(LEAF))
        assert holder(release) == "me"
        reply = release.sandbox.request("POST", FIELDPOLICIES, policy())
        assert reply.status == 201
        eventually(lambda: _reason(release, "no-labels") == "NotRegistered")  # there is no pod
        # A turn writes the statuses first, and then says what it has done.
        eventually(lambda: "fieldwarden_controller_policies 1.0" in page("metrics")[1])
        assert "fieldwarden_controller_leads 1.0" in page("metrics")[1]
        assert page("healthz")[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    assert holder(release) == ""
    lines = [json.loads(line) for line in (release.folder / "controller.log").read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"


def _reason(release: Installed, name: str) -> str:
    status = release.sandbox.request("GET", f"{FIELDPOLICIES}/{name}").body.get("status") or {}
    return "".join(one["reason"] for one in status.get("conditions", []))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--certificates=files"], "--authority-secret goes with --certificates own"),
        (["--leaf-lifetime=2000d"], "an authority must live at least three times as long as a leaf"),
        (["--settle=soon"], "'soon' is no duration"),
        (["--kubeconfig=/nowhere"], "/nowhere: there is no such kubeconfig"),
        (["--ops-listen=127.0.0.1:1x"], "the port must be a number"),
    ],
)
def test_what_cannot_be_is_said(release: Installed, arguments: list[str], said: str) -> None:
    with controlling(release, "--ops-listen=127.0.0.1:0", *arguments) as process:
        assert process.wait(timeout=PATIENCE) == 2
    assert said in (release.folder / "controller.log").read_text()
