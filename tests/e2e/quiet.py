"""Namespaces in which controllers keep quiet: what the stories write stays as they wrote it, and no pod is made of it.

A sandbox has no controllers. On a cluster the API server itself refuses what they write there, long before they get a pod.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

QUIET = {"e2e.fieldwarden.dev/controllers": "quiet"}
_NAME = "quiet.e2e.fieldwarden.dev"
_CONTROLLERS = [
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:deployment-controller",
    "system:serviceaccount:kube-system:replicaset-controller",
    "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
]
_WRITES = [
    ("apps", "replicasets", "CREATE"),
    ("apps", "deployments/status", "UPDATE"),
    ("autoscaling", "horizontalpodautoscalers/status", "UPDATE"),
]


def quiet_policy() -> list[Object]:
    """A ValidatingAdmissionPolicy and its binding."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [resource]}
        for group, resource, operation in _WRITES
    ]
    names = ", ".join(f"'{name}'" for name in _CONTROLLERS)
    refused = {"expression": f"!(request.userInfo.username in [{names}])", "message": "controllers keep quiet here"}
    place = {"namespaceSelector": {"matchLabels": QUIET}}
    api = "admissionregistration.k8s.io/v1"
    return [
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": _NAME},
            "spec": {
                "failurePolicy": "Ignore",
                "matchConstraints": {**place, "resourceRules": rules},
                "validations": [refused],
            },
        },
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": _NAME},
            "spec": {"policyName": _NAME, "validationActions": ["Deny"], "matchResources": place},
        },
    ]
