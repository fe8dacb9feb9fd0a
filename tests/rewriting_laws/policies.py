"""Random policies that ask for rewriting, for random kinds and users."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from tests.histories.shapes import Kind
from webhook.policy import PolicySet
from webhook.policy.load import load_text

Document = dict[str, Any]

ON_CHANGE = ("Restore", "Reassign")
ON_SHARE = ("Release",)
ON_GHOST = ("Prune",)
ON_TAMPER = ("Restore claims",)
RENAME = ("Rename",)
ACTIONS = (*ON_CHANGE, *ON_SHARE, *ON_GHOST, *ON_TAMPER, *RENAME)
"""What policies may want rewritten: the actions, tampering's Restore under a name of its own."""

METADATA = (
    ".metadata.labels",
    ".metadata.labels.team",
    '.metadata.labels["example.com/*"]',
    ".metadata.annotations",
    ".metadata.finalizers",
    '.metadata.finalizers[="example.com/keep"]',
    ".metadata",
    ".*",
)
FIELDS = {
    "Deployment": (
        ".spec",
        ".spec.replicas",
        ".spec.strategy",
        ".spec.template",
        ".spec.template.spec.containers",
        ".spec.template.spec.containers[*].image",
        '.spec.template.spec.containers[name="app"].env',
        '.spec.template.spec.containers[name="app"].env[*].value',
        '.spec.template.spec.containers[name="side"]',
        ".spec.template.spec.containers[*].ports[*].name",
        ".spec.template.spec.containers[*].resources",
        ".spec.template.spec.initContainers",
        ".spec.template.spec.nodeSelector",
        ".spec.template.spec.nodeSelector.disk",
        ".spec.template.spec.volumes",
        ".spec.template.spec.imagePullSecrets",
        ".spec.template.metadata.labels",
    ),
    "ConfigMap": (".data", ".data.a", '.data["a.b"]', ".binaryData"),
    "Secret": (".data", ".data.a", ".data.b"),
    "Service": (
        ".spec",
        ".spec.ports",
        '.spec.ports[port=80,protocol="TCP"].name',
        ".spec.ports[*].targetPort",
        ".spec.selector",
        ".spec.externalIPs",
        ".spec.sessionAffinity",
    ),
    "HorizontalPodAutoscaler": (".spec", ".spec.minReplicas", ".spec.metrics", ".spec.behavior"),
    "Widget": (
        ".spec",
        ".spec.mode",
        ".spec.replicas",
        ".spec.flags",
        ".spec.parts",
        ".spec.tags",
        '.spec.tags[="x"]',
        ".spec.numbers",
        ".spec.rules",
        '.spec.rules[name="r1"]',
        ".spec.rules[*].action",
        ".spec.rules[*].nested[*].v",
        ".spec.settings",
        ".spec.block",
        ".spec.block.a",
        ".spec.free",
        ".spec.free.x",
        ".spec.maybe",
    ),
}
BROAD = (".*", ".*", ".*", ".spec", ".metadata")
OWNERS = ("flux", "flux", "flux", "flux", "flux", "flux", "f*", "argocd", "kubectl", "helm")
ACCOUNTS = {
    "flux": {"serviceAccount": "flux-system/kustomize-controller"},
    "argocd": {"serviceAccount": "argocd/*"},
    "helm": {"user": "helm-ci@example.com"},
}
WRITERS = ("kubectl-patch", "node-fetch", "m1*", "helm")
EVERYBODY = {"group": "system:authenticated"}
SOMEBODY = (*[EVERYBODY] * 5, {"user": "developer@example.com"}, {"user": "admin"})


def policy(rng: Random, name: str, kind: Kind, actions: Collection[str], namespace: str = "*") -> Document:
    """One document that wants at least one of some actions, in Enforce mostly."""
    rules = [_rule(rng, kind, rng.choice(sorted(actions))) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.3:
        rules.append(_plain_rule(rng, kind))
    rng.shuffle(rules)
    named = [{"name": f"r{number}", **rule} for number, rule in enumerate(rules)]
    group = (kind.seen_as or kind.versions[0]).rpartition("/")[0]
    spec = {
        "mode": "Enforce" if rng.random() < 0.9 else rng.choice(("Audit", "Warn")),
        "match": {"resources": [{"groups": [group], "resources": [kind.plural]}], "namespaces": [namespace]},
        "exempt": {"subjects": [{"group": "platform-admins"}]},
        "rules": named,
    }
    return {"apiVersion": "fieldwarden.dev/v1alpha1", "kind": "FieldPolicy", "metadata": {"name": name}, "spec": spec}


def _rule(rng: Random, kind: Kind, action: str) -> Document:
    if action in RENAME:
        return {"rename": {"from": rng.choice((["kubectl-*"], ["*-fetch", "kubectl-edit"], ["m*"])), "to": "people"}}
    if action in ON_TAMPER:
        allow = {"allow": [rng.choice(SOMEBODY[-2:])]} if rng.random() < 0.2 else {}
        return {"integrity": {**allow, "onTamper": "Restore"}}
    rule = _ownership(rng, kind)
    if action == "Reassign":
        rule["guard"] = "Claimed"  # only what a claim lost returns to it
    key = "onChange" if action in ON_CHANGE else "onShare" if action in ON_SHARE else "onGhost"
    rule[key] = action
    if key != "onShare" and rng.random() < 0.2:
        rule["onShare"] = "Deny"
    elif key == "onGhost" and rng.random() < 0.2:
        rule["onChange"] = "Deny"
    if action != "Reassign" and rng.random() < 0.8:
        return {"ownership": rule}
    return {"for": {"subjects": [rng.choice(SOMEBODY)]}, "ownership": rule}


def _plain_rule(rng: Random, kind: Kind) -> Document:
    """A rule that refuses, or only records."""
    if rng.random() < 0.3:
        return {"writers": {"deny": [rng.choice(WRITERS)]}}
    if rng.random() < 0.3:
        return {"integrity": {"onTamper": "Deny"}}
    return {"ownership": {**_ownership(rng, kind), **rng.choice(({}, {"onChange": "Deny"}, {"onShare": "Deny"}))}}


def _ownership(rng: Random, kind: Kind) -> Document:
    patterns = (*METADATA, *FIELDS[kind.name])
    rule: Document = {
        "fields": [rng.choice(BROAD)] if rng.random() < 0.6 else rng.sample(patterns, rng.choice((1, 2, 4, 6))),
        "owners": [_owner(rng) for _ in range(rng.choice((1, 1, 2)))],
        "guard": rng.choice(("Claimed", "Claimed", "Matching")),
    }
    if rng.random() < 0.25:
        rule["except"] = rng.sample(patterns[:-1], 1)
    if rng.random() < 0.3:
        rule["leftovers"] = rng.choice((["kubectl-edit", "before-first-apply"], ["*"], ["argocd", "helm", "kubectl-*"]))
    return rule


def _owner(rng: Random) -> Document:
    owner: Document = {"manager": rng.choice(OWNERS)}
    if rng.random() < 0.8:
        owner["operation"] = "Apply"
    if owner["manager"] in ACCOUNTS and rng.random() < 0.6:
        owner["subjects"] = [ACCOUNTS[owner["manager"]]]
    return owner


def loads(documents: Sequence[Document]) -> PolicySet | None:
    """The policies, or None where they contradict one another."""
    return _loaded("\n---\n".join(json.dumps(document) for document in documents))


@lru_cache(maxsize=512)
def _loaded(text: str) -> PolicySet | None:
    return load_text(text, "policies.yaml").policies
