"""The kinds in play: built-in ones with every sort of list and map, and a custom resource with the rest."""

from __future__ import annotations

from tests.histories.shapes import Facet, Kind, Member, Object, Place, key

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

METADATA = (
    Facet(("metadata", "labels", "team"), ("red", "blue")),
    Facet(("metadata", "labels", "example.com/part.of"), ("a", "b")),
    Facet(("metadata", "labels", "tier"), ("", "web")),
    Facet(("metadata", "annotations", "note"), ("grüße 🚀", 'quo"te', "plain")),
    Facet(("metadata", "annotations", "example.com/x.y"), ("1", "2")),
    Facet(("metadata", "finalizers", Member("example.com/keep"))),
    Facet(("metadata", "finalizers", Member("example.com/hold"))),
)
METADATA_KEYED = {("metadata", "ownerReferences"): ("uid",)}
METADATA_SETS = frozenset({("metadata", "finalizers")})

POD: Place = ("spec", "template", "spec")
APP: Place = (*POD, "containers", key(name="app"))


def deployment() -> Object:
    return {
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]},
            },
        }
    }


DEPLOYMENT = Kind(
    name="Deployment",
    versions=("apps/v1",),
    plural="deployments",
    base=deployment,
    facets=(
        *METADATA,
        Facet(("spec", "replicas"), (1, 2, 3, 5)),
        Facet(("spec", "paused"), (True, False)),
        Facet(("spec", "minReadySeconds"), (0, 5)),
        Facet(("spec", "strategy", "type"), ("RollingUpdate",)),
        Facet(("spec", "strategy", "rollingUpdate", "maxSurge"), (1, "25%")),
        Facet(("spec", "template", "metadata", "labels", "color"), ("green", "grey")),
        Facet(("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), ("t1", "t2")),
        Facet((*APP, "image"), ("example.com/app:1", "example.com/app:2", "example.com/app:3")),
        Facet((*APP, "args"), (["a"], ["a", "b"], [])),
        Facet((*APP, "env", key(name="A"), "value"), ("1", "2")),
        Facet((*APP, "env", key(name="B.b"), "value"), ("x", "")),
        Facet((*APP, "ports", key(containerPort=80, protocol="TCP"), "name"), ("web", "http")),
        Facet((*APP, "ports", key(containerPort=80, protocol="UDP"), "name"), ("udp",)),
        Facet((*APP, "resources", "limits", "cpu"), ("1", "1000m", "500m")),
        Facet((*POD, "containers", key(name="side"), "image"), ("example.com/side:1", "example.com/side:2")),
        Facet((*POD, "initContainers", key(name="one"), "image"), ("example.com/init:1", "example.com/init:2")),
        Facet((*POD, "initContainers", key(name="two"), "image"), ("example.com/init:1",)),
        Facet((*POD, "nodeSelector", "disk"), ("ssd", "hdd")),
        Facet((*POD, "nodeSelector", "zone"), ("a", "b")),
        Facet((*POD, "volumes", key(name="scratch"), "emptyDir"), ({},)),
        Facet((*POD, "volumes", key(name="scratch"), "emptyDir", "medium"), ("Memory", "")),
        Facet((*POD, "tolerations"), ([{"key": "k", "operator": "Exists"}], [])),
        Facet((*POD, "imagePullSecrets", key(name="pull"))),
        Facet((*POD, "securityContext", "runAsNonRoot"), (True, False)),
    ),
    keyed={
        **METADATA_KEYED,
        ("spec", "template", "spec", "containers"): ("name",),
        ("spec", "template", "spec", "initContainers"): ("name",),
        ("spec", "template", "spec", "volumes"): ("name",),
        ("spec", "template", "spec", "imagePullSecrets"): ("name",),
        ("spec", "template", "spec", "containers", "env"): ("name",),
        ("spec", "template", "spec", "containers", "ports"): ("containerPort", "protocol"),
        ("status", "conditions"): ("type",),
    },
    sets=METADATA_SETS,
    atomic_maps=frozenset({("spec", "template", "spec", "nodeSelector")}),
    atomic_items=frozenset({("spec", "template", "spec", "imagePullSecrets")}),
    status=(
        Facet(("status", "observedGeneration"), (1, 2)),
        Facet(("status", "replicas"), (1, 2)),
        Facet(("status", "conditions", key(type="Available"), "status"), ("True", "False")),
        Facet(("metadata", "labels", "team"), ("red", "blue")),
        Facet(("metadata", "annotations", "note"), ("s", "plain")),
        Facet(("metadata", "finalizers", Member("example.com/keep"))),
    ),
    has_scale=True,
)

CONFIGMAP = Kind(
    name="ConfigMap",
    versions=("v1",),
    plural="configmaps",
    base=lambda: {"data": {"a": "1"}},
    facets=(
        *METADATA,
        Facet(("data", "a"), ("1", "2", "")),
        Facet(("data", "a.b"), ("x", "y\nz", "ü")),
        Facet(("data", "UPPER_x-1"), ("1", "2")),
        Facet(("binaryData", "bin"), ("AAA=", "AAE=")),
    ),
    keyed=METADATA_KEYED,
    sets=METADATA_SETS,
)

SERVICE = Kind(
    name="Service",
    versions=("v1",),
    plural="services",
    base=lambda: {"spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "base"}], "selector": {"app": "web"}}},
    facets=(
        *METADATA,
        Facet(("spec", "selector", "app"), ("web", "api")),
        Facet(("spec", "selector", "x"), ("1",)),
        Facet(("spec", "ports", key(port=80, protocol="TCP"), "name"), ("base", "web")),
        Facet(("spec", "ports", key(port=80, protocol="TCP"), "targetPort"), (8080, "http")),
        Facet(("spec", "ports", key(port=443, protocol="TCP"), "name"), ("tls",)),
        Facet(("spec", "sessionAffinity"), ("None", "ClientIP")),
        Facet(("spec", "externalIPs"), (["192.0.2.1"], ["192.0.2.1", "192.0.2.2"])),
        Facet(("spec", "publishNotReadyAddresses"), (True, False)),
    ),
    keyed={**METADATA_KEYED, ("spec", "ports"): ("port", "protocol"), ("status", "conditions"): ("type",)},
    sets=METADATA_SETS,
    atomic_maps=frozenset({("spec", "selector")}),
    status=(
        Facet(("status", "loadBalancer", "ingress"), ([{"ip": "192.0.2.9"}], [{"hostname": "lb.example.com"}])),
        Facet(("metadata", "labels", "team"), ("red", "blue")),
        Facet(("metadata", "annotations", "note"), ("s", "plain")),
    ),
)

SECRET = Kind(
    name="Secret",
    versions=("v1",),
    plural="secrets",
    base=lambda: {"data": {"a": "MQ=="}, "type": "Opaque"},
    facets=(
        *METADATA,
        Facet(("data", "a"), ("MQ==", "Mg==", "")),
        Facet(("data", "b"), ("MQ==", "Mg==")),
        Facet(("stringData", "b"), ("1", "2")),
        Facet(("stringData", "c"), ("1", "2")),
    ),
    keyed=METADATA_KEYED,
    sets=METADATA_SETS,
)


def _hpa() -> Object:
    return {
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5}
    }


_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
_HPA_BOTH = (
    *METADATA[:5],
    Facet(("spec", "minReplicas"), (1, 2)),
    Facet(("spec", "maxReplicas"), (5, 7)),
)

AUTOSCALER = Kind(
    name="HorizontalPodAutoscaler",
    versions=("autoscaling/v2", "autoscaling/v1"),
    plural="horizontalpodautoscalers",
    base=_hpa,
    facets=_HPA_BOTH,
    keyed=METADATA_KEYED,
    sets=METADATA_SETS,
    other={
        "autoscaling/v1": (*_HPA_BOTH, Facet(("spec", "targetCPUUtilizationPercentage"), (50, 60))),
        "autoscaling/v2": (
            *_HPA_BOTH,
            Facet(("spec", "metrics"), ([_CPU], [])),
            Facet(("spec", "behavior", "scaleDown", "stabilizationWindowSeconds"), (0, 300)),
        ),
    },
)

WIDGET = Kind(
    name="Widget",
    versions=("example.com/v1", "example.com/v2"),
    plural="widgets",
    base=lambda: {"spec": {"mode": "calm"}},
    facets=(
        *METADATA,
        Facet(("spec", "mode"), ("calm", "wild")),
        Facet(("spec", "replicas"), (0, 1, 2)),
        Facet(("spec", "size"), (1, 2)),
        Facet(("spec", "level"), (1, 2)),
        Facet(("spec", "maybe"), (None, "set")),
        Facet(("spec", "flags"), (["a"], ["a", "b"], ["b", "a"], [])),
        Facet(("spec", "parts"), ([{"name": "a"}], [{"name": "a", "n": 1}], [{"name": "b"}, {"name": "a"}])),
        Facet(("spec", "tags", Member("x"))),
        Facet(("spec", "tags", Member("ü y"))),
        Facet(("spec", "numbers", Member(1))),
        Facet(("spec", "numbers", Member(2))),
        Facet(("spec", "rules", key(name="r1"), "action"), ("allow", "deny")),
        Facet(("spec", "rules", key(name="r1"), "nested", key(id=1), "v"), (1, 2)),
        Facet(("spec", "rules", key(name='r"2'), "action"), ("allow",)),
        Facet(("spec", "settings", "a"), ("1", "2")),
        Facet(("spec", "settings", "b.c/d"), ("1",)),
        Facet(("spec", "block", "a"), ("1", "2")),
        Facet(("spec", "block", "b"), ("1",)),
        Facet(("spec", "free", "x"), (1, True, {"y": 1}, {}, [], [1], [True], [{"a": 1}], None, "text", 1.5)),
        Facet(("spec", "free", "x", "y"), (1, True, 2)),
        Facet(("spec", "free", "ключ.с точкой"), ("a", "b")),
        Facet(("spec", "free"), ({},)),
    ),
    keyed={
        **METADATA_KEYED,
        ("spec", "rules"): ("name",),
        ("spec", "rules", "nested"): ("id",),
    },
    sets=METADATA_SETS | {("spec", "tags"), ("spec", "numbers")},
    atomic_maps=frozenset({("spec", "block")}),
    status=(
        Facet(("status", "phase"), ("up", "down")),
        Facet(("status", "replicas"), (1, 2)),
        Facet(("metadata", "labels", "team"), ("red", "blue")),
    ),
    has_scale=True,
    strategic=False,
    seen_as="example.com/v1",
)

KINDS = (DEPLOYMENT, CONFIGMAP, SERVICE, SECRET, AUTOSCALER, WIDGET)


def widget_definition() -> Object:
    """The custom resource: every sort of list and map, a subtree without schema, status, scale, two versions."""
    text, number = {"type": "string"}, {"type": "integer"}
    nested = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]}
    nested["items"] = {"type": "object", "required": ["id"], "properties": {"id": number, "v": number}}
    rules = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    rules["items"] = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": text, "action": text, "nested": nested},
    }
    part = {"type": "object", "properties": {"name": text, "n": number}}
    spec = {
        "mode": text,
        "replicas": number,
        "size": number,
        "level": {"type": "integer", "default": 1},
        "maybe": {"type": "string", "nullable": True},
        "flags": {"type": "array", "x-kubernetes-list-type": "atomic", "items": text},
        "parts": {"type": "array", "items": part},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": number},
        "rules": rules,
        "settings": {"type": "object", "additionalProperties": text},
        "block": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    status = {"phase": text, "replicas": number}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": status},
        },
    }
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": scale},
        }
        for name in ("v1", "v2")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": versions,
        },
    }
