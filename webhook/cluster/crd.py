"""The custom resource FieldPolicy, made from the one schema that editors have too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.cluster.resource import GROUP, PLURAL, VERSION
from webhook.policy import schema

_KEPT = ("description", "enum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_ATOMIC_MAPS = ("LabelSelector", "Subject")
_DEFAULTED = ("mode",)
"""The only default that is stored: one inside a list would make every tool that compares with Git see a difference."""


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition, as `kubectl apply` takes it.

    >>> definition()["metadata"]["name"]
    'fieldpolicies.fieldwarden.dev'
    """
    names = {
        "kind": "FieldPolicy",
        "listKind": "FieldPolicyList",
        "plural": PLURAL,
        "singular": "fieldpolicy",
        "shortNames": ["fwp"],
        "categories": ["fieldwarden"],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": _columns(),
        "schema": {"openAPIV3Schema": _root()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Cluster", "versions": [version]},
    }


def _columns() -> list[dict[str, Any]]:
    ready = '.status.conditions[?(@.type=="Ready")]'
    return [
        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "description": "How far the policy may go."},
        {
            "name": "Effective",
            "type": "string",
            "jsonPath": ".status.mode",
            "description": "What the release makes of it.",
        },
        {"name": "Ready", "type": "string", "jsonPath": f"{ready}.status", "description": "Whether it is in force."},
        {"name": "Reason", "type": "string", "jsonPath": f"{ready}.reason", "priority": 1},
        {"name": "Description", "type": "string", "jsonPath": ".spec.description", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def _root() -> dict[str, Any]:
    """The API server has its own schema of apiVersion, kind and metadata."""
    made = schema()
    named = made["$defs"]
    return {
        "type": "object",
        "description": made["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _Structural(named).of(made["properties"]["spec"]),
            "status": _status(),
        },
    }


class _Structural:
    """JSON Schema to what an API server takes: no references, one type for each value, no forbidden unknown keys.

    Unknown keys are kept, for the linter to refuse, and keys without a value are not dropped: either would leave, in silence,
    a policy that guards nothing.
    """

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named

    def of(self, node: Mapping[str, Any]) -> dict[str, Any]:
        if (reference := node.get("$ref")) is not None:
            name = reference.rpartition("/")[2]
            out = {**self.of(self._named[name]), **_kept(node)}
            return {**out, "x-kubernetes-map-type": "atomic"} if name in _ATOMIC_MAPS else out
        out = _kept(node)
        if "oneOf" in node and "type" not in node:
            return {**out, **self._either(node["oneOf"])}
        if "const" in node:
            out["enum"] = [node["const"]]
        out["type"] = node["type"]
        if node["type"] == "array":
            out |= {"items": self.of(node["items"]), "x-kubernetes-list-type": "atomic"}
        elif node["type"] == "object":
            out |= self._object(node)
        return out

    def _object(self, node: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(free := node.get("additionalProperties"), Mapping):
            return {"additionalProperties": self.of(free)}
        out: dict[str, Any] = {"properties": {}}
        for name, child in node["properties"].items():
            out["properties"][name] = one = self.of(child)
            if name in _DEFAULTED:
                one["default"] = child["default"]
            if name not in node.get("required", ()):
                one["nullable"] = True
        if node.get("additionalProperties") is False:
            out["x-kubernetes-preserve-unknown-fields"] = True
        if required := node.get("required"):
            out["required"] = list(required)
        if "not" in node:  # its rules cannot see what has no one type, such as a list of names and objects
            out["not"] = node["not"]
        if "oneOf" in node:
            out["x-kubernetes-validations"] = [_exactly_one([branch["required"][0] for branch in node["oneOf"]])]
        return out

    def _either(self, branches: list[dict[str, Any]]) -> dict[str, Any]:
        """A text or an object: no one type, so what the text or the object must be like is said of each at once."""
        out: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
        for branch in branches:
            one = self.of(branch)
            if one["type"] == "object":
                out |= {key: one[key] for key in ("properties", "required") if key in one}
            elif "minLength" in one:
                out["minLength"] = one["minLength"]
        return out


def _kept(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: node[key] for key in _KEPT if key in node}


def _exactly_one(names: list[str]) -> dict[str, str]:
    rule = f"[{', '.join(f'has(self.{name})' for name in names)}].exists_one(given, given)"
    return {"rule": rule, "message": f"exactly one of {', '.join(names)}"}


def _status() -> dict[str, Any]:
    text, moment = {"type": "string"}, {"type": "string", "format": "date-time"}
    whole = {"type": "integer", "format": "int64"}
    return {
        "type": "object",
        "description": "What fieldwarden makes of the policy. Written by fieldwarden alone.",
        "properties": {
            "observedGeneration": {**whole, "description": "The generation that all of this is about."},
            "conditions": {
                "type": "array",
                "description": "Ready: whether the policy, as it is now, is in force.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
                    "properties": {
                        "type": text,
                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                        "reason": text,
                        "message": text,
                        "lastTransitionTime": moment,
                        "observedGeneration": whole,
                    },
                },
            },
            "matchedResources": {
                "type": "array",
                "description": "The resources that it is about, as plural.group.",
                "x-kubernetes-list-type": "atomic",
                "items": text,
            },
            "mode": {**text, "description": "As which it acts: its own mode, or the release's where that is softer."},
            "lastLoadTime": {**moment, "description": "When it was last taken into force."},
            "problems": {
                "type": "array",
                "description": "What the linter says about it, by field.",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["severity", "field", "message"],
                    "properties": {
                        "severity": {"type": "string", "enum": ["error", "warning"]},
                        "field": text,
                        "message": text,
                    },
                },
            },
        },
    }
