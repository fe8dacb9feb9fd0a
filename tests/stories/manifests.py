"""The objects of the stories, as they stand in Git."""

from __future__ import annotations

from tests.stories.support import Object

WIDGETS = "stories.example.com/v1"


def deployment(namespace: str) -> Object:
    container = {"name": "c", "image": "nginx:1", "env": [{"name": "A", "value": "1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace, "labels": {"app": "web", "team": "payments"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [container],
                    "initContainers": [{"name": "one", "image": "one:1"}, {"name": "two", "image": "two:1"}],
                },
            },
        },
    }


def config_map(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": namespace, "labels": {"app": "web"}},
        "data": {"color": "blue", "size": "5"},
    }


def secret(namespace: str, password: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login", "namespace": namespace},
        "data": {"password": password},
    }


def service(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": namespace, "labels": {"team": "payments"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    }


def autoscaler(namespace: str) -> Object:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def cluster_role(name: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"team": "payments"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }


def widget(namespace: str) -> Object:
    return {
        "apiVersion": WIDGETS,
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": namespace, "labels": {"team": "payments"}},
        "spec": {
            "size": 2,
            "colors": ["blue", "red"],
            "parts": [{"id": "a", "weight": 1}, {"id": "b", "weight": 2}],
            "steps": ["cut", "glue"],
            "anything": {"deep": {"er": 1}},
        },
    }


def widget_definition() -> Object:
    """With every kind of list, a subtree without a schema, `/status`, and a `/scale` that is not at .spec.replicas."""
    text, number = {"type": "string"}, {"type": "integer"}
    part = {"type": "object", "required": ["id"], "properties": {"id": text, "weight": number}}
    spec = {
        "size": number,
        "colors": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array",
            "items": part,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
        },
        "steps": {"type": "array", "items": text, "x-kubernetes-list-type": "atomic"},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    status = {"type": "object", "properties": {"size": number}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": spec}, "status": status},
            }
        },
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    group = WIDGETS.partition("/")[0]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
