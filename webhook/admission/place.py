"""Typed reading of a JSON object that remembers where it stands, so that a fault is named with its place."""

from __future__ import annotations

from typing import Any


class WrongType(Exception):
    """A value of another type than the API says; the text names the place and the type wanted."""


class Place:
    """A JSON object and its path in the document."""

    __slots__ = ("data", "path")

    def __init__(self, data: dict[str, Any], path: str) -> None:
        self.data = data
        self.path = path

    def _wrong(self, name: str, wanted: str) -> WrongType:
        place = f"{self.path}.{name}" if self.path else name
        return WrongType(f"{place} is {wanted}" if name in self.data else f"{place} is missing")

    def part(self, name: str) -> Place:
        value = self.data.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Place(value, f"{self.path}.{name}" if self.path else name)

    def optional(self, name: str) -> Place:
        """The same, empty where nothing stands."""
        return self.part(name) if self.data.get(name) is not None else Place({}, f"{self.path}.{name}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self.data.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def texts(self, name: str) -> list[str]:
        value = self.data.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of texts")
        return value

    def flag(self, name: str) -> bool:
        value = self.data.get(name)
        if not isinstance(value, bool | None):
            raise self._wrong(name, "true or false")
        return bool(value)
