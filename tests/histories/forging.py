"""What a client can do to managedFields in the body of a write that is no apply."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

Entries = list[dict[str, Any]]
Names = tuple[str, ...]

_REAL = (
    {"f:metadata": {"f:labels": {"f:team": {}}}},
    {"f:metadata": {"f:labels": {".": {}, "f:team": {}, "f:tier": {}}}},
    {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    {"f:spec": {"f:replicas": {}}},
    {"f:spec": {"f:mode": {}, "f:tags": {".": {}, 'v:"x"': {}}}},
    {
        "f:spec": {
            "f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:image": {}, "f:name": {}}}}}
        }
    },
    {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}},
)
_ODD = (
    {"f:metadata": {"f:labels": {"f:no-such": {}}}},
    {"f:kind": {}, "f:apiVersion": {}, "f:metadata": {"f:name": {}, "f:uid": {}, "f:namespace": {}}},
    {"f:metadata": {}, "f:spec": {}},
    {"f:metadata": {}, "f:spec": {}, "f:data": {}},
    {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {"f:disk": {}}}}}},
    {
        "f:spec": {
            "f:block": {"f:a": {}},
            "f:flags": {"i:0": {}},
            "f:parts": {'k:{"name":"a"}': {".": {}, "f:name": {}}},
        }
    },
    {"f:metadata": {"f:labels": {}, "f:annotations": {}, "f:finalizers": {}}},
    {},
)


def _fields(rng: Random) -> dict[str, Any]:
    """Mostly what a schema allows: claims on what none allows spoil the rest of the history."""
    return copy.deepcopy(rng.choice(_ODD if rng.random() < 0.2 else _REAL))


def add(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    operation = rng.choice(("Apply", "Update"))
    manager = rng.choice((*managers, "before-first-apply", "ancient-changes"))
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields(rng),
        "time": rng.choice(("2020-01-01T00:00:00Z", "2037-01-01T00:00:00Z")),
    }
    if rng.random() < 0.1:
        entry["subresource"] = rng.choice(("status", "scale"))
    entries.insert(rng.randrange(len(entries) + 1), copy.deepcopy(entry))
    return True


def thicken(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if not entries:
        return False
    entry = rng.choice(entries)
    _merge(entry.setdefault("fieldsV1", {}), _fields(rng))
    return True


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for step, below in more.items():
        if step in into and step != "." and bool(into[step]) != bool(below):
            into[step]["."] = {}
        _merge(into.setdefault(step, {}), below)


def thin(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if not entries:
        return False
    node = rng.choice(entries).get("fieldsV1") or {}
    while True:
        steps = [step for step in node if step != "."]
        if not steps:
            return False
        step = rng.choice(steps)
        if not node[step] or rng.random() < 0.25:
            del node[step]
            return True
        node = node[step]


def rename(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if not entries:
        return False
    rng.choice(entries)["manager"] = rng.choice(managers)
    return True


def remove(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if len(entries) < 2:
        return False
    entries.remove(rng.choice(entries))
    return True


def empty_one(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if len(entries) < 2:
        return False
    rng.choice(entries)["fieldsV1"] = {}
    return True


def reset(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    entries[:] = rng.choice(([{}], []))
    return True


def other_version(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if not entries:
        return False
    group = version.rpartition("/")[0]
    served = f"{group}/{rng.choice(('v1', 'v2', 'v1beta9'))}" if group else "v9"
    rng.choice(entries)["apiVersion"] = served
    return True


def other_operation(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if not entries:
        return False
    entry = rng.choice(entries)
    entry["operation"] = "Apply" if entry.get("operation") == "Update" else "Update"
    return True


def other_subresource(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    if not entries:
        return False
    entry = rng.choice(entries)
    entry["subresource"] = "" if entry.get("subresource") else "status"
    return True


def move(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    """All of one claim into another, as a migration does; but whoever asks."""
    if len(entries) < 2:
        return False
    source, target = rng.sample(entries, 2)
    _merge(target.setdefault("fieldsV1", {}), copy.deepcopy(source.get("fieldsV1") or {}))
    entries.remove(source)
    return True


def twin(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    """One identity twice: the server takes the last."""
    if not entries:
        return False
    entry = copy.deepcopy(rng.choice(entries))
    entry["fieldsV1"] = copy.deepcopy(rng.choice(_REAL))
    entries.append(entry)
    return True


def times(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    """No forging: time is nothing that proves anything."""
    for entry in entries:
        entry["time"] = rng.choice(("2020-01-01T00:00:00Z", "2037-01-01T00:00:00Z"))
    return bool(entries)


Forging = Callable[[Random, Entries, str, Names], bool]
FORGERIES: tuple[Forging, ...] = (
    add,
    add,
    thicken,
    thin,
    thin,
    rename,
    remove,
    empty_one,
    reset,
    other_version,
    other_operation,
    other_subresource,
    move,
    twin,
    times,
)


def forge(rng: Random, entries: Entries, version: str, managers: Names) -> bool:
    """One or two forgeries, in place; whether there was anything to forge."""
    done = [rng.choice(FORGERIES)(rng, entries, version, managers) for _ in range(rng.choice((1, 1, 2)))]
    return any(done)
