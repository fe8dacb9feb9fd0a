"""What differs between two versions of an object, path by path.

Lists are descended as the claims show that the server does: items are paired by the keys in `k:` steps, sets by value
in `v:` steps. Every other list is one atomic value, and so are the items of one key that occurs more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from webhook.fields import trie
from webhook.fields.claims import ManagedFields
from webhook.fields.errors import TooDeep
from webhook.fields.fieldset import EMPTY, FieldSet
from webhook.fields.steps import canonical_step, field_step, key_step, normal, step_value, value_step

Steps: TypeAlias = tuple[str, ...]

NEVER_CLAIMED = frozenset({"apiVersion", "kind"})
NEVER_CLAIMED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
        "selfLink",
    }
)
"""Fields that the server never puts into a claim, so that writing them is nobody's change (stripMeta in apimachinery)."""


class _Absent:
    """The value of a path that an object does not have; null is a value."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class Comparison(NamedTuple):
    """What is new or other in the second object, what it no longer has, and the keyed lists in another order."""

    written: FieldSet = EMPTY
    removed: FieldSet = EMPTY
    reordered: FieldSet = EMPTY

    def __bool__(self) -> bool:
        return bool(self.written or self.removed or self.reordered)


def value_at(value: Any, path: Iterable[str]) -> Any:
    """The value at a path of canonical steps, or ABSENT. Of several items with the same keys, all of them as a list.

    >>> value_at({"spec": {"ports": [{"port": 80, "name": "web"}]}}, ('f:spec', 'f:ports', 'k:{"port":80}', 'f:name'))
    'web'
    """
    for step in path:
        kind = step[:2]
        if kind == "f:":
            if value.__class__ is not dict and not isinstance(value, Mapping):
                return ABSENT
            if (value := value.get(step[2:], ABSENT)) is ABSENT:
                return ABSENT
            continue
        if not isinstance(value, list):
            return ABSENT
        wanted = step_value(step)
        if kind == "i:":
            found = value[wanted : wanted + 1] if wanted >= 0 else []
        elif kind == "k:":
            found = [item for item in value if _has_keys(item, wanted)]
        else:
            found = [item for item in value if _is(item, wanted)]
        if not found:
            return ABSENT
        value = found[0] if len(found) == 1 else found
    return value


def _has_keys(item: Any, keys: dict[str, Any]) -> bool:
    return isinstance(item, dict) and all(name in item and _is(item[name], value) for name, value in keys.items())


def _is(value: Any, wanted: Any) -> bool:
    """Whether a value is the one that a canonical step names: large numbers stand there as the server reads them."""
    if value.__class__ is str:
        return bool(value == wanted)
    try:
        return same(normal(value), wanted)
    except RecursionError:
        raise TooDeep from None


def same(a: Any, b: Any) -> bool:
    """Equality as JSON has it, at any depth: 1 is 1.0 and not true.

    >>> same({"a": [1]}, {"a": [1.0]}), same({"a": [1]}, {"a": [True]})
    (True, False)
    """
    return a is b or (bool(a == b) and _alike(a, b))


def _alike(a: Any, b: Any) -> bool:
    """Whether two values that are equal for Python, to which true is 1, are so for JSON."""
    if isinstance(a, dict):
        return all(_alike(value, b[name]) for name, value in a.items() if value is not b[name])
    if isinstance(a, list):
        return all(_alike(value, other) for value, other in zip(a, b, strict=True) if value is not other)
    return isinstance(a, bool) == isinstance(b, bool)


def compare(
    old: Mapping[str, Any], new: Mapping[str, Any], claims: Iterable[ManagedFields], *, status: bool = False
) -> Comparison:
    """What differs between two objects. `claims` show which lists have keys; `status` tells whether `.status` counts.

    Raises FieldsError (TooDeep) where the objects nest more deeply than the recursion limit lets them be followed.
    """
    try:
        return _compare(old, new, tuple(claims), status=status)
    except RecursionError:
        raise TooDeep from None


def _compare(
    old: Mapping[str, Any], new: Mapping[str, Any], claims: tuple[ManagedFields, ...], *, status: bool
) -> Comparison:
    walk = _Walk(claims, strict="." in str(new.get("apiVersion", ".")).partition("/")[0])
    skipped = NEVER_CLAIMED if status else NEVER_CLAIMED | {"status"}
    for name in old.keys() | new.keys():
        if name == "metadata" and all(isinstance(value.get(name, {}), dict) for value in (old, new)):
            walk.members(old.get(name), new.get(name), ("f:metadata",), NEVER_CLAIMED_METADATA)
        elif name not in skipped:
            walk.compare(old.get(name, ABSENT), new.get(name, ABSENT), (field_step(name),))
    return walk.result()


_NONE: frozenset[str] = frozenset()
_PROBED = 32
"""Levels on which maps are first asked whether they are equal: see `webhook.fields.trie`."""


@dataclass(slots=True)
class _Walk:
    """Collects paths while both objects are walked together."""

    claims: tuple[ManagedFields, ...]
    strict: bool  # true is told from 1 below equal maps and lists too: no built-in API can have both in one place
    written: list[Steps] = field(default_factory=list)
    removed: list[Steps] = field(default_factory=list)
    reordered: list[Steps] = field(default_factory=list)

    def result(self) -> Comparison:
        return Comparison(_set(self.written), _set(self.removed), _set(self.reordered))

    def members(self, old: Any, new: Any, path: Steps, skipped: frozenset[str]) -> None:
        """Compares two maps, some members left out."""
        old, new = old or {}, new or {}
        for name in old.keys() | new.keys():
            if name not in skipped:
                was, now = old.get(name, ABSENT), new.get(name, ABSENT)
                if was is ABSENT or now is ABSENT or self.strict or len(path) > _PROBED or was != now:
                    self.compare(was, now, (*path, field_step(name)))

    def compare(self, old: Any, new: Any, path: Steps) -> None:
        if old is new or (len(path) <= _PROBED and old == new and self._alike(old, new)):
            return
        if isinstance(old, dict) and isinstance(new, dict) and old and new:
            self.members(old, new, path, _NONE)
        elif len(path) > _PROBED and old == new and self._alike(old, new):
            return
        elif (isinstance(old, list) and (isinstance(new, list) or new is ABSENT)) or (
            isinstance(new, list) and old is ABSENT
        ):
            self._lists(old, new, path)
        else:
            self._replaced(old, new, path)

    def _alike(self, old: Any, new: Any) -> bool:
        return _alike(old, new) if self.strict else _identical(old, new)

    def _replaced(self, old: Any, new: Any, path: Steps) -> None:
        """A value came, went, or became one of another kind: the leaves below tell."""
        if isinstance(old, dict) and new is not ABSENT:
            for name, value in old.items():
                self._collect(value, (*path, field_step(name)), self.removed)
            if not (isinstance(new, dict) and not new):
                self._collect(new, path, self.written)
        elif isinstance(old, list) and new is not ABSENT:
            for step, was in (self._items(old, path) or {}).items():
                self.removed.append((*path, step))
                self._below(was, (*path, step), self.removed)
            self._collect(new, path, self.written)
        elif new is ABSENT:
            self._collect(old, path, self.removed)
        else:
            self._collect(new, path, self.written)

    def _collect(self, value: Any, path: Steps, into: list[Steps]) -> None:
        """The leaves of a value that came or went."""
        if isinstance(value, dict) and value:
            for name, below in value.items():
                self._collect(below, (*path, field_step(name)), into)
        elif isinstance(value, list) and value:
            empty = ABSENT
            self._lists(empty, value, path) if into is self.written else self._lists(value, empty, path)
        else:
            into.append(path)

    def _lists(self, old: Any, new: Any, path: Steps) -> None:
        if isinstance(old, list) and isinstance(new, list) and self._same_items(old, new, path):
            return
        before = self._items(old, path)
        after = self._items(new, path)
        if before is None or after is None or not (before or after):
            (self.removed if new is ABSENT else self.written).append(path)
            return
        for step, was in before.items():
            now = after.get(step)
            if now is None:
                self.removed.append((*path, step))
                self._below(was, (*path, step), self.removed)
            elif len(was) == 1 and len(now) == 1:
                self.compare(was[0], now[0], (*path, step))
            elif not same(was, now):  # a key that occurs twice: one leaf
                self.written.append((*path, step))
        for step, now in after.items():
            if step not in before:
                self.written.append((*path, step))
                self._below(now, (*path, step), self.written)
        keyed = next(iter(before or after))[:2] == "k:"
        if keyed and [s for s in before if s in after] != [s for s in after if s in before]:
            self.reordered.append(path)

    def _below(self, items: list[Any], path: Steps, into: list[Steps]) -> None:
        if len(items) == 1 and isinstance(items[0], dict):
            for name, value in items[0].items():
                self._collect(value, (*path, field_step(name)), into)

    def _same_items(self, old: list[Any], new: list[Any], path: Steps) -> bool:
        """Whether both lists have the same keyed items in the same order, which then are compared one by one."""
        names = self._keys(path)
        if not names or len(old) != len(new) or not all(isinstance(item, dict) for item in (*old, *new)):
            return False
        keys = [[item.get(name, ABSENT) for name in names] for item in old]
        if keys != [[item.get(name, ABSENT) for name in names] for item in new]:
            return False
        if [ABSENT] * len(names) in keys or len({repr(key) for key in keys}) != len(keys):
            return False
        for was, now in zip(old, new, strict=True):
            if was != now or self.strict:
                step = key_step({name: was[name] for name in names if name in was})
                self.compare(was, now, (*path, step))
        return True

    def _items(self, value: Any, path: Steps) -> dict[str, list[Any]] | None:
        """The items of a list by their steps, or None for an atomic list."""
        if value is ABSENT:
            return {}
        keys = self._keys(path)
        if keys is None:
            return None
        items: dict[str, list[Any]] = {}
        for item in value:
            if keys and not isinstance(item, dict):
                return None
            if not keys and isinstance(item, dict | list):
                return None
            step = key_step({name: item[name] for name in keys if name in item}) if keys else value_step(item)
            if step == "k:{}":  # an item without any key: the server refuses to pair such a list
                return None
            items.setdefault(step, []).append(item)
        return items

    def _keys(self, path: Steps) -> tuple[str, ...] | None:
        """The names of a list's keys; () for a set; None for an atomic list. All claims agree: one schema, one answer."""
        for managed in self.claims:
            for claim in managed.claims():
                for step in trie.find(claim.tree, path) or ():
                    if step[:2] == "k:":
                        return tuple(step_value(canonical_step(step)))
                    if step[:2] == "v:":
                        return ()
        return None


def _identical(a: Any, b: Any) -> bool:
    """Python finds 1 == True; JSON does not. For scalars, where the type of what lies below is one for both."""
    return isinstance(a, bool) == isinstance(b, bool)


def _set(paths: list[Steps]) -> FieldSet:
    return FieldSet.of(trie.build(paths)) if paths else EMPTY
