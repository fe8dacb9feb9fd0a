"""Objects as their leaves and items, by path, with the schema that histories know of their kinds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.histories.shapes import Kind, Object
from tests.histories.truth import UNCLAIMED, plain_value
from webhook.fields.steps import field_step, key_step, step_value, value_step

Path = tuple[str, ...]
Paths = frozenset[Path]
NOTHING: Paths = frozenset()

DOTTED = {
    *("labels", "annotations", "data", "binaryData", "settings", "limits", "matchLabels"),
    *("finalizers", "env", "ports", "volumes", "imagePullSecrets", "initContainers", "tags", "numbers", "rules"),
}
"""Maps and lists that an Update claims as such (`.`) when it makes them; of structs it claims what they hold."""


class Flat(NamedTuple):
    """An object in pieces."""

    leaves: dict[Path, Any]
    items: Paths  # of keyed lists
    dotted: Paths
    above: Paths  # maps and lists that have something in them

    @property
    def applied(self) -> Paths:
        """What an apply of the object claims."""
        return frozenset(self.leaves) | self.items

    @property
    def all(self) -> Paths:
        """What an update claims that makes all of it."""
        return self.applied | self.dotted


def flat(kind: Kind, obj: Object) -> Flat:
    leaves: dict[Path, Any] = {}
    items: set[Path] = set()
    above: set[Path] = set()
    for path, value, is_item in _walk(kind, obj, ()):
        if is_item:
            items.add(path)
        else:
            leaves[path] = value
        above.update(path[:length] for length in range(1, len(path)))
    dotted = frozenset(path for path in above if path[-1][2:] in DOTTED and path[-1][:2] == "f:")
    return Flat(leaves, frozenset(items), dotted, frozenset(above))


def difference(kind: Kind, old: Object, new: Object) -> tuple[Paths, Paths]:
    """(written, removed), as the server compares."""
    was, now = flat(kind, old), flat(kind, new)
    both = now.leaves.keys() & was.leaves.keys()
    modified = {path for path in both if plain_value(now.leaves[path]) != plain_value(was.leaves[path])}
    modified |= {
        path for path in was.leaves.keys() & now.above if was.leaves[path] not in ({}, [])
    }  # a text made a map
    return (now.all - was.all - was.above) | modified, was.all - now.all - now.above


def merged(kind: Kind, live: Any, manifest: Any, path: Path = ()) -> Any:
    """A live value, changed in place, with a manifest's laid over it."""
    if isinstance(live, dict) and isinstance(manifest, dict) and names_of(path) not in kind.atomic_maps:
        for name, below in manifest.items():
            live[name] = merged(kind, live.get(name), below, (*path, field_step(name)))
        return live
    steps = item_steps(kind, manifest, path)
    if isinstance(live, list) and steps is not None:
        known = item_steps(kind, live, path) or []
        for step, item in zip(steps, manifest, strict=True):
            if step in known:
                at = known.index(step)
                atomic = names_of(path) in kind.atomic_items
                live[at] = copy.deepcopy(item) if atomic else merged(kind, live[at], item, (*path, step))
            else:
                live.append(copy.deepcopy(item))
        return live
    return copy.deepcopy(manifest)


def remove(obj: Object, path: Path, held: Paths) -> None:
    """Take out what stands at a path, and what is empty then and not held."""
    parents: list[Any] = [obj]
    for step in path[:-1]:
        if (below := step_into(parents[-1], step)) is None:
            return
        parents.append(below)
    for depth in range(len(path) - 1, -1, -1):
        parent, step = parents[depth], path[depth]
        if isinstance(parent, list):
            parent[:] = [item for item in parent if not is_item(item, step)]
        elif isinstance(parent, dict):
            parent.pop(step[2:], None)
        if parent or depth < 2 or path[depth - 1][:2] == "k:" or reaches(held, path[:depth]):
            return


def reaches(paths: Paths, path: Path) -> bool:
    """Whether a path, or anything below it, is among the paths."""
    return any(other[: len(path)] == path for other in paths)


def is_key(path: Path) -> bool:
    """Whether a path is one of the fields that its item is known by."""
    return len(path) > 1 and path[-2][:2] == "k:" and path[-1][2:] in step_value(path[-2])


def step_into(value: Any, step: str) -> Any:
    if isinstance(value, list):
        return next((item for item in value if is_item(item, step)), None)
    return value.get(step[2:]) if isinstance(value, dict) else None


def is_item(item: Any, step: str) -> bool:
    if step[:2] == "v:":
        return value_step(item) == step
    if step[:2] != "k:" or not isinstance(item, dict):
        return False
    return all(
        name in item and plain_value(item[name]) == plain_value(value) for name, value in step_value(step).items()
    )


def names_of(path: Path) -> Path:
    return tuple(step[2:] for step in path if step[:2] == "f:")


def item_steps(kind: Kind, value: Any, path: Path) -> list[str] | None:
    """The steps to a list's items; None where it is atomic, and for what is no list."""
    names = names_of(path)
    if not isinstance(value, list):
        return None
    if (keys := kind.keyed.get(names)) is not None:
        return [key_step({name: item[name] for name in keys if name in item}) for item in value]
    return [value_step(item) for item in value] if names in kind.sets else None


def _walk(kind: Kind, value: Any, path: Path) -> Iterator[tuple[Path, Any, bool]]:
    """Leaves with their values, and items of keyed lists."""
    steps = item_steps(kind, value, path) if value else None
    if steps is not None:
        for step, item in zip(steps, value, strict=True):
            is_leaf = step[:2] == "v:" or names_of(path) in kind.atomic_items
            yield (*path, step), item, not is_leaf
            if not is_leaf:
                for name, below in item.items():
                    yield from _walk(kind, below, (*path, step, field_step(name)))
    elif isinstance(value, dict) and value and names_of(path) not in kind.atomic_maps:
        for name, below in value.items():
            if not _never_claimed(path, name):
                yield from _walk(kind, below, (*path, field_step(name)))
    elif path != ("f:metadata",):
        yield path, value, False


def _never_claimed(path: Path, name: str) -> bool:
    if path == ("f:metadata",):
        return name in UNCLAIMED
    return not path and name in ("apiVersion", "kind", "status")
