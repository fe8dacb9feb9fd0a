"""What a client that wrote all of an object would claim, as far as it can be told without the object's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.fields import FieldSet, Identity
from webhook.fields.steps import field_step, key_step, step_value, value_step
from webhook.fields.values import NEVER_CLAIMED, NEVER_CLAIMED_METADATA

_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "hostAliases": ("ip",),
    "ownerReferences": ("uid",),
    "conditions": ("type",),
}
_PORTS = (("containerPort", "protocol"), ("port", "protocol"))
_SETS = frozenset({"finalizers"})
_BUILT_IN = frozenset({"", "apps", "batch", "autoscaling", "policy"})  # groups without a dot, and *.k8s.io


def leaves(
    obj: Mapping[str, Any], claims: Mapping[Identity, FieldSet] | None = None, *, status: bool = False
) -> FieldSet:
    """What a client that wrote all of an object would claim: its leaves and list items, or those of its status."""
    known = tuple((claims or {}).values())
    group, _ = group_version(obj["apiVersion"])
    built_in = group in _BUILT_IN or group.endswith(".k8s.io")
    found: list[tuple[str, ...]] = []
    for name, value in obj.items():
        if name in NEVER_CLAIMED or (name == "status") != status:
            continue
        below = _claimable(value) if name == "metadata" else value
        if name != "metadata" or below:
            found += _leaves(below, (field_step(name),), known, built_in=built_in or name == "metadata")
    return FieldSet.from_paths(found)


def _claimable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in NEVER_CLAIMED_METADATA}


def _leaves(
    value: Any, path: tuple[str, ...], known: tuple[FieldSet, ...], *, built_in: bool
) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from _leaves(below, (*path, field_step(name)), known, built_in=built_in)
        return
    steps = _steps(value, path, known, built_in=built_in) if isinstance(value, list) and value else None
    if steps is None:
        yield path
        return
    for step, item in zip(steps, value, strict=True):
        yield (*path, step)
        if isinstance(item, dict):
            yield from _leaves(item, (*path, step), known, built_in=built_in)


def _steps(value: list[Any], path: tuple[str, ...], known: tuple[FieldSet, ...], *, built_in: bool) -> list[str] | None:
    """The steps of a list's items, by its keys in claims or in built-in kinds; None for an atomic list."""
    keys = _known_keys(path, known)
    if keys is None and built_in:
        keys = _usual_keys(value, path)
    if keys is None:
        return None
    if keys == ():
        steps = [value_step(item) for item in value if not isinstance(item, dict | list)]
    else:
        steps = [key_step({k: item[k] for k in keys if k in item}) for item in value if isinstance(item, dict)]
    return steps if len(set(steps)) == len(value) else None


def _known_keys(path: tuple[str, ...], known: tuple[FieldSet, ...]) -> tuple[str, ...] | None:
    depth = len(path)
    for fields in known:
        if not fields.has_prefix(path):
            continue
        for claimed in fields:
            if claimed[:depth] == path and len(claimed) > depth:
                step = claimed[depth]
                if step[:2] == "v:":
                    return ()
                if step[:2] == "k:":
                    return tuple(step_value(step))
    return None


def _usual_keys(value: list[Any], path: tuple[str, ...]) -> tuple[str, ...] | None:
    name = path[-1][2:]
    if name in _SETS:
        return ()
    if name == "ports":
        return next((keys for keys in _PORTS if all(isinstance(i, dict) and keys[0] in i for i in value)), None)
    keys = _KEYS.get(name)
    return keys if keys and all(isinstance(item, dict) and keys[0] in item for item in value) else None


def group_version(api_version: str) -> tuple[str, str]:
    """`apps/v1` as group and version.

    >>> group_version("apps/v1"), group_version("v1")
    (('apps', 'v1'), ('', 'v1'))
    """
    group, _, version = api_version.rpartition("/")
    return group, version
