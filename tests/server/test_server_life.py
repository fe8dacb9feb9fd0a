"""Start, stop, and what a server says when it cannot start."""

from __future__ import annotations

import contextlib
import datetime as dt
import http.client
import json
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import BROKEN, PATIENCE, Server, command, eventually, held_port, policy, post, review, running


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), check=False, capture_output=True, text=True, timeout=PATIENCE)


class Hammer(threading.Thread):
    """Calls on kept-alive connections, from before the port opens until told to end."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        super().__init__(daemon=True)
        self.address, self.context = address, context
        self.answers: list[bool] = []
        self.failures: list[Exception] = []
        self.end = threading.Event()

    def run(self) -> None:
        while not self.end.is_set():
            connection = http.client.HTTPSConnection(*self.address, context=self.context, timeout=PATIENCE)
            with contextlib.closing(connection):
                try:
                    connection.connect()
                except ConnectionRefusedError as error:
                    if self.answers:
                        self.failures.append(error)
                        return
                    continue
                except Exception as error:
                    self.failures.append(error)
                    return
                self.call(connection)

    def call(self, connection: http.client.HTTPSConnection) -> None:
        while not self.end.is_set():
            try:
                reply = post(connection, review())
            except Exception as error:
                self.failures.append(error)
                self.end.set()
                return
            self.answers.append(reply.allowed)
            if reply.headers.get("connection") == "close":
                return


@contextlib.contextmanager
def hammering(address: tuple[str, int], context: ssl.SSLContext, count: int = 4) -> Iterator[list[Hammer]]:
    hammers = [Hammer(address, context) for _ in range(count)]
    for hammer in hammers:
        hammer.start()
    try:
        yield hammers
    finally:
        for hammer in hammers:
            hammer.end.set()
        for hammer in hammers:
            hammer.join(30)


def test_the_first_answer_is_a_right_one(tmp_path: Path, policies: Path) -> None:
    """With 300 policies to load and clients that knock from before the port opens."""
    for number in range(300):
        (policies / f"other-{number}.yaml").write_text(policy(f"other-{number}", f"nobody-{number}"))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        held_port() as port,
        hammering(("127.0.0.1", port), context) as hammers,
        running(tmp_path / "s", policies, "--listen", f"127.0.0.1:{port}", wait=False),
    ):
        eventually(lambda: all(len(hammer.answers) >= 20 for hammer in hammers))
        for hammer in hammers:
            hammer.end.set()
            hammer.join(30)
    assert not [hammer.failures for hammer in hammers if hammer.failures]
    assert not any(allowed for hammer in hammers for allowed in hammer.answers), "a forbidden write was allowed"


def test_sigterm_under_load_cuts_and_refuses_no_call(tmp_path: Path, policies: Path) -> None:
    """Clients learn from readiness, as endpoints do, and go; until then every call is answered.

    The drain lasts as long as the clients need here; what ends it early is a second signal.
    """
    with running(tmp_path / "s", policies, "--drain", "600") as server:
        idle = server.connect()
        assert post(idle, review()).status == 200
        with hammering(server.listen, server.context) as hammers:
            eventually(lambda: all(len(hammer.answers) >= 20 for hammer in hammers))
            server.process.send_signal(signal.SIGTERM)
            eventually(lambda: server.get("/readyz")[0] == 503)
            assert "draining" in server.get("/readyz")[1]
            seen = [len(hammer.answers) for hammer in hammers]
            eventually(lambda: all(len(h.answers) >= s + 20 for h, s in zip(hammers, seen, strict=True)))
            late = post(idle, review())
            assert (late.status, late.headers["connection"]) == (200, "close"), "a kept connection is still answered"
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE) == 0
        assert not [hammer.failures for hammer in hammers if hammer.failures]
        assert server.lines("draining")
        assert server.lines("stopped")[0]["exit_code"] == 0


def test_a_drain_lasts_as_long_as_told_and_ends_by_itself(tmp_path: Path, policies: Path) -> None:
    with running(tmp_path / "s", policies, "--workers", "1", "--drain", "1") as server:
        assert server.stop() == 0
        (began,), (ended,) = server.lines("draining"), server.lines("stopped")
    assert dt.datetime.fromisoformat(ended["time"]) - dt.datetime.fromisoformat(began["time"]) >= dt.timedelta(
        seconds=1
    )


def refuses(address: tuple[str, int]) -> bool:
    """Whether the port is closed."""
    try:
        socket.create_connection(address, timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_call_under_way_at_the_end_of_the_drain_is_answered(tmp_path: Path, policies: Path) -> None:
    with (
        running(tmp_path / "s", policies, "--workers", "1") as server,
        contextlib.closing(server.connect()) as connection,
    ):
        body = review()
        connection.putrequest("POST", "/validate")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:100])
        eventually(lambda: server.ready()["ready"])
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: server.lines("draining"))
        eventually(lambda: refuses(server.listen))
        connection.send(body[100:])
        reply = connection.getresponse()
        assert (reply.status, json.loads(reply.read())["response"]["allowed"]) == (200, False)
        assert server.process.wait(PATIENCE) == 0


def test_nothing_is_left_behind(tmp_path: Path, policies: Path) -> None:
    temporary = tmp_path / "s" / "tmp"
    with running(tmp_path / "s", policies, "--workers", "1") as server:
        assert list(temporary.iterdir())
        workers = server.workers()
        assert server.stop() == 0
        assert not list(temporary.iterdir())
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_a_first_process_that_is_killed_leaves_no_other_running(tmp_path: Path, policies: Path) -> None:
    with running(tmp_path / "s", policies) as server:
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        assert len(children) == 3
        server.process.kill()
        server.process.wait(10)
        eventually(lambda: not [pid for pid in children if Path(f"/proc/{pid}").exists()])


def test_policies_that_do_not_load_end_the_start_with_all_problems_and_4(tmp_path: Path, policies: Path) -> None:
    (policies / "broken-1.yaml").write_text(BROKEN)
    (policies / "broken-2.yaml").write_text(BROKEN)
    ended = run("--policies", str(policies), "--self-signed", str(tmp_path / "tls"), "--listen", "127.0.0.1:0")
    assert ended.returncode == 4
    assert "broken-1.yaml" in ended.stderr
    assert "broken-2.yaml" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_folder_that_is_not_there_is_4(tmp_path: Path) -> None:
    ended = run("--policies", str(tmp_path / "none"), "--self-signed", str(tmp_path / "tls"))
    assert ended.returncode == 4
    assert "none" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_empty_folder_serves_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    with running(tmp_path / "s", tmp_path / "policies", "--workers", "1") as server:
        assert server.post(review()).allowed
        (warning,) = server.ready()["warnings"]
        assert "no policy is here" in warning
    assert "no policy is here" in (tmp_path / "s" / "errors").read_text()


@pytest.mark.parametrize(
    "arguments, told",
    [
        ((), "--self-signed"),
        (("--tls-cert", "x"), "--tls-key"),
        (("--self-signed", "x", "--tls-cert", "y"), "leave out --tls-cert"),
        (("--tls-cert", "missing.crt", "--tls-key", "missing.key"), "missing.crt: No such file"),
        (("--self-signed", "/dev/null/x"), "Not a directory"),
        (("--self-signed", "{tmp}/tls", "--listen", "8443"), "HOST:PORT"),
        (("--self-signed", "{tmp}/tls", "--listen", "127.0.0.1:99999"), "from 0 to 65535"),
        (("--self-signed", "{tmp}/tls", "--client-ca", "missing.crt"), "missing.crt: No such file"),
        (("--self-signed", "{tmp}/tls", "--san", "not a name"), "neither a DNS name"),
    ],
)
def test_a_start_that_cannot_be_ends_with_2_and_one_clear_sentence(
    tmp_path: Path, policies: Path, arguments: tuple[str, ...], told: str
) -> None:
    ended = run("--policies", str(policies), *(word.replace("{tmp}", str(tmp_path)) for word in arguments))
    assert ended.returncode == 2, ended
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_that_is_taken_is_2(tmp_path: Path, policies: Path, server: Server) -> None:
    taken = "{}:{}".format(*server.listen)
    ended = run("--policies", str(policies), "--self-signed", str(tmp_path / "tls"), "--listen", taken)
    assert ended.returncode == 2
    assert f"cannot listen on {taken}" in ended.stderr


def test_every_flag_is_an_environment_variable(tmp_path: Path, policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIELDWARDEN_MODE", "Audit")
    monkeypatch.setenv("FIELDWARDEN_WORKERS", "1")
    monkeypatch.setenv("FIELDWARDEN_LISTEN", "nonsense")  # the flag wins
    with running(tmp_path / "s", policies) as server:
        assert len(server.workers()) == 1
        assert server.post(review()).allowed, "the cap makes the denial a record"
        assert server.stop() == 0
