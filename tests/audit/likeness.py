"""What two API servers are to have alike, and how one's names for a thing are turned into the other's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

MADE = frozenset({"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "clusterIP", "clusterIPs"})
"""What a server makes up for itself: that it is there is compared, and not what it says."""


def plain(value: Any) -> Any:
    """A copy without what a server makes up, nor times and order of claims.

    >>> plain({"uid": "4a", "metadata": {"labels": {"uid": "mine"}}})
    {'uid': '', 'metadata': {'labels': {'uid': 'mine'}}}
    """
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    copy: Object = {}
    for name, item in value.items():
        if name in MADE:
            copy[name] = ""
        elif name in ("labels", "annotations", "data"):  # names of people's own
            copy[name] = item
        elif name == "managedFields":
            copy[name] = sorted((_timeless(claim) for claim in item or ()), key=json.dumps)
        else:
            copy[name] = plain(item)
    return copy


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two plain values differ, without the values.

    >>> list(differences({"a": [1, 2]}, {"a": [1, 3], "b": 1}))
    ['.a[1]', '.b']
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            if name not in one or name not in other:
                yield f"{path}.{name}"
            else:
                yield from differences(one[name], other[name], f"{path}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{path}[{at}]")
    elif one != other:
        yield path or "."


def unlike(one: Object, other: Object) -> list[str]:
    """Where two objects or answers differ. The order of claims follows their times, so it is one where the times are."""
    found = list(differences(plain(one), plain(other)))
    if not found and times(one) == times(other) and _names(one) != _names(other):
        found = [".metadata.managedFields"]
    return found


def times(item: Object) -> list[str]:
    """When claims were made, to the second."""
    return [claim.get("time", "") for claim in _claims(item)]


def _names(item: Object) -> list[tuple[str, ...]]:
    return [tuple(str(claim.get(key)) for key in ("manager", "operation", "subresource")) for claim in _claims(item)]


def _claims(item: Object) -> list[Object]:
    metadata = item.get("metadata")
    return (metadata.get("managedFields") or []) if isinstance(metadata, dict) else []


def _timeless(claim: Any) -> Any:
    return {name: item for name, item in claim.items() if name != "time"} if isinstance(claim, dict) else claim


class Names:
    """What the servers call the same thing, learned from objects that both have."""

    def __init__(self) -> None:
        self._things: dict[str, str] = {}  # uids and addresses
        self._versions: dict[str, str] = {}

    def learn(self, ours: Object, theirs: Object) -> None:
        if not ours or not theirs:
            return
        mine, other = ours["metadata"], theirs["metadata"]
        self._things[mine["uid"]] = other["uid"]
        self._versions[mine["resourceVersion"]] = other["resourceVersion"]
        spec = ours.get("spec"), theirs.get("spec")
        if all(isinstance(each, dict) and "clusterIP" in each for each in spec):
            self._things[ours["spec"]["clusterIP"]] = theirs["spec"]["clusterIP"]

    def translated(self, value: Any) -> Any:
        """What is said of an object of ours, as it is said of theirs; JSON patches are understood too."""
        if isinstance(value, list):
            return [self.translated(item) for item in value]
        if isinstance(value, str):
            return self._things.get(value, value)
        if not isinstance(value, dict):
            return value
        if "op" in value and str(value.get("path", "")).endswith("/resourceVersion"):
            return {**value, "value": self._versions.get(str(value.get("value")), value.get("value"))}
        return {
            name: self._versions.get(item, item) if name == "resourceVersion" else self.translated(item)
            for name, item in value.items()
        }

    def text(self, text: str, uid: str) -> str:
        """A message about our object, as it reads about theirs."""
        return text.replace(uid, self._things.get(uid, uid)) if uid else text
