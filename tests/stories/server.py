"""fieldwarden's server beside the sandbox's API server, and what it logs."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from webhook.cluster import registration
from webhook.policy import load
from webhook.sandbox import Registration, Sandbox
from webhook.sandbox.beside import discovery
from webhook.sandbox.registration import PHASES, Phase

_numbers = itertools.count(1)
_SERVE = (sys.executable, "-P", "-c", "from webhook.cli.serve import serve; serve(prog_name='fieldwarden serve')")


def hold() -> socket.socket:
    """At a free port of 127.0.0.1; it does not listen, so that a server may."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


@dataclass
class Server:
    """One `fieldwarden serve` at a fixed address, so that it can be started again where the API server looks for it."""

    sandbox: Sandbox
    policies: Path
    name: str = field(default_factory=lambda: f"fieldwarden-{next(_numbers)}")
    held: socket.socket = field(default_factory=hold)

    @property
    def port(self) -> int:
        """Its own also while it is stopped: the system gives it to nobody else."""
        return int(self.held.getsockname()[1])

    @property
    def folder(self) -> Path:
        return self.sandbox.folder / f"{self.name}.d"

    @property
    def log(self) -> Path:
        return self.sandbox.folder / f"{self.name}.log"

    def start(self) -> None:
        """Returns at once; see `wait`."""
        self.folder.mkdir(exist_ok=True)
        self._ports.unlink(missing_ok=True)
        argv = [*_SERVE, f"--policies={self.policies}", "--mode=Enforce", "--workers=2"]
        argv += [f"--listen=127.0.0.1:{self.port}", "--ops-listen=127.0.0.1:0", f"--ports-file={self._ports}"]
        argv += [f"--self-signed={self.folder / 'tls'}", "--drain=0"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FIELDWARDEN_")}
        environment["TMPDIR"] = str(self.folder)
        self.sandbox.processes.start(self.name, argv, environment, grace=10)

    def wait(self) -> None:
        """Until it is ready by its own word."""
        self.sandbox.wait_until(self._ready, self.name)

    def stop(self) -> None:
        self.sandbox.processes.stop(self.name)

    def register(
        self,
        rules: Sequence[dict[str, Any]] | None = None,
        conditions: Sequence[dict[str, Any]] = (),
        reinvocation: Literal["IfNeeded", "Never"] = "IfNeeded",
        phases: Sequence[Phase] = PHASES,
    ) -> None:
        """Have the API server ask it, about what its policies name if no rules are given. Fails closed."""
        if rules is None:
            loaded = load([self.policies])
            assert loaded.policies is not None, loaded.problems
            rules = registration.rules(loaded.policies, discovery(loaded.policies, self.sandbox)).validating
        ca = (self.folder / "tls" / "ca.crt").read_bytes()
        url = f"https://127.0.0.1:{self.port}"
        wanted = Registration(url, ca, rules, timeout=15, reinvocation=reinvocation, match_conditions=conditions)
        self.sandbox.register(wanted, phases)

    def mark(self) -> int:
        """Where the log ends now."""
        return self.log.stat().st_size

    def reviews(self, since: int = 0) -> list[dict[str, Any]]:
        """A line for each review that was answered since a mark. Nothing worse than a doubt may stand in the log."""
        with self.log.open("rb") as log:
            log.seek(since)
            text = log.read().split(b"\n")[:-1]  # what is still being written is no answer yet
        told = [line for line in text if not line.startswith(b"{")]  # standard error: doubts about policies
        assert not [line for line in told if b" warning: " not in line], told
        lines = [json.loads(line) for line in text if line.startswith(b"{")]
        assert not [line for line in lines if line["level"] in ("error", "critical")]
        return [line for line in lines if line["event"] == "review" and "uid" in line]

    @property
    def _ports(self) -> Path:
        return self.folder / "ports.json"

    def get(self, path: str) -> tuple[int, str]:
        """From the plain port."""
        connection = http.client.HTTPConnection(json.loads(self._ports.read_text())["ops"], timeout=60)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def _ready(self) -> bool:
        try:
            return self.get("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False


@contextmanager
def serving(sandbox: Sandbox, policies: Path) -> Iterator[Server]:
    """A server that is ready; who registers it says what it is asked about. On a cluster it is pods, and registered."""
    if elsewhere := getattr(sandbox, "serving", None):
        with elsewhere(policies) as pods:
            yield pods
        return
    server = Server(sandbox, policies)
    server.start()
    try:
        server.wait()
        yield server
    finally:
        server.stop()
