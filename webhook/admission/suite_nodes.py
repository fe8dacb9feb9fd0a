"""Typed reading of YAML nodes: every fault is reported with its place, and reading goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from webhook.fields import FieldPath, FieldsError, Pattern
from webhook.policy.problems import Place, Problem
from webhook.policy.source import Broken, Items, Node, Scalar, Table, plain

Parsed = TypeVar("Parsed")


@dataclass(slots=True)
class Notes:
    """The problems of one file, as they are found."""

    file: str
    problems: list[Problem] = field(default_factory=list)

    def report(
        self,
        rule: str,
        place: Place,
        message: str,
        advice: str = "",
        *,
        text: str | None = None,
        caret: int | None = None,
    ) -> None:
        self.problems.append(
            Problem("error", self.file, place.line, place.column, rule, message, advice, text=text, caret=caret)
        )


class Fields:
    """A mapping with known keys. What is absent is None or empty; what is wrong is reported, and then as if absent."""

    def __init__(self, notes: Notes, table: Table, known: Sequence[str]) -> None:
        self.notes = notes
        self.table = table
        for key, entry in table.entries.items():
            if key not in known:
                near = get_close_matches(key, known, 1)
                advice = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
                notes.report("unknown-key", entry.place, f"there is no key {key} here", advice)

    def __contains__(self, key: str) -> bool:
        return key in self.table.entries

    def place(self, key: str) -> Place:
        """Where a key stands; the mapping's own place where it does not."""
        entry = self.table.entries.get(key)
        return entry.place if entry is not None else self.table.place

    def node(self, key: str) -> Node | None:
        """What stands below a key; an empty key is reported."""
        entry = self.table.entries.get(key)
        if entry is None or (isinstance(entry.node, Scalar) and isinstance(entry.node.value, Broken)):
            return None
        if isinstance(entry.node, Scalar) and entry.node.value is None:
            self.notes.report("empty-value", entry.place, f"{key} is empty", "give it a value, or remove the key")
            return None
        return entry.node

    def require(self, keys: Iterable[str], at: Place) -> bool:
        """Whether all of the keys stand there; those that do not are reported."""
        missing = [key for key in keys if key not in self]
        for key in missing:
            self.notes.report("missing-key", at, f"the key {key} is missing", "add it")
        return not missing

    def text(self, key: str) -> str | None:
        node = self.node(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            self._wrong(node, "a text")
            return None
        if not node.value:
            self.notes.report("empty-value", node.place, f"{key} is empty", "give it a value, or remove the key")
            return None
        return node.value

    def flag(self, key: str) -> bool | None:
        node = self.node(key)
        if node is None:
            return None
        if not isinstance(node, Scalar) or not isinstance(node.value, bool):
            self._wrong(node, "true or false")
            return None
        return node.value

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        text = self.text(key)
        if text is None or text in choices:
            return text
        node = self.table.entries[key].node
        near = get_close_matches(text.lower(), [choice.lower() for choice in choices], 1)
        meant = next((choice for choice in choices if near and choice.lower() == near[0]), None)
        said = f"one of {', '.join(choices)} is expected here"
        self.notes.report("wrong-value", node.place, said, f"did you mean {meant}?" if meant else "write one of these")
        return None

    def items(self, key: str) -> tuple[Node, ...] | None:
        """The items of a list; None where the key is absent or wrong."""
        node = self.node(key)
        if node is None:
            return None
        if not isinstance(node, Items):
            self._wrong(node, "a list", "put it in brackets, or behind a dash")
            return None
        if not node.items:
            self.notes.report("empty-value", node.place, f"{key} is an empty list", "remove the key")
            return None
        return node.items

    def texts(self, key: str) -> tuple[str, ...] | None:
        scalars = self.scalars(key)
        return tuple(scalar.value for scalar in scalars) if scalars is not None else None

    def scalars(self, key: str) -> tuple[Scalar, ...] | None:
        """The texts of a list, with their places."""
        items = self.items(key)
        if items is None:
            return None
        found = []
        for item in items:
            if isinstance(item, Scalar) and isinstance(item.value, str) and item.value:
                found.append(item)
            else:
                self._wrong(item, "a text", "put it in quotes")
        return tuple(found)

    def fields(self, key: str, known: Sequence[str]) -> Fields | None:
        node = self.node(key)
        return self.fields_of(node, known) if node is not None else None

    def fields_of(self, node: Node, known: Sequence[str]) -> Fields | None:
        if not isinstance(node, Table):
            self._wrong(node, "a mapping", f"its keys: {', '.join(known)}")
            return None
        return Fields(self.notes, node, known)

    def paths(self, key: str) -> tuple[FieldPath, ...] | None:
        """The field paths of a list; None where the key is absent or wrong."""
        return self._parsed(key, FieldPath.parse)

    def patterns(self, key: str) -> tuple[Pattern, ...] | None:
        """The patterns of a list; None where the key is absent or wrong."""
        return self._parsed(key, Pattern.parse)

    def _parsed(self, key: str, parse: Callable[[str], Parsed]) -> tuple[Parsed, ...] | None:
        scalars = self.scalars(key) if key in self else None
        if scalars is None:
            return None
        return tuple(found for one in scalars if (found := parsed(self.notes, one, parse)) is not None)

    def by_path(self, key: str) -> tuple[tuple[FieldPath, Node], ...]:
        """A mapping whose keys are field paths."""
        node = self.node(key) if key in self else None
        if node is None:
            return ()
        if not isinstance(node, Table):
            self._wrong(node, "a mapping", "write paths, and behind each a value")
            return ()
        if not node.entries:
            self.notes.report("empty-value", node.place, f"{key} is an empty mapping", "remove the key")
        return tuple(
            (path, entry.node)
            for text, entry in node.entries.items()
            if (path := parsed(self.notes, Scalar(entry.place, text), FieldPath.parse)) is not None
        )

    def _wrong(self, node: Node, wanted: str, advice: str = "") -> None:
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, Broken):
            self.notes.report("wrong-type", node.place, f"{wanted} is expected here", advice or f"write {wanted}")


def parsed(notes: Notes, scalar: Scalar, parse: Callable[[str], Parsed]) -> Parsed | None:
    """A path or pattern; None and a caret at the fault where it cannot be read."""
    try:
        return parse(scalar.value)
    except FieldsError as error:
        caret = error.column if error.text == scalar.value else None
        notes.report(
            "bad-path",
            scalar.at(caret) if caret is not None else scalar.place,
            error.message,
            "write paths as the API server prints them, such as .spec.replicas",
            text=scalar.value if caret is not None else None,
            caret=caret,
        )
        return None


def data(node: Node) -> Any:
    """Plain data; what could not be read, and is reported already, becomes nothing."""
    return _without_broken(plain(node))


def _without_broken(value: Any) -> Any:
    match value:
        case Broken():
            return None
        case dict():
            return {key: _without_broken(below) for key, below in value.items()}
        case list():
            return [_without_broken(item) for item in value]
    return value
