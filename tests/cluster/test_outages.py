"""What may go away and come back: the API server, the mirror, the whole server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.cluster.support import ANNOTATE, PATH, denied, following, in_force, install, policy
from tests.server.serving import Server, command, eventually
from webhook.sandbox import Sandbox


def mirror_pid(folder: Path) -> int:
    """The process that follows the cluster, by its own word; 0 before it has said anything."""
    for file in folder.glob("tmp/fieldwarden-*/mirror.json"):
        return int(json.loads(file.read_text())["pid"])
    return 0


def runs(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # before it is opened, or while it is read
        return False
    return told.rpartition(")")[2].split()[0] != "Z"


def asked(sandbox: Sandbox, verb: str) -> list[dict[str, Any]]:
    """What the mirror has asked the API server about policies, and was given: one that just starts may not serve them yet."""
    events = [json.loads(line) for line in sandbox.audit_log.read_text().splitlines() if line.endswith("}")]
    return [
        event
        for event in events
        if event["verb"] == verb
        and event.get("userAgent", "").startswith("fieldwarden-mirror/")
        and event["requestURI"].startswith(PATH)
        and event.get("responseStatus", {}).get("code") == 200
    ]


def is_followed(server: Server) -> bool:
    return server.metric("fieldwarden_cluster_followed") == 1


def test_an_api_server_that_goes_away_and_comes_back_is_caught_up_with(own_sandbox: Sandbox, folder: Path) -> None:
    install(own_sandbox)
    assert own_sandbox.request("POST", PATH, policy()).status == 201
    with following(own_sandbox, folder) as server:
        in_force(server, label=True, annotate=False)
        for number in range(2):
            # Something else is written, so that the mirror's version is one that a new API server does not remember.
            own_sandbox.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": "other-"}})
            own_sandbox.stop_apiserver()
            eventually(lambda: "Connection refused" in str(server.ready()["warnings"]))
            assert not is_followed(server)
            assert denied(server, "kubectl-label") == {True}, "it judges by what it has"
            status, body = server.get("/readyz")
            assert status == 200
            assert "the cluster cannot be followed since 20" in body
            contact = server.metric("fieldwarden_cluster_last_contact_timestamp_seconds")
            own_sandbox.start_apiserver()
            # Before the mirror is back, if it takes its time: nothing of what happens meanwhile is missed.
            assert own_sandbox.request("POST", PATH, policy(f"more-{number}", ANNOTATE)).status == 201
            in_force(server, label=True, annotate=True)
            assert own_sandbox.request("DELETE", f"{PATH}/more-{number}").status == 200
            in_force(server, label=True, annotate=False)
            eventually(lambda: is_followed(server))
            assert server.metric("fieldwarden_cluster_last_contact_timestamp_seconds") > contact
            eventually(lambda: not server.ready()["warnings"])
        assert len(asked(own_sandbox, "list")) == 3, "what a new API server does not remember is 410, and listed again"
        uris = [event["requestURI"] for event in asked(own_sandbox, "watch")]
        assert uris
        assert all("allowWatchBookmarks=true" in uri and "resourceVersion=" in uri for uri in uris)


def test_a_server_may_start_while_the_api_server_is_away(own_sandbox: Sandbox, folder: Path) -> None:
    install(own_sandbox)
    assert own_sandbox.request("POST", PATH, policy()).status == 201
    own_sandbox.stop_apiserver()
    with following(own_sandbox, folder, wait=False) as server:
        eventually(lambda: "Connection refused" in json.dumps(server.ready()["warnings"]))
        assert "policies from the cluster have not been read yet" in server.ready()["reasons"]
        assert server.get("/healthz")[0] == 200
        own_sandbox.start_apiserver()
        eventually(lambda: server.get("/readyz")[0] == 200)
        in_force(server, label=True)


def test_a_mirror_that_is_killed_is_started_again_and_misses_nothing(clean: Sandbox, folder: Path) -> None:
    assert clean.request("POST", PATH, policy("stays")).status == 201
    assert clean.request("POST", PATH, policy("goes", ANNOTATE)).status == 201
    with following(clean, folder) as server:
        in_force(server, label=True, annotate=True)
        killed = mirror_pid(folder)
        os.kill(killed, signal.SIGSTOP)  # it hears of nothing any more
        assert clean.request("DELETE", f"{PATH}/goes").status == 200
        os.kill(killed, signal.SIGKILL)
        in_force(server, label=True, annotate=False)
        eventually(lambda: mirror_pid(folder) != killed)
        assert len(server.lines("the mirror process has ended and is started again")) == 1
        eventually(lambda: not server.ready()["warnings"])
        assert server.get("/readyz")[0] == 200


def test_a_worker_that_is_started_later_knows_the_cluster_s_policies(clean: Sandbox, folder: Path) -> None:
    assert clean.request("POST", PATH, policy()).status == 201
    with following(clean, folder) as server:
        in_force(server, label=True)
        workers, generations = server.workers(), server.generations()
        os.kill(workers[0], signal.SIGKILL)
        eventually(lambda: len({*server.workers()} - {workers[0]}) == 2)
        assert denied(server, "kubectl-label") == {True}
        assert server.generations() == generations


def test_the_mirror_ends_with_its_server_however_that_ends(clean: Sandbox, folder: Path, tmp_path: Path) -> None:
    with following(clean, folder) as server:
        told, killed = mirror_pid(folder), 0
        assert runs(told)
        assert server.stop() == 0
        eventually(lambda: not runs(told))
        assert not list(folder.glob("tmp/fieldwarden-*")), "and nothing of it stays"
    with following(clean, tmp_path / "other") as server:
        killed = mirror_pid(tmp_path / "other")
        server.process.kill()
        server.process.wait()
        eventually(lambda: not runs(killed))


def test_a_kubeconfig_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--policies-from-cluster", "--kubeconfig", str(tmp_path / "none"), "--self-signed", str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, f"{tmp_path}/none: there is no such kubeconfig\n")
