"""fieldwarden's own server beside the API server, asked about whatever its policies name."""

from __future__ import annotations

import http.client
import json
import os
import sys
from pathlib import Path

from webhook.cluster import registration
from webhook.cluster.discovery import Discovery, discover
from webhook.policy import Mode, PolicySet, load
from webhook.sandbox.client import Object
from webhook.sandbox.errors import SandboxError
from webhook.sandbox.registration import Registration
from webhook.sandbox.sandbox import Sandbox

_NAME = "fieldwarden"
_GRACE = 10  # seconds for the server to end its workers
COMMAND = (sys.executable, "-P", "-c", "import sys; from webhook.cli import main; sys.exit(main())")
"""This installation's `fieldwarden`, also where its script is not on PATH."""


class UnusablePolicies(SandboxError):
    """The policies do not load; the text lists all problems."""


def serve_beside(sandbox: Sandbox, policies: Path, mode: str, journal: Path | None = None) -> str:
    """Start the server with a certificate of its own, wait until it is ready, register it; its URL.

    A journal is kept where one is named, and stays.

    It ends with the sandbox. Raises UnusablePolicies, and SandboxError with the server's last words when it does not
    become ready.
    """
    loaded = usable(policies)
    folder = sandbox.folder / "webhook"
    folder.mkdir(mode=0o700)
    ports, certificates = folder / "ports.json", folder / "certificates"
    argv = [
        *COMMAND,
        "serve",
        f"--policies={policies.resolve()}",
        f"--mode={mode}",
        "--listen=127.0.0.1:0",
        "--ops-listen=127.0.0.1:0",
        f"--ports-file={ports}",
        f"--self-signed={certificates}",
        "--drain=0",
        *([f"--journal={journal.resolve()}"] if journal else []),
    ]
    # Settings meant for another server must not reach this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIELDWARDEN_")}
    environment["TMPDIR"] = str(folder)  # what a killed server leaves behind goes with the sandbox
    sandbox.processes.start(_NAME, argv, environment, grace=_GRACE)
    sandbox.wait_until(lambda: _is_ready(ports), _NAME)
    url = f"https://{json.loads(ports.read_text())['listen']}"
    asked, exempt = registration.rules(loaded, discovery(loaded, sandbox), Mode(mode)), registration.conditions(loaded)
    ca = (certificates / "ca.crt").read_bytes()
    wanted = Registration(url, ca, asked.validating, match_conditions=exempt, mutate_rules=asked.mutating)
    sandbox.register(wanted)
    return url


def usable(policies: Path) -> PolicySet:
    """The policies of a file or folder. Raises UnusablePolicies."""
    loaded = load([policies])
    if loaded.policies is None:
        raise UnusablePolicies("\n".join(str(problem) for problem in loaded.problems))
    return loaded.policies


def _is_ready(ports: Path) -> bool:
    """By its own word; the file is there as soon as it listens."""
    try:
        address = json.loads(ports.read_text())["ops"]
        connection = http.client.HTTPConnection(address, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return False


def discovery(policies: PolicySet, sandbox: Sandbox) -> Discovery:
    """What of the policies' resources the sandbox serves."""

    def get(path: str) -> Object | None:
        reply = sandbox.request("GET", path)
        return reply.body if reply.status == 200 else None

    return discover(policies, get)
