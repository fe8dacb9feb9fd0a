"""Typed reading of a JSON object that remembers where it stands, so that a fault is named with its place."""

from __future__ import annotations

from typing import Any


class WrongType(Exception):
    """A value of another type than the API says; the text names the place and the type wanted."""


class Place:
    """A JSON object and where it stands in the document: below `parent`, under `name`."""

    __slots__ = ("data", "name", "parent")

    def __init__(self, data: dict[str, Any], parent: Place | None = None, name: str = "") -> None:
        self.data = data
        self.parent = parent
        self.name = name

    @property
    def path(self) -> str:
        """Names from the root, joined by dots; put together only for an error."""
        above = self.parent.path if self.parent is not None else ""
        return f"{above}.{self.name}" if above else self.name

    def wrong(self, name: str, wanted: str) -> WrongType:
        place = f"{self.path}.{name}" if self.path else name
        return WrongType(f"{place} is {wanted}" if name in self.data else f"{place} is missing")

    def part(self, name: str) -> Place:
        value = self.data.get(name)
        if value.__class__ is not dict:
            raise self.wrong(name, "an object")
        return Place(value, self, name)

    def optional(self, name: str) -> Place:
        """The same, empty where nothing stands."""
        return self.part(name) if self.data.get(name) is not None else Place({}, self, name)

    def text(self, name: str, default: str | None = None) -> str:
        value = self.data.get(name, default)
        if value.__class__ is not str:
            raise self.wrong(name, "a text")
        return value

    def texts(self, name: str) -> list[str]:
        value = self.data.get(name)
        if value is None:
            return []
        if value.__class__ is not list or not all(item.__class__ is str for item in value):
            raise self.wrong(name, "a list of texts")
        return value

    def flag(self, name: str) -> bool:
        value = self.data.get(name)
        if value is not None and value.__class__ is not bool:
            raise self.wrong(name, "true or false")
        return bool(value)
