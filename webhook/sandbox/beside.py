"""fieldwarden's own server beside the API server, asked about whatever its policies name."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from webhook.policy import PolicySet, load
from webhook.policy.compiled import ResourceMatcher
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


def serve_beside(sandbox: Sandbox, policies: Path, mode: str) -> str:
    """Start the server with a certificate of its own, wait until it is ready, register it; its URL.

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
    ]
    # Settings meant for another server must not reach this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FIELDWARDEN_")}
    environment["TMPDIR"] = str(folder)  # what a killed server leaves behind goes with the sandbox
    sandbox.processes.start(_NAME, argv, environment, grace=_GRACE)
    sandbox.wait_until(lambda: _is_ready(ports), _NAME)
    url = f"https://{json.loads(ports.read_text())['listen']}"
    rules = rules_of(loaded, sandbox)
    sandbox.register(Registration(url, (certificates / "ca.crt").read_bytes(), rules, mutate_rules=mutated(rules)))
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


def rules_of(policies: PolicySet, sandbox: Sandbox) -> list[Object]:
    """Webhook rules for all that the policies match, subresources with it, each once."""
    matchers = {matcher for policy in policies.policies for matcher in policy.match.resources}
    asked = {
        (group, version, resource) for matcher in matchers for group, version, resource in _asked(matcher, sandbox)
    }
    return [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": ["CREATE", "UPDATE"],
            "resources": [resource, f"{resource}/*"] if resource != "*" else ["*/*"],
        }
        for group, version, resource in sorted(asked)
    ]


def mutated(rules: Iterable[Object]) -> list[Object]:
    """The same without the subresources of which nothing is rewritten: those but /scale.

    >>> mutated([{"resources": ["pods", "pods/*"]}, {"resources": ["*/*"]}])
    [{'resources': ['pods', 'pods/scale']}, {'resources': ['*', '*/scale']}]
    """
    return [
        {**rule, "resources": [parent, f"{parent}/scale"]}
        for rule in rules
        for parent in [rule["resources"][0].removesuffix("/*")]
    ]


def _asked(matcher: ResourceMatcher, sandbox: Sandbox) -> Iterable[tuple[str, str, str]]:
    for group in matcher.groups:
        for resource in matcher.resources:
            yield group, matcher.version or _version(sandbox, group, resource), resource


def _version(sandbox: Sandbox, group: str, resource: str) -> str:
    """The version that patterns speak where the policy names none: the preferred one, if it has the resource, else any."""
    if "*" in (group, resource):
        return "*"
    if group:
        found = sandbox.request("GET", f"/apis/{group}").body
        version = found.get("preferredVersion", {}).get("version", "*")
        served = sandbox.request("GET", f"/apis/{group}/{version}").body.get("resources", ())
    else:
        version = "v1"
        served = sandbox.request("GET", "/api/v1").body.get("resources", ())
    return version if any(item["name"] == resource for item in served) else "*"
