"""The JSON Patch from one object to another: managedFields whole or not at all, values by the smallest operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonpatch
import jsonpointer

from webhook.fields.values import same

Operation = dict[str, Any]


def operations(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Operation, ...]:
    """JSON Patch operations (RFC 6902). What both objects share by identity is not looked into."""
    return tuple(_members(before, after, ""))


def applied(before: Mapping[str, Any], patch: tuple[Operation, ...]) -> dict[str, Any]:
    """The object that a receiver of the patch ends with. Raises jsonpatch.JsonPatchException.

    It shares with the object before it, which stays as it is, all that no operation reaches.
    """
    made: dict[str, Any] = dict(before)
    mine: dict[int, Any] = {id(made): made}
    for operation in patch:
        if "from" in operation:
            _open(made, jsonpointer.JsonPointer(operation["from"]).parts[:-1], mine)
        *steps, last = jsonpointer.JsonPointer(operation["path"]).parts
        parent = _open(made, steps, mine)
        value = operation.get("value")
        shared = _as_it_is(value)
        jsonpatch.JsonPatch([{**operation, "value": shared}]).apply(made, in_place=True)
        if shared is not value and parent is not None:
            parent[last if isinstance(parent, dict) else -1 if last == "-" else int(last)] = value
    return made


def _open(whole: Any, steps: list[str], mine: dict[int, Any]) -> Any:
    """Copies the containers on the way to a place, so that what is changed there is nobody else's; the last one."""
    for step in steps:
        key: Any = step if isinstance(whole, dict) else int(step) if step.isdigit() else None
        try:
            inner = whole[key]
        except (LookupError, TypeError):
            return None  # jsonpatch says what is wrong
        if not isinstance(inner, dict | list):
            return None
        if id(inner) not in mine:
            whole[key] = inner = inner.copy()
            mine[id(inner)] = inner
        whole = inner
    return whole


class _List(list[Any]):
    def __deepcopy__(self, _: object) -> _List:
        return self


class _Dict(dict[str, Any]):
    def __deepcopy__(self, _: object) -> _Dict:
        return self


def _as_it_is(value: Any) -> Any:
    """A value that jsonpatch does not copy: nothing of it is changed, and a large object's claims are long."""
    return _List(value) if isinstance(value, list) else _Dict(value) if isinstance(value, dict) else value


def _members(before: Mapping[str, Any], after: Mapping[str, Any], where: str) -> Iterator[Operation]:
    for name, was in before.items():
        path = f"{where}/{jsonpointer.escape(name)}"
        if name not in after:
            yield {"op": "remove", "path": path}
        elif (now := after[name]) is not was:
            yield from _values(was, now, path)
    for name, now in after.items():
        if name not in before:
            yield {"op": "add", "path": f"{where}/{jsonpointer.escape(name)}", "value": now}


def _values(was: Any, now: Any, path: str) -> Iterator[Operation]:
    if path == "/metadata/managedFields":
        if was != now:
            yield {"op": "replace", "path": path, "value": now}
    elif isinstance(was, dict) and isinstance(now, dict):
        yield from _members(was, now, path)
    elif same(was, now):
        return
    elif isinstance(was, list) and isinstance(now, list):
        yield from _items(was, now, path)
    else:
        yield {"op": "replace", "path": path, "value": now}


def _items(was: list[Any], now: list[Any], path: str) -> Iterator[Operation]:
    """Items that came, went, or changed in their places; anything else is jsonpatch's to find the least for."""
    shorter = min(len(was), len(now))
    start = next((at for at in range(shorter) if not same(was[at], now[at])), shorter)
    end = next((at for at in range(shorter - start) if not same(was[-1 - at], now[-1 - at])), shorter - start)
    gone, come = was[start : len(was) - end], now[start : len(now) - end]
    if len(gone) == len(come) == len(was) - start - end and all(map(_alike, gone, come)):
        for at, (one, other) in enumerate(zip(gone, come, strict=True), start):
            yield from _values(one, other, f"{path}/{at}")
    elif gone and come:
        for operation in jsonpatch.make_patch(was, now):
            moved = {"from": path + operation["from"]} if "from" in operation else {}
            yield {**operation, "path": path + operation["path"], **moved}
    else:
        yield from ({"op": "remove", "path": f"{path}/{start}"} for _ in gone)
        yield from ({"op": "add", "path": f"{path}/{at}", "value": item} for at, item in enumerate(come, start))


def _alike(one: Any, other: Any) -> bool:
    """Whether one item looks like another state of the other: maps with the same name, or with none."""
    return isinstance(one, dict) and isinstance(other, dict) and one.get("name") == other.get("name")
