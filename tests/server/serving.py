"""A real `fieldwarden serve` process on loopback, and a client of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

REVIEWS = Path(__file__).parents[1] / "reviews"

T = TypeVar("T")


PATIENCE = 60.0
"""Seconds after which what was waited for does not come any more, however busy the machine is."""


def eventually(look: Callable[[], T], seconds: float = PATIENCE) -> T:
    """The first true answer; fails the test when there is none in time."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
    return found


def review(name: str = "kubectl-label-overwrite") -> bytes:
    """A captured review."""
    return (REVIEWS / f"{name}.json").read_bytes()


def policy(name: str = "no-labels-by-hand", denied: str = "kubectl-label", mode: str = "Enforce") -> str:
    """A policy that denies what one manager writes."""
    return f"""\
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {{name: {name}}}
spec:
  mode: {mode}
  match: {{resources: [{{groups: ["*"], resources: ["*"]}}]}}
  rules:
  - name: who-writes
    writers: {{deny: [{denied}]}}
"""


BROKEN = "apiVersion: fieldwarden.dev/v1alpha1\nkind: FieldPolicy\nspec: {rules: 7}\n"


@dataclass
class Reply:
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def allowed(self) -> bool:
        return bool(self.body["response"]["allowed"])


@dataclass
class Server:
    """One running server. `listen` and `ops` are (host, port)."""

    process: subprocess.Popen[bytes]
    listen: tuple[str, int]
    ops: tuple[str, int]
    ca: Path
    log_file: Path
    context: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self.context = ssl.create_default_context(cafile=self.ca)

    def connect(self, timeout: float = PATIENCE) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(*self.listen, context=self.context, timeout=timeout)

    def post(self, body: bytes, path: str = "/validate", **headers: str) -> Reply:
        """On a connection of its own."""
        with contextlib.closing(self.connect()) as connection:
            return post(connection, body, path, **headers)

    def get(self, path: str) -> tuple[int, str]:
        """From the plain port."""
        with contextlib.closing(http.client.HTTPConnection(*self.ops, timeout=PATIENCE)) as connection:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    def ready(self) -> dict[str, Any]:
        return json.loads(self.get("/readyz")[1])

    def metric(self, name: str, **labels: str) -> float:
        """The sum over all series that carry these labels."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if (
                found
                and found[1] == name
                and dict(re.findall(r'(\w+)="([^"]*)"', found[2] or "")).items() >= labels.items()
            ):
                total += float(found[3])
        return total

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        whole = self.log_file.read_bytes().split(b"\n")[:-1]  # the last line may be half written
        found = [json.loads(line) for line in whole]
        return [line for line in found if event is None or line["event"] == event]

    def said_by(self, event: str) -> set[int]:
        """Process ids of those who logged it."""
        return {line["pid"] for line in self.lines(event)}

    def workers(self) -> list[int]:
        """Process ids of the workers that serve."""
        return [worker["pid"] for worker in self.ready()["workers"]]

    def generations(self) -> set[str]:
        """What the workers judge by: one digest once all have loaded the same."""
        return {worker["generation"] for worker in self.ready()["workers"]}

    def stop(self, seconds: float = PATIENCE) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


def post(connection: http.client.HTTPSConnection, body: bytes, path: str = "/validate", **headers: str) -> Reply:
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", path, body=body, headers=given)
    reply = connection.getresponse()
    return Reply(reply.status, json.loads(reply.read()), {k.lower(): v for k, v in reply.getheaders()})


@contextlib.contextmanager
def held_port() -> Iterator[int]:
    """A port of 127.0.0.1 at which nobody listens yet: the one who is told may, and the system gives it to nobody else."""
    with socket.socket() as holding:
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holding.bind(("127.0.0.1", 0))
        yield int(holding.getsockname()[1])


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from webhook.cli.serve import serve; serve(prog_name='serve')", *arguments]


@contextlib.contextmanager
def running(
    folder: Path, policies: Path | None, *arguments: str, ca: Path | None = None, wait: bool = True
) -> Iterator[Server]:
    """A server with a certificate of its own, ports that the system chose, quick to stop unless told otherwise."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    ports, log_file = folder / "ports.json", folder / "log.jsonl"
    certificate = () if ca else ("--self-signed", str(folder / "tls"))
    usual = {"--listen": "127.0.0.1:0", "--ops-listen": "127.0.0.1:0", "--drain": "0", "--reload-interval": "1"}
    usual = {name: value for name, value in usual.items() if name not in arguments}
    words = [word for pair in usual.items() for word in pair]
    files = () if policies is None else ("--policies", str(policies))
    with log_file.open("wb") as out, (folder / "errors").open("wb") as err:
        process = subprocess.Popen(
            command(*files, "--ports-file", str(ports), *certificate, *words, *arguments),
            stdout=out,
            stderr=err,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
    try:
        eventually(lambda: ports.exists() or process.poll() is not None)
        assert process.poll() is None, (folder / "errors").read_text()
        where = json.loads(ports.read_text())
        server = Server(
            process, _address(where["listen"]), _address(where["ops"]), ca or folder / "tls" / "ca.crt", log_file
        )
        if wait:
            eventually(lambda: _is_ready(server))
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _is_ready(server: Server) -> bool:
    try:
        return server.get("/readyz")[0] == 200
    except OSError:
        return False
