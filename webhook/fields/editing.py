"""Values put at a path, or taken away there: copies along the path, everything else shared with what was given."""

from __future__ import annotations

from typing import Any, TypeAlias

from webhook.fields.errors import FieldsError
from webhook.fields.steps import key_step, step_value, value_step
from webhook.fields.values import ABSENT

Steps: TypeAlias = tuple[str, ...]


class Ambiguous(FieldsError):
    """A list in which the item of a path stands more than once, or a value that has no parts where parts are named."""


def with_value(whole: Any, path: Steps, value: Any, like: Any = ABSENT) -> Any:
    """A copy that has a value at a path; parents that are missing are made.

    An item that the list does not have is put where it stands in `like`, another state of the whole: after the nearest
    item before it there that this list has too. Raises Ambiguous.

    >>> was = {"f": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    >>> with_value({"f": [{"name": "a"}, {"name": "c"}]}, ("f:f", 'k:{"name":"b"}'), {"name": "b"}, was)
    {'f': [{'name': 'a'}, {'name': 'b'}, {'name': 'c'}]}
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if step[:2] == "f:":
        made = dict(whole) if isinstance(whole, dict) else {}
        name = step[2:]
        before = like.get(name, ABSENT) if isinstance(like, dict) else ABSENT
        made[name] = with_value(made.get(name, ABSENT), rest, value, before)
        return made
    items = list(whole) if isinstance(whole, list) else []
    others = like if isinstance(like, list) else []
    at, there = _position(items, step), _position(others, step)
    before = others[there] if there is not None else ABSENT
    if at is not None:
        items[at] = with_value(items[at], rest, value, before)
    else:
        item = with_value(_bare(step), rest, value, before) if rest else value
        items.insert(_place(items, others, there, step), item)
    return items


def without_value(whole: Any, path: Steps) -> Any:
    """A copy without the field or item at a path; the same object where it has none. Raises Ambiguous."""
    step, rest = path[0], path[1:]
    if step[:2] == "f:":
        name = step[2:]
        if not isinstance(whole, dict) or name not in whole:
            return whole
        if rest:
            return {**whole, name: without_value(whole[name], rest)}
        return {key: below for key, below in whole.items() if key != name}
    at = _position(whole, step) if isinstance(whole, list) else None
    if at is None:
        return whole
    if rest:
        return [*whole[:at], without_value(whole[at], rest), *whole[at + 1 :]]
    return [*whole[:at], *whole[at + 1 :]]


def in_order_of(items: list[Any], like: list[Any], names: tuple[str, ...]) -> list[Any]:
    """The same items, those that `like` has too in its order; the others stay where they stand.

    >>> in_order_of([{"name": "b"}, {"name": "new"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}], ("name",))
    [{'name': 'a'}, {'name': 'new'}, {'name': 'b'}]
    """
    rank = {_step(item, names): position for position, item in enumerate(like)}
    common = [item for item in items if _step(item, names) in rank]
    if len({_step(item, names) for item in common}) != len(common):
        raise Ambiguous("a list holds two items of one key")
    ordered = iter(sorted(common, key=lambda item: rank[_step(item, names)]))
    return [next(ordered) if _step(item, names) in rank else item for item in items]


def _position(items: list[Any], step: str) -> int | None:
    if step[:2] == "i:":
        index = step_value(step)
        return index if 0 <= index < len(items) else None
    names = tuple(step_value(step)) if step[:2] == "k:" else ()
    found = [at for at, item in enumerate(items) if _step(item, names) == step]
    if len(found) > 1:
        raise Ambiguous("a list holds two items of one key")
    return found[0] if found else None


def _place(items: list[Any], like: list[Any], there: int | None, step: str) -> int:
    if there is None:
        return len(items)
    names = tuple(step_value(step)) if step[:2] == "k:" else ()
    known = {_step(item, names): at for at, item in enumerate(items)}
    for item in reversed(like[:there]):
        if (at := known.get(_step(item, names))) is not None:
            return at + 1
    return min((known[_step(item, names)] for item in like[there + 1 :] if _step(item, names) in known), default=0)


def _step(item: Any, names: tuple[str, ...]) -> str:
    """The step to an item; "" for what is no item of such a list."""
    if names:
        return key_step({name: item[name] for name in names if name in item}) if isinstance(item, dict) else ""
    return "" if isinstance(item, dict | list) else value_step(item)


def _bare(step: str) -> Any:
    """An item of which nothing but its keys is known."""
    return dict(step_value(step)) if step[:2] == "k:" else ABSENT
