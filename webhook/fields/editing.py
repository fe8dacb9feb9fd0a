"""Values put at paths, or taken away there, in a copy that shares with what was given all that is not changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from webhook.fields.errors import FieldsError
from webhook.fields.steps import key_step, step_value, value_step
from webhook.fields.values import ABSENT

Steps: TypeAlias = tuple[str, ...]


class Ambiguous(FieldsError):
    """A list in which the item of a path stands more than once."""


class Editor:
    """Many edits of one value. What it copied once it changes in place, so that edits of one map cost one copy.

    >>> editor = Editor({"a": {"b": 1, "c": 2}})
    >>> editor.put(("f:a", "f:b"), 3)
    >>> editor.remove(("f:a", "f:c"))
    >>> editor.value
    {'a': {'b': 3}}
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self._mine: dict[int, Any] = {}  # by id; kept, so that no other object gets the id
        self._indices: dict[int, dict[str, int]] = {}

    def put(self, path: Steps, value: Any, like: Any = ABSENT) -> None:
        """Sets the value at a path; parents that are missing are made. Raises Ambiguous.

        An item that the list does not have is put where it stands in `like`, another state of the whole: after the
        nearest item before it there that this list has too.
        """
        if not path:
            self.value = value
            return
        parent = self._container(path[:-1], path[-1])
        step = path[-1]
        if isinstance(parent, dict):
            parent[step[2:]] = value
        elif (at := self._position(parent, step)) is not None:
            parent[at] = value
        else:
            others = _at(like, path[:-1])
            self._insert(parent, {step: value}, others if isinstance(others, list) else [])

    def put_items(self, path: Steps, items: dict[str, Any], gone: Collection[str], like: Any) -> None:
        """Puts items, by their steps, into the list at a path as `put` does, and takes others out: in one go."""
        step = next(iter(items)) if items else next(iter(gone))
        found = self._container(path, step)
        if gone and found:
            names = _names(step)
            found[:] = [item for item in found if _step(item, names) not in gone]
            self._indices.pop(id(found), None)
        others = _at(like, path)
        self._insert(found, items, others if isinstance(others, list) else [])

    def remove(self, path: Steps) -> None:
        """Takes away the field or item at a path; nothing where there is none. Raises Ambiguous."""
        if _at(self.value, path) is ABSENT:
            return
        parent = self._container(path[:-1], path[-1])
        if isinstance(parent, dict):
            parent.pop(path[-1][2:], None)
        elif (at := self._position(parent, path[-1])) is not None:
            del parent[at]
            self._indices.pop(id(parent), None)

    def _container(self, path: Steps, below: str) -> Any:
        """The map or list at a path, to be changed in place: made where it is missing. `below` is a step in it."""
        self.value = node = self._own(self.value, path[0] if path else below)
        for position, step in enumerate(path):
            wanted = path[position + 1] if position + 1 < len(path) else below
            if isinstance(node, dict):
                node[step[2:]] = child = self._own(node.get(step[2:], ABSENT), wanted)
            else:
                at = self._position(node, step)
                if at is None:
                    node.append(_bare(step))
                    self._indices.pop(id(node), None)
                    at = len(node) - 1
                node[at] = child = self._own(node[at], wanted)
            node = child
        return node

    def _own(self, value: Any, step: str) -> Any:
        """A container of the kind that a step leads into, which nobody else sees."""
        if id(value) in self._mine:
            return value
        if step[:2] == "f:":
            made: Any = dict(value) if isinstance(value, dict) else {}
        else:
            made = list(value) if isinstance(value, list) else []
        self._mine[id(made)] = made
        return made

    def _position(self, items: list[Any], step: str) -> int | None:
        if step[:2] == "i:":
            index = step_value(step)
            return index if 0 <= index < len(items) else None
        known = self._indices.get(id(items))
        if known is None:
            known = self._indices[id(items)] = _index(items, _names(step))
        at = known.get(step)
        if at == _TWICE:
            raise Ambiguous("a list holds two items of one key")
        return at

    def _insert(self, items: list[Any], missing: dict[str, Any], like: Sequence[Any]) -> None:
        """Puts items where they stand in another state of the list; those that are not there come last."""
        if not missing:
            return
        names = _names(next(iter(missing)))
        here = {_step(item, names) for item in items}
        missing = {step: item for step, item in missing.items() if step not in here}
        after: dict[str, list[Any]] = {}
        anchor = ""
        for step in (_step(item, names) for item in like):
            if step in missing:
                after.setdefault(anchor, []).append(missing.pop(step))
            elif step in here:
                anchor = step
        ordered = after.get("", [])
        for item in items:
            ordered.append(item)
            ordered += after.get(_step(item, names), ())
        items[:] = [*ordered, *missing.values()]
        self._indices.pop(id(items), None)


_TWICE = -1


def with_value(whole: Any, path: Steps, value: Any, like: Any = ABSENT) -> Any:
    """A copy that has a value at a path: see `Editor.put`.

    >>> was = {"f": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    >>> with_value({"f": [{"name": "a"}, {"name": "c"}]}, ("f:f", 'k:{"name":"b"}'), {"name": "b"}, was)
    {'f': [{'name': 'a'}, {'name': 'b'}, {'name': 'c'}]}
    """
    editor = Editor(whole)
    editor.put(path, value, like)
    return editor.value


def in_order_of(items: list[Any], like: list[Any], names: tuple[str, ...]) -> list[Any]:
    """The same items, those that `like` has too in its order; the others stay where they stand. Raises Ambiguous.

    >>> in_order_of([{"name": "b"}, {"name": "new"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}], ("name",))
    [{'name': 'a'}, {'name': 'new'}, {'name': 'b'}]
    """
    rank = {_step(item, names): position for position, item in enumerate(like)}
    common = [item for item in items if _step(item, names) in rank]
    if len({_step(item, names) for item in common}) != len(common):
        raise Ambiguous("a list holds two items of one key")
    ordered = iter(sorted(common, key=lambda item: rank[_step(item, names)]))
    return [next(ordered) if _step(item, names) in rank else item for item in items]


def _at(value: Any, path: Steps) -> Any:
    """`value_at` for what is to be edited: several items of one key are Ambiguous, and no list of all of them."""
    for step in path:
        if step[:2] == "f:":
            value = value.get(step[2:], ABSENT) if isinstance(value, dict) else ABSENT
        elif isinstance(value, list):
            if step[:2] == "i:":
                index = step_value(step)
                value = value[index] if 0 <= index < len(value) else ABSENT
            else:
                names = _names(step)
                found = [item for item in value if _step(item, names) == step]
                if len(found) > 1:
                    raise Ambiguous("a list holds two items of one key")
                value = found[0] if found else ABSENT
        else:
            return ABSENT
        if value is ABSENT:
            return ABSENT
    return value


def _index(items: list[Any], names: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for at, item in enumerate(items):
        step = _step(item, names)
        found[step] = _TWICE if step in found else at
    return found


def _names(step: str) -> tuple[str, ...]:
    return tuple(step_value(step)) if step[:2] == "k:" else ()


def _step(item: Any, names: tuple[str, ...]) -> str:
    """The step to an item; "" for what is no item of such a list."""
    if names:
        return key_step({name: item[name] for name in names if name in item}) if isinstance(item, dict) else ""
    return "" if isinstance(item, dict | list) else value_step(item)


def _bare(step: str) -> Any:
    """An item of which nothing but its keys is known."""
    return dict(step_value(step)) if step[:2] == "k:" else ABSENT
