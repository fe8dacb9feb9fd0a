"""Values at many paths of one object: its long lists are indexed by their keys once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.fields.steps import step_value
from webhook.fields.values import ABSENT, value_at

_LONG = 8
"""Items. In shorter lists looking is faster than indexing."""


class Values:
    """`value_at` for one object, to be asked often; the object must not change.

    >>> Values({"env": [{"name": "a", "value": "x"}]}).at(("f:env", 'k:{"name":"a"}', "f:value"))
    'x'
    """

    __slots__ = ("_indices", "_object")

    def __init__(self, obj: Mapping[str, Any] | None) -> None:
        self._object = obj
        self._indices: dict[tuple[int, tuple[str, ...]], dict[tuple[Any, ...], Any] | None] = {}

    def at(self, path: tuple[str, ...]) -> Any:
        value: Any = self._object
        for position, step in enumerate(path):
            if step[:2] == "f:":
                if value.__class__ is not dict:
                    return value_at(value, path[position:])
                if (value := value.get(step[2:], ABSENT)) is ABSENT:
                    return ABSENT
            elif step[:2] == "i:" or value.__class__ is not list or len(value) < _LONG:
                found = value_at(value, (step,))
                if found is ABSENT:
                    return ABSENT
                value = found
            else:
                value = self._item(value, step)
                if value is ABSENT:
                    return ABSENT
        return value

    def _item(self, items: list[Any], step: str) -> Any:
        keys = step_value(step)
        names = tuple(keys) if step[:2] == "k:" else ()
        known = (id(items), names)
        if known not in self._indices:
            self._indices[known] = _index(items, names)
        index = self._indices[known]
        wanted = tuple(keys.values()) if names else (keys,)
        if index is None or not all(value.__class__ is str for value in wanted):
            return value_at(items, (step,))
        return index.get(wanted, ABSENT)


def _index(items: list[Any], names: tuple[str, ...]) -> dict[tuple[Any, ...], Any] | None:
    """The items by their keys, or by themselves; None where a key is no text, or stands twice."""
    found: dict[tuple[Any, ...], Any] = {}
    for item in items:
        if names and item.__class__ is not dict:
            continue
        key = tuple([item.get(name) for name in names]) if names else (item,)
        if not all(value.__class__ is str for value in key) or key in found:
            return None
        found[key] = item
    return found
