"""Webhook configurations by URL, and the proof that the API server has taken notice of them."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from webhook.sandbox.client import Object, Reply
from webhook.sandbox.errors import SandboxError
from webhook.sandbox.users import CONTROLLER_MANAGER

Phase = Literal["validate", "mutate"]
PHASES: tuple[Phase, ...] = ("validate", "mutate")
_KINDS: Mapping[Phase, str] = {"validate": "ValidatingWebhookConfiguration", "mutate": "MutatingWebhookConfiguration"}
_NAME = "fieldwarden"
_PROBE = "a-probe.fieldwarden.dev"  # mutating webhooks are called in the order of their configurations' names
_LABEL = "fieldwarden.dev/probe"
_NOWHERE = "https://127.0.0.1:1"  # nothing listens on port 1


@dataclass(frozen=True, slots=True)
class Registration:
    """What to ask the API server for: `rules` as in `webhooks[].rules`; `url` without the path `/validate`, `/mutate`."""

    url: str
    ca_pem: bytes
    rules: Sequence[Object]
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    timeout: int = 10  # seconds, 1 to 30
    reinvocation: Literal["IfNeeded", "Never"] = "IfNeeded"
    match_conditions: Sequence[Object] = ()
    mutate_rules: Sequence[Object] | None = None  # the mutating call's, where they are others than `rules`

    def configuration(self, phase: Phase) -> Object:
        """The webhook configuration of one of the two calls."""
        rules = self.rules if phase == "validate" or self.mutate_rules is None else self.mutate_rules
        webhook: Object = {
            "name": f"{phase}.fieldwarden.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": f"{self.url.rstrip('/')}/{phase}",
                "caBundle": base64.b64encode(self.ca_pem).decode(),
            },
            "rules": list(rules),
            "matchConditions": list(self.match_conditions),
            "matchPolicy": "Equivalent",
            "sideEffects": "NoneOnDryRun",
            "failurePolicy": self.failure_policy,
            "timeoutSeconds": self.timeout,
        }
        if phase == "mutate":
            webhook["reinvocationPolicy"] = self.reinvocation
        return _configuration(phase, _NAME, webhook)


class ApiServer(Protocol):
    """What registering needs of a sandbox."""

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        user: str = "admin",
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Reply: ...


def put(server: ApiServer, phase: Phase, registration: Registration) -> None:
    """Create the configuration of one call, or replace it."""
    _apply(server, phase, registration.configuration(phase))


def remove(server: ApiServer, phase: Phase) -> None:
    """Delete the configuration of one call; fine when there is none."""
    _delete(server, phase, _NAME)


class Probe:
    """Tells when the API server acts on all configurations of a phase that were written before the probe was made.

    The API server takes notice of configurations one after the other and about a second late. The probe is one more of
    them, which refuses a labelled ServiceAccount; once a dry run of that is refused, the earlier ones count too.
    """

    def __init__(self, server: ApiServer, phase: Phase) -> None:
        self._server, self._phase, self._value = server, phase, secrets.token_hex(8)
        self.last = ""

    @contextmanager
    def registered(self) -> Iterator[Probe]:
        webhook: Object = {
            "name": _PROBE,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"{_NOWHERE}/{self._phase}"},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["serviceaccounts"]}
            ],
            "objectSelector": {"matchLabels": {_LABEL: self._value}},
            "sideEffects": "None",
            "failurePolicy": "Fail",
        }
        _apply(self._server, self._phase, _configuration(self._phase, _PROBE, webhook))
        try:
            yield self
        finally:
            _delete(self._server, self._phase, _PROBE)

    def noticed(self) -> bool:
        """Try once. The controller manager's account is one that policies leave alone."""
        account = {"metadata": {"generateName": "probe-", "labels": {_LABEL: self._value}}}
        path, params = "/api/v1/namespaces/default/serviceaccounts", {"dryRun": "All"}
        reply = self._server.request("POST", path, account, CONTROLLER_MANAGER, params=params)
        self.last = str(reply.body.get("message", reply.status))
        return reply.status != 201 and _PROBE in self.last


def _configuration(phase: Phase, name: str, webhook: Object) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": _KINDS[phase],
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


def _path(phase: Phase, name: str) -> str:
    return f"/apis/admissionregistration.k8s.io/v1/{_KINDS[phase].lower()}s/{name}"


def _apply(server: ApiServer, phase: Phase, configuration: Object) -> None:
    path = _path(phase, configuration["metadata"]["name"])
    params = {"fieldManager": "fieldwarden-sandbox", "force": "true"}
    reply = server.request("PATCH", path, configuration, "admin", "application/apply-patch+yaml", params)
    if reply.status not in (200, 201):
        raise SandboxError(f"The API server refused the webhook configuration: {reply.body.get('message')}")


def _delete(server: ApiServer, phase: Phase, name: str) -> None:
    reply = server.request("DELETE", _path(phase, name))
    if reply.status not in (200, 404):
        raise SandboxError(f"The webhook configuration {name} could not be deleted: {reply.body.get('message')}")
