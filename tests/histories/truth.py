"""Claims and values read once more, in another way than the product does, and with the schema that it has to guess."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.histories.shapes import MISSING, Kind, Object
from webhook.fields import Identity

Path = tuple[str, ...]
Paths = frozenset[Path]
NOTHING: Paths = frozenset()
UNCLAIMED = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
)


class Held(NamedTuple):
    """One entry of managedFields."""

    version: str
    paths: Paths


Claims = dict[Identity, Held]


def claims_of(obj: Mapping[str, Any] | None) -> Claims:
    entries = ((obj or {}).get("metadata") or {}).get("managedFields") or []
    found: Claims = {}
    for entry in entries:
        operation, version = entry["operation"], entry["apiVersion"]
        name = Identity(
            entry.get("manager", ""), operation, entry.get("subresource", ""), version if operation == "Update" else ""
        )
        found[name] = Held(version, frozenset(_members(entry.get("fieldsV1") or {}, ())))
    return found


def _members(tree: Mapping[str, Any], path: Path) -> Iterator[Path]:
    if path and (not tree or "." in tree):
        yield path
    for step, below in tree.items():
        if step != ".":
            yield from _members(below, (*path, canonical(step)))


def canonical(step: str) -> str:
    return step if step[:2] in ("f:", "i:") else step[:2] + plain_json(json.loads(step[2:]))


def plain_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def covers(paths: Paths, path: Path) -> bool:
    """Whether a path, or anything below it, is among the paths."""
    return any(other[: len(path)] == path for other in paths)


class Difference(NamedTuple):
    written: Paths
    removed: Paths
    reordered: Paths


class _Leaves:
    """An object as its leaves and list items, by path; lists as the schema says, where a claim shows it."""

    def __init__(self, kind: Kind, shown: frozenset[Path]) -> None:
        self.kind = kind
        self.shown = shown
        self.leaves: dict[Path, Any] = {}
        self.order: dict[Path, list[str]] = {}
        self.above: set[Path] = set()
        self.twins: set[Path] = set()  # items of one key that occurs more than once: one value, parts and all

    def walk(self, value: Any, path: Path) -> None:
        self.above.update(path[:length] for length in range(1, len(path)))
        if isinstance(value, dict) and value:
            for name, below in value.items():
                self.walk(below, (*path, "f:" + name))
        elif isinstance(value, list) and value and path in self.shown and self._listed(value, path):
            pass
        else:
            self.leaves[path] = value

    def _listed(self, items: list[Any], path: Path) -> bool:
        names = tuple(step[2:] for step in path if step[:2] == "f:")
        keys = self.kind.keyed.get(names)
        if keys is None and names not in self.kind.sets:
            return False
        steps = [
            "v:" + plain_json(item)
            if keys is None
            else "k:" + plain_json({name: item[name] for name in keys if name in item})
            for item in items
        ]
        self.order[path] = steps if keys is not None else []
        for step, item in zip(steps, items, strict=True):
            twins = [other for other, s in zip(items, steps, strict=True) if s == step]
            self.leaves[(*path, step)] = MISSING if len(twins) == 1 else plain_json(twins)
            if len(twins) > 1:
                self.twins.add((*path, step))
            if isinstance(item, dict) and len(twins) == 1:
                for name, below in item.items():
                    self.walk(below, (*path, step, "f:" + name))
            self.above.add(path)
        return True


def difference(kind: Kind, old: Object, new: Object, claims: Iterable[Claims], *, status: bool) -> Difference:
    """What was written, removed and reordered between two objects, as the captured reviews are told."""
    shown = frozenset(
        path[:length]
        for held in claims
        for claim in held.values()
        for path in claim.paths
        for length in range(1, len(path))
        if path[length][:2] in ("k:", "v:")
    )
    was, now = (_flat(kind, obj, shown, status) for obj in (old, new))
    twins = was.twins | now.twins
    written = frozenset(
        path
        for path, value in now.leaves.items()
        if not any(path[:length] in twins for length in range(len(path)))
        if (path not in was.leaves and not _emptied(value, path, was, old))
        or (path in was.leaves and plain_value(was.leaves[path]) != plain_value(value))
    )
    gone = frozenset(
        path
        for path in was.leaves
        if path not in now.leaves
        and path not in now.above
        and not any(path[:length] in twins for length in range(len(path)))
    )
    reordered = frozenset(
        path
        for path, steps in was.order.items()
        if path in now.order
        and [s for s in dict.fromkeys(steps) if s in now.order[path]]
        != [s for s in dict.fromkeys(now.order[path]) if s in steps]
    )
    return Difference(written, gone, reordered)


def _flat(kind: Kind, obj: Object, shown: frozenset[Path], status: bool) -> _Leaves:
    flat = _Leaves(kind, shown)
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name not in UNCLAIMED}
    for name, value in {**obj, "metadata": metadata}.items():
        if name in ("apiVersion", "kind") or (name == "status" and not status):
            continue
        if name != "metadata" or value:
            flat.walk(value, ("f:" + name,))
    return flat


def _emptied(value: Any, path: Path, was: _Leaves, old: Object) -> bool:
    """A map or list that lost all that it had: what it had is removed, and nothing is written."""
    if path not in was.above:
        return False
    return (value == {} and path not in was.order) or (value == [] and path in was.order)


def plain_value(value: Any) -> Any:
    """A value as JSON has it: true is not 1, and 1 is 1.0."""
    if isinstance(value, dict):
        return {name: plain_value(below) for name, below in value.items()}
    if isinstance(value, list):
        return [plain_value(below) for below in value]
    return ("bool", value) if isinstance(value, bool) else value
