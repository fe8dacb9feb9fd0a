"""Policy sets from a line each, and what an API server makes of webhook rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from webhook.cluster.discovery import Discovery
from webhook.policy import PolicySet, load_text

Object = dict[str, Any]

LABELS = {"fields": [".metadata.labels"], "owners": [{"manager": "flux", "subjects": [{"user": "flux"}]}]}
REPLICAS = {"fields": [".spec.replicas"], "owners": [{"manager": "hpa", "subjects": [{"user": "hpa"}]}]}
CLAIMED_LABELS = {"name": "labels", "ownership": {**LABELS, "onChange": "Deny"}}
RESTORED_LABELS = {"name": "restored", "ownership": {**LABELS, "onChange": "Restore"}}
CLAIMED_REPLICAS = {"name": "claimed", "ownership": {**REPLICAS, "onChange": "Deny"}}
MATCHING_REPLICAS = {"name": "matching", "ownership": {**REPLICAS, "guard": "Matching", "onChange": "Deny"}}
RESTORED_REPLICAS = {"name": "scaled", "ownership": {**REPLICAS, "guard": "Matching", "onChange": "Restore"}}
WRITERS = {"name": "writers", "writers": {"deny": ["kubectl-*"]}}
RENAME = {"name": "rename", "rename": {"from": ["kubectl-*"], "to": "people"}}
HEALED = {"name": "healed", "integrity": {"onTamper": "Restore"}}

SERVED = Discovery(
    {
        ("apps", "deployments"): ("v1",),
        ("apps", "statefulsets"): ("v1",),
        ("", "configmaps"): ("v1",),
        ("autoscaling", "horizontalpodautoscalers"): ("v2", "v1"),
    }
)


def policy(
    name: str = "a-policy",
    rules: Iterable[Object] = (WRITERS,),
    on: Iterable[tuple[str, str] | tuple[str, str, str]] = (("apps", "deployments"),),
    mode: str = "Enforce",
    **spec: Any,
) -> Object:
    """`on`: groups and resources, a version as the third."""
    resources = [
        {"groups": [place[0]], "resources": [place[1]], **({"version": place[2]} if len(place) == 3 else {})}
        for place in on
    ]
    match = {"resources": resources, **spec.pop("match", {})}
    return {
        "apiVersion": "fieldwarden.dev/v1alpha1",
        "kind": "FieldPolicy",
        "metadata": {"name": name},
        "spec": {"mode": mode, "match": match, "rules": list(rules), **spec},
    }


def policies(*items: Object) -> PolicySet:
    loaded = load_text("\n---\n".join(map(json.dumps, items)), "policies.yaml")
    assert loaded.policies is not None, loaded.problems
    return loaded.policies


def rule(group: str, version: str, operations: str, *resources: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": operations.split(),
        "resources": list(resources),
    }


def asks(rules: Iterable[Mapping[str, Any]], operation: str, group: str, version: str, resource: str) -> bool:
    """Whether an API server that holds to the rules calls; `resource` may name a subresource."""
    return any(
        operation in rule["operations"]
        and {group, "*"} & set(rule["apiGroups"])
        and {version, "*"} & set(rule["apiVersions"])
        and any(_means(text, resource) for text in rule["resources"])
        for rule in rules
    )


def _means(text: str, resource: str) -> bool:
    (wanted, _, below), (name, _, subresource) = text.partition("/"), resource.partition("/")
    return wanted in ("*", name) and below in ("*", subresource)
