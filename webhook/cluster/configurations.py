"""The release's webhook configurations: what stands in them, and our part of it.

The chart makes them with service, selectors and failure policy, without rules. Rules, conditions and the authority's bundle
are ours, by server-side apply under one manager: nothing is intercepted before we say so.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from webhook.cluster.api import MANAGER, Api, Object, decoded, version_of
from webhook.cluster.errors import Missing
from webhook.cluster.registration import CONDITIONS
from webhook.cluster.resource import GROUP, PLURAL

_API = "admissionregistration.k8s.io/v1"

VALIDATE, MUTATE, POLICIES = "validate.fieldwarden.dev", "mutate.fieldwarden.dev", "policies.fieldwarden.dev"

POLICY_RULES: list[Object] = [
    {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [PLURAL]}
]
"""What the webhook that looks at policies themselves is asked about."""


@dataclass(frozen=True, slots=True)
class Target:
    """One webhook configuration, and the webhook in it."""

    kind: str
    name: str
    webhook: str

    @property
    def path(self) -> str:
        return f"/apis/{_API}/{self.kind.lower()}s/{self.name}"

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def targets(name: str, *, policies: bool) -> tuple[Target, ...]:
    """Those of a release; `policies`: with the one that looks at FieldPolicies."""
    found = [
        Target("ValidatingWebhookConfiguration", name, VALIDATE),
        Target("MutatingWebhookConfiguration", name, MUTATE),
    ]
    if policies:
        found.append(Target("ValidatingWebhookConfiguration", f"{name}-policies", POLICIES))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Ours:
    """What we say of one webhook."""

    bundle: bytes  # PEM
    rules: tuple[Object, ...] = ()
    conditions: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """A configuration as it was read."""

    target: Target
    version: str
    since: dt.datetime  # when our part of it was last changed
    ours: Ours
    strange: tuple[str, ...] = ()  # what somebody has added, in words


def read(api: Api, target: Target) -> Standing | None:
    """None where there is none, or none with our webhook: somebody switched it off. Raises ApiError."""
    try:
        item = api.get(target.path)
    except Missing:
        return None
    webhook = next((one for one in item.get("webhooks") or () if one.get("name") == target.webhook), None)
    if webhook is None:
        return None
    ours = Ours(
        decoded((webhook.get("clientConfig") or {}).get("caBundle")),
        tuple(_plain(rule) for rule in webhook.get("rules") or ()),
        tuple(webhook.get("matchConditions") or ()),
    )
    return Standing(target, version_of(item), _since(item), ours, tuple(_strange(item, webhook)))


def _strange(item: Object, webhook: Object) -> Iterator[str]:
    """What is neither the chart's nor ours, and decides over what is judged. It is left as it is."""
    for other in item["webhooks"]:
        if other is not webhook:
            yield f"it also holds the webhook {other.get('name')}, which is not ours"
    if (webhook.get("clientConfig") or {}).get("url"):
        yield "it calls an address of somebody's instead of the Service"
    for condition in webhook.get("matchConditions") or ():
        if condition.get("name") not in CONDITIONS:
            yield f"it has the condition {condition.get('name')}, which is not ours: what that leaves out is not judged"


def apply(api: Api, standing: Standing, ours: Ours) -> Standing:
    """Make it say this, if it is still as it was read. Raises Conflict, and any other ApiError."""
    target = standing.target
    webhook: Object = {"name": target.webhook, "clientConfig": {"caBundle": base64.b64encode(ours.bundle).decode()}}
    if ours.rules:
        webhook["rules"] = [{**rule, "scope": rule.get("scope", "*")} for rule in ours.rules]
    if ours.conditions:
        webhook["matchConditions"] = list(ours.conditions)
    stored = api.apply(
        target.path,
        {
            "apiVersion": _API,
            "kind": target.kind,
            "metadata": {"name": target.name, "resourceVersion": standing.version},
            "webhooks": [webhook],
        },
    )
    return replace(standing, version=version_of(stored), since=_since(stored), ours=ours)


def _plain(rule: Mapping[str, Any]) -> Object:
    """Without what the API server fills in."""
    return {key: value for key, value in rule.items() if (key, value) != ("scope", "*")}


def _since(item: Object) -> dt.datetime:
    """By our claim; where there is none yet, by the object's birth."""
    metadata = item["metadata"]
    times = [
        claim["time"]
        for claim in metadata.get("managedFields") or ()
        if (claim.get("manager"), claim.get("operation")) == (MANAGER, "Apply") and claim.get("time")
    ]
    return dt.datetime.fromisoformat(times[0] if times else metadata["creationTimestamp"])
