"""The kinds of objects that histories are played on: what can be set in them, and which of their lists have keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Object = dict[str, Any]


class Key(NamedTuple):
    """One item of a keyed list, by its keys."""

    pairs: tuple[tuple[str, Any], ...]


class Member(NamedTuple):
    """One member of a set."""

    value: Any


Step = str | Key | Member
Place = tuple[Step, ...]


def key(**pairs: Any) -> Key:
    return Key(tuple(pairs.items()))


@dataclass(frozen=True, slots=True)
class Facet:
    """A place in an object, and the values that it may have. A member of a set has none."""

    place: Place
    values: tuple[Any, ...] = (None,)


@dataclass(frozen=True, slots=True)
class Kind:
    """What histories know of one kind. `keyed` and `sets` name lists by their fields alone, items left out."""

    name: str
    versions: tuple[str, ...]  # apiVersions that are written; the first is the main one
    plural: str
    base: Callable[[], Object]
    facets: tuple[Facet, ...]
    keyed: Mapping[tuple[str, ...], tuple[str, ...]]
    sets: frozenset[tuple[str, ...]]
    atomic_maps: frozenset[tuple[str, ...]] = frozenset()
    atomic_items: frozenset[tuple[str, ...]] = frozenset()  # keyed lists whose items are one value each
    status: tuple[Facet, ...] = ()
    has_scale: bool = False
    strategic: bool = True  # strategic merge patches are served
    seen_as: str | None = None  # the apiVersion that reviews are converted to
    other: Mapping[str, tuple[Facet, ...]] = field(default_factory=dict)  # facets by version, where they differ

    def facets_in(self, version: str) -> tuple[Facet, ...]:
        return self.other.get(version, self.facets)


def put(obj: Any, place: Place, value: Any) -> None:
    """Set a value, making what is missing on the way."""
    for here, after in itertools.pairwise(place):
        obj = _enter(obj, here, [] if isinstance(after, Key | Member) else {})
    last = place[-1]
    if isinstance(last, str):
        obj[last] = value
    elif isinstance(last, Member):
        if last.value not in obj:
            obj.append(last.value)
    else:
        _enter(obj, last, {})


def _enter(obj: Any, step: Step, fresh: Any) -> Any:
    if isinstance(step, Key):
        for item in obj:
            if all(item.get(name) == value for name, value in step.pairs):
                return item
        obj.append(dict(step.pairs))
        return obj[-1]
    assert isinstance(step, str)
    if not isinstance(obj.get(step), type(fresh)):
        obj[step] = fresh
    return obj[step]


MISSING = object()


def at(obj: Any, place: Place) -> Any:
    """The value at a place, or MISSING."""
    for step in place:
        obj = _look(obj, step)
        if obj is MISSING:
            return MISSING
    return obj


def _look(obj: Any, step: Step) -> Any:
    if isinstance(step, str):
        return obj.get(step, MISSING) if isinstance(obj, dict) else MISSING
    if not isinstance(obj, list):
        return MISSING
    if isinstance(step, Member):
        return step.value if step.value in obj else MISSING
    for item in obj:
        if all(item.get(name) == value for name, value in step.pairs):
            return item
    return MISSING


def drop(obj: Any, place: Place, *, empty_too: bool) -> bool:
    """Take a value out, with the maps and lists that it leaves empty if wanted. Whether it was there."""
    parents = [at(obj, place[:length]) for length in range(len(place))]
    if at(obj, place) is MISSING:
        return False
    for depth in range(len(place) - 1, -1, -1):
        _remove(parents[depth], place[depth])
        if not empty_too or parents[depth] or depth < 2:
            break
    return True


def _remove(parent: Any, step: Step) -> None:
    if isinstance(step, str):
        del parent[step]
    elif isinstance(step, Member):
        parent.remove(step.value)
    else:
        parent.remove(_look(parent, step))
