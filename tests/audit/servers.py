"""Two API servers that the stories take for one: fieldwarden audits at the first, and the second knows nothing of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlencode

from tests.audit.door import Door
from tests.audit.mirror import WOULD, Mirror, Wish
from tests.stories.server import _SERVE, Server
from webhook.cluster import registration
from webhook.policy import Mode, load
from webhook.sandbox import Completed, Reply, Sandbox
from webhook.sandbox.beside import discovery
from webhook.sandbox.registration import PHASES, Phase, Probe, Registration

Object = dict[str, Any]
_IS_WOULD = f'has(request.userInfo.uid) && request.userInfo.uid == "{WOULD}"'
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
_KINDS = {"validate": "ValidatingWebhookConfiguration", "mutate": "MutatingWebhookConfiguration"}


class Twins:
    """The stories ask this for what they ask a Sandbox for."""

    def __init__(self, audited: Sandbox, bare: Sandbox) -> None:
        self.audited, self.bare = audited, bare
        self.users, self.folder, self.wait_until = audited.users, audited.folder, audited.wait_until
        self.mirror = Mirror(audited, bare)
        self.door = Door(audited, self.mirror)

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Self]:
        with ExitStack() as stack:
            audited, bare = (stack.enter_context(Sandbox.start()) for _ in range(2))
            twins = cls(audited, bare)
            stack.callback(twins.mirror.close)
            stack.callback(twins.door.close)
            yield twins

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.door.kubeconfig(user)

    def environment(self, user: str = "admin") -> dict[str, str]:
        return {**self.audited.environment(user), "KUBECONFIG": str(self.kubeconfig(user))}

    def kubectl(self, *args: str, user: str = "admin", input: str | None = None, check: bool = True) -> Completed:  # noqa: A002
        """For what is only read."""
        return self.audited.kubectl(*args, user=user, input=input, check=check)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        user: str = "admin",
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        user_agent: str = "fieldwarden-sandbox",
    ) -> Reply:
        """Reads what belongs to no namespace from both: the worse answer counts, as nothing is there before it is twice."""
        if method == "GET":
            said = self.audited.request(method, path, body, user, content_type, params, user_agent)
            if "/namespaces/" in path or said.status != 200:
                return said
            other = self.bare.request(method, path, body, user, content_type, params, user_agent)
            return said if other.status == 200 else other
        payload = body if isinstance(body, bytes | None) else _dumped(body)
        headers = {"Accept": "application/json", "User-Agent": user_agent}
        if payload is not None:
            headers["Content-Type"] = content_type
        wish = Wish(method, path, urlencode(params or {}), payload, self.users[user], headers)
        return self.mirror.send(wish).reply()

    def path_of(self, item: Object, subresource: str = "") -> str:
        return self.audited.path_of(item, subresource)

    def apply(
        self, item: Object, manager: str, user: str = "admin", force: bool = False, dry_run: bool = False
    ) -> Reply:
        params = {"fieldManager": manager, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        return self.request("PATCH", self.path_of(item), item, user, "application/apply-patch+yaml", params)

    @contextmanager
    def serving(self, policies: Path, mode: Mode = Mode.AUDIT) -> Iterator[Beside]:
        """fieldwarden with these policies, which the audited server asks once it is registered."""
        beside = Beside(self, Kept(self.audited, policies, mode=mode), Kept(self.audited, policies))
        before = self.mirror.beside
        servers = (beside.audit, beside.would)
        try:
            for server in servers:
                server.start()
            for server in servers:
                server.wait()
            yield beside
        finally:
            self.mirror.beside = before
            for server in servers:
                server.stop()

    def unregister_webhooks(self) -> None:
        self.mirror.beside = None
        for phase in PHASES:
            for name in (_name(Mode.AUDIT), _name(Mode.ENFORCE)):
                assert self.audited.request("DELETE", _path(phase, name)).status in (200, 404)
        self.settle()

    def settle(self) -> None:
        """Until the API server acts on what was registered."""
        for phase in PHASES:
            with Probe(self.audited, phase).registered() as probe:
                self.wait_until(probe.noticed, "kube-apiserver")


@dataclass
class Kept(Server):
    """One server in a mode, with a journal."""

    mode: Mode = Mode.ENFORCE

    @property
    def journal(self) -> Path:
        return self.folder / "journal.db"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._ports.unlink(missing_ok=True)
        argv = [*_SERVE, f"--policies={self.policies}", f"--mode={self.mode.value}", "--workers=1"]
        argv += [f"--listen=127.0.0.1:{self.port}", "--ops-listen=127.0.0.1:0", f"--ports-file={self._ports}"]
        argv += [f"--self-signed={self.folder / 'tls'}", "--drain=0", f"--journal={self.journal}"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FIELDWARDEN_")}
        environment["TMPDIR"] = str(self.folder)
        self.sandbox.processes.start(self.name, argv, environment, grace=10)

    def registrations(self, rules: Sequence[Object] | None, conditions: Sequence[Object]) -> Registration:
        """As the controller writes them, given the mode, and nothing but that."""
        loaded = load([self.policies]).policies
        assert loaded is not None
        asked = registration.rules(loaded, discovery(loaded, self.sandbox), self.mode)
        ca = (self.folder / "tls" / "ca.crt").read_bytes()
        conditions = [*registration.conditions(loaded), *conditions]
        validating, mutating = (rules, rules) if rules is not None else (asked.validating, asked.mutating)
        return Registration(
            f"https://127.0.0.1:{self.port}",
            ca,
            validating,
            timeout=15,
            match_conditions=conditions,
            mutate_rules=mutating,
        )


class Beside:
    """What the stories know of their server, of the one that audits; the other is asked what Enforce would do."""

    def __init__(self, twins: Twins, audit: Kept, would: Kept) -> None:
        self.twins, self.audit, self.would = twins, audit, would
        self.name, self.mark, self.reviews, self.get = audit.name, audit.mark, audit.reviews, audit.get

    @property
    def log(self) -> Path:
        return self.audit.log

    def register(
        self,
        rules: Sequence[Object] | None = None,
        reinvocation: Literal["IfNeeded", "Never"] = "IfNeeded",
        phases: Sequence[Phase] = PHASES,
    ) -> None:
        """The audit is asked about everything but the questions that are for Enforce, which is asked about nothing else."""
        for mode, server, condition in (
            (Mode.AUDIT, self.audit, f"!({_IS_WOULD})"),
            (Mode.ENFORCE, self.would, _IS_WOULD),
        ):
            wanted = server.registrations(rules, [{"name": "which", "expression": condition}])
            for phase in PHASES:
                path = _path(phase, _name(mode))
                if phase not in phases:
                    assert self.twins.audited.request("DELETE", path).status in (200, 404)
                    continue
                item = wanted.configuration(phase)
                item["metadata"]["name"] = _name(mode)
                if phase == "mutate":
                    item["webhooks"][0]["reinvocationPolicy"] = reinvocation
                params = {"fieldManager": "stories", "force": "true"}
                kind = "application/apply-patch+yaml"
                reply = self.twins.audited.request("PATCH", path, item, "admin", kind, params)
                assert reply.status in (200, 201), reply.body
        self.twins.settle()
        self.twins.mirror.beside = self


def _name(mode: Mode) -> str:
    return f"fieldwarden-{mode.value.lower()}"


def _path(phase: Phase, name: str) -> str:
    return f"{_CONFIGURATIONS}/{_KINDS[phase].lower()}s/{name}"


def _dumped(body: object) -> bytes:
    return json.dumps(body).encode()
