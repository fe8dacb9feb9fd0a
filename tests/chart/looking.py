"""Looking at what the chart renders: one thing that a value does, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from charting import Object, Rendering, merged, nested

Check = Callable[[Rendering], Any]


class Case:
    """With `value` at `path` (and `beside` it, where it needs more), `check` holds; with the defaults it does not."""

    def __init__(self, path: str, value: Any, check: Check, **beside: Any) -> None:
        self.path, self.check = path, check
        self.beside: Object = beside
        self.values = merged(beside, nested(path, value))


def flag(component: str, text: str) -> Check:
    return lambda made: text in made.args(component)


def everywhere(part: str, name: str, value: str) -> Check:
    return lambda made: all(item["metadata"].get(part, {}).get(name) == value for item in made.objects)


def in_pod(component: str, key: str, value: Any) -> Check:
    return lambda made: made.pod(component).get(key) == value


def in_container(component: str, key: str, value: Any) -> Check:
    return lambda made: made.container(component).get(key) == value


def has(component: str, key: str, value: Any) -> Check:
    return lambda made: value in made.container(component).get(key, ())


def hook(made: Rendering, phase: str) -> Object:
    kind = {"mutate": "MutatingWebhookConfiguration"}.get(phase, "ValidatingWebhookConfiguration")
    (found,) = (one for item in made.of(kind).values() for one in item["webhooks"] if one["name"].startswith(phase))
    assert isinstance(found, dict)
    return found


def both(key: str, value: Any) -> Check:
    return lambda made: [hook(made, phase).get(key) for phase in ("validate", "mutate")] == [value, value]


def expressions(made: Rendering) -> list[Object]:
    found: list[Object] = hook(made, "validate")["namespaceSelector"]["matchExpressions"]
    return found


def meta(kind: str, name: str, part: str, value: dict[str, str]) -> Check:
    """The one object of a kind (whose name ends so) has these labels or annotations."""
    return lambda made: value.items() <= made.one(kind, name)["metadata"].get(part, {}).items()


def pod_meta(component: str, part: str, value: dict[str, str]) -> Check:
    def check(made: Rendering) -> bool:
        template = made.one("Deployment", f"-{component}")["spec"]["template"]
        return bool(value.items() <= template["metadata"].get(part, {}).items())

    return check


def files(made: Rendering) -> list[str]:
    return sorted(name for item in made.of("ConfigMap").values() for name in item["data"])


def alert(made: Rendering, name: str) -> Object:
    (group,) = made.one("PrometheusRule")["spec"]["groups"]
    return next((rule for rule in group["rules"] if rule["alert"] == name), {})


def endpoint(made: Rendering) -> Object:
    (found,) = made.one("ServiceMonitor")["spec"]["endpoints"]
    assert isinstance(found, dict)
    return found


def peers(made: Rendering, component: str, direction: str, port: Any) -> Any:
    """Who may talk to a port, or be talked to; None: everybody."""
    spec = made.one("NetworkPolicy", f"-{component}")["spec"]
    side = "from" if direction == "ingress" else "to"
    rules = [rule for rule in spec[direction] if port in [one["port"] for one in rule["ports"]]]
    return None if any(side not in rule for rule in rules) else [one for rule in rules for one in rule[side]]


def certificate(made: Rendering) -> Object:
    found: Object = made.one("Certificate", "-webhook")["spec"]
    return found


def service_account(component: str, name: str) -> Check:
    return in_pod(component, "serviceAccountName", name)


def policy_sources(made: Rendering) -> list[Object]:
    """Where the files of the policies folder come from."""
    return [
        source
        for volume in made.pod("webhook")["volumes"]
        if volume["name"] == "policies"
        for source in volume["projected"]["sources"]
    ]


def limited(component: str, processors: str) -> Check:
    return lambda made: made.container(component)["resources"]["limits"].get("cpu") == processors


def placed(component: str, labels: dict[str, str]) -> Check:
    return lambda made: bool(labels.items() <= made.pod(component)["nodeSelector"].items())
