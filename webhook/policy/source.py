"""YAML to nodes that know their places: every problem of the text itself is found here, and none raises.

Anchors, aliases and merge keys mean what they mean to kubectl. What a policy never needs is refused: other tags than
YAML's own scalars, keys that are no text, aliases that grow without bound, nesting beyond 64 levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import yaml
from yaml.constructor import SafeConstructor

from webhook.policy.problems import Place, Problem, problem

MAX_BYTES = 1 << 20
"""A ConfigMap cannot hold more either."""
MAX_DEPTH = 64
MAX_NODES = 20_000
"""In one document, every alias counted as what it stands for."""
_MAX_FAULTS = 20

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINES = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Broken:
    """Stands for a value that is already reported, so that nothing more is said of it."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One text, number, boolean or null. `raw` is its source where that differs from the text, on one line."""

    place: Place
    value: Any
    raw: str | None = None

    def at(self, offset: int) -> Place:
        """The place in the file of a character of the text; the scalar's own where lines are folded."""
        if self.raw is None:
            return self.place
        return Place(self.place.line, self.place.column + _raw_offset(self.raw, offset))


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a table and what it holds."""

    place: Place
    node: Node


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping; keys are texts, each once."""

    place: Place
    entries: dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    place: Place
    items: tuple[Node, ...]


Node: TypeAlias = "Scalar | Table | Items"


@dataclass(frozen=True, slots=True)
class Source:
    """The documents of one text (empty ones left out), and what is wrong with the text."""

    documents: tuple[Node, ...]
    problems: tuple[Problem, ...]


def decode(data: bytes, file: str) -> str | Problem:
    """UTF-8, with or without a byte order mark."""
    if len(data) > MAX_BYTES:
        return problem("yaml-limit", file, Place(1, 1), f"the file is over {MAX_BYTES >> 20} MiB")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return problem("yaml-syntax", file, Place(1, 1), "the file is UTF-16", advice="save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        return problem("yaml-syntax", file, _end(before), "the file is not UTF-8", advice="save it as UTF-8")


def read(text: str, file: str) -> Source:
    """All documents of a text. After a fault, reading goes on at the next document."""
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_BYTES:
        return Source((), (problem("yaml-limit", file, Place(1, 1), f"the text is over {MAX_BYTES >> 20} MiB"),))
    if (bad := _UNPRINTABLE.search(text)) is not None:
        code = f"U+{ord(bad.group()):04X}"
        place = _end(text[: bad.start()])
        said = f"the character {code} may not stand in YAML"
        return Source((), (problem("yaml-syntax", file, place, said, advice="remove it, or write it as an escape"),))
    documents: list[Node] = []
    problems: list[Problem] = []
    first_line = 0
    for _ in range(_MAX_FAULTS):
        reader = _Reader(text, file, first_line)
        found = reader.read()
        documents += found.documents
        problems += found.problems
        rest = _DOCUMENT.search(text, reader.stopped_at) if reader.stopped_at is not None else None
        if rest is None:
            break
        first_line += len(_LINES.findall(text, 0, rest.start()))
        text = text[rest.start() :]
    return Source(tuple(documents), tuple(problems))


def plain(node: Node) -> Any:
    """The data alone: dict, list, str, int, float, bool, None, Broken."""
    match node:
        case Scalar():
            return node.value
        case Items():
            return [plain(item) for item in node.items]
        case Table():
            return {key: plain(entry.node) for key, entry in node.entries.items()}


def find_value(root: Node, key: str) -> Any:
    """The scalar below a key of a table; None where there is none."""
    entry = root.entries.get(key) if isinstance(root, Table) else None
    return entry.node.value if entry is not None and isinstance(entry.node, Scalar) else None


class _StopError(Exception):
    """Ends the reading of a text: what follows could not be trusted."""

    def __init__(self, found: Problem) -> None:
        self.found = found


@dataclass(frozen=True, slots=True)
class _Sized:
    node: Node
    size: int
    height: int


class _Reader:
    """Reads one text up to its end or its first fault."""

    def __init__(self, text: str, file: str, first_line: int) -> None:
        self.text = text
        self.file = file
        self.first_line = first_line
        self.stopped_at: int | None = None  # the offset behind a fault
        self._lines = _LINES.split(text)
        self._problems: list[Problem] = []
        self._anchors: dict[str, _Sized | None] = {}  # None: still open
        self._events: Iterator[yaml.Event] = iter(())

    def read(self) -> Source:
        documents: list[Node] = []
        try:
            self._events = yaml.parse(self.text, Loader=_LOADER)
            for event in self._events:
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors = {}
                    root = self._node(next(self._events), 1).node
                    if not (isinstance(root, Scalar) and root.value is None):
                        documents.append(root)
        except yaml.MarkedYAMLError as error:
            self._stop(error)
        except _StopError as stop:
            self._problems.append(stop.found)
            self.stopped_at = self._offset(stop.found.line - self.first_line)
        except yaml.YAMLError:
            self._report("yaml-syntax", self._place_at(0, 0), "the text cannot be read as YAML")
        return Source(tuple(documents), tuple(self._problems))

    def _stop(self, error: yaml.MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        place = self._place(mark) if mark is not None else self._place_at(0, 0)
        said = ", ".join(part for part in (error.problem, error.context) if part)
        self._report("yaml-syntax", place, f"this is not YAML: {said}")
        self.stopped_at = self._offset(place.line - self.first_line)

    def _offset(self, line: int) -> int:
        """Where the line after this one begins."""
        breaks = list(_LINES.finditer(self.text))
        return breaks[line - 1].end() if line - 1 < len(breaks) else len(self.text)

    def _node(self, event: yaml.Event, depth: int) -> _Sized:
        if depth > MAX_DEPTH:
            raise _StopError(
                problem("yaml-limit", self.file, self._place(event.start_mark), f"over {MAX_DEPTH} levels deep")
            )
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            made = _Sized(self._scalar(event), 1, 1)
        elif isinstance(event, yaml.SequenceStartEvent):
            made = self._items(event, depth)
        else:
            made = self._table(event, depth)
        if made.size > MAX_NODES:
            said = f"with its aliases the document has over {MAX_NODES} values"
            raise _StopError(problem("yaml-limit", self.file, self._place(event.start_mark), said))
        if anchor is not None:
            self._anchors[anchor] = made
        return made

    def _alias(self, event: yaml.AliasEvent, depth: int) -> _Sized:
        place = self._place(event.start_mark)
        if event.anchor not in self._anchors:
            said, advice = f"no anchor &{event.anchor} stands before this alias", "name an anchor of this document"
            self._report("yaml-syntax", place, said, advice)
            return _Sized(Scalar(place, Broken()), 1, 1)
        target = self._anchors[event.anchor]
        if target is None:
            self._report(
                "yaml-syntax", place, f"the alias *{event.anchor} stands inside of its own anchor", "remove it"
            )
            return _Sized(Scalar(place, Broken()), 1, 1)
        if depth + target.height > MAX_DEPTH:
            raise _StopError(problem("yaml-limit", self.file, place, f"over {MAX_DEPTH} levels deep"))
        return target

    def _items(self, event: yaml.SequenceStartEvent, depth: int) -> _Sized:
        self._check_tag(event, "seq")
        items: list[Node] = []
        size, height = 1, 0
        for below in self._events:
            if isinstance(below, yaml.SequenceEndEvent):
                break
            made = self._node(below, depth + 1)
            items.append(made.node)
            size, height = self._grow(size + made.size, below), max(height, made.height)
        return _Sized(Items(self._place(event.start_mark), tuple(items)), size, height + 1)

    def _table(self, event: yaml.Event, depth: int) -> _Sized:
        self._check_tag(event, "map")
        entries: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        size, height = 1, 0
        for below in self._events:
            if isinstance(below, yaml.MappingEndEvent):
                break
            place = self._place(below.start_mark)
            key = self._key(below, depth)
            made = self._node(next(self._events), depth + 1)
            size, height = self._grow(size + made.size + 1, below), max(height, made.height)
            if key == "<<" and isinstance(below, yaml.ScalarEvent) and below.implicit[0]:
                merged = {**self._merge(made.node, place), **merged}
            elif key in entries:
                first = entries[key].place.line
                self._report("duplicate-key", place, f"the key {_shown(key)} stands twice (first on line {first})")
            elif key is not None:
                entries[key] = Entry(place, made.node)
        return _Sized(Table(self._place(event.start_mark), {**merged, **entries}), size + len(merged), height + 1)

    def _grow(self, size: int, event: yaml.Event) -> int:
        if size > MAX_NODES:
            said = f"with its aliases the document has over {MAX_NODES} values"
            raise _StopError(problem("yaml-limit", self.file, self._place(event.start_mark), said))
        return size

    def _merge(self, node: Node, place: Place) -> dict[str, Entry]:
        if isinstance(node, Table):
            return dict(node.entries)
        if isinstance(node, Items) and all(isinstance(item, Table) for item in node.items):
            out: dict[str, Entry] = {}
            for item in node.items:
                out = {**item.entries, **out} if isinstance(item, Table) else out
            return out
        if not (isinstance(node, Scalar) and node.value == Broken()):
            self._report("yaml-syntax", place, "<< merges mappings, and this is none", "write <<: *anchor-of-a-mapping")
        return {}

    def _key(self, event: yaml.Event, depth: int) -> str | None:
        if isinstance(event, yaml.ScalarEvent):
            if event.anchor is not None:
                self._anchors[event.anchor] = _Sized(self._scalar(event), 1, 1)
            return str(event.value)  # as it is written: `on` and `1` are texts here
        place = self._place(event.start_mark)
        made = self._node(event, depth + 1).node
        if isinstance(event, yaml.AliasEvent) and isinstance(made, Scalar) and isinstance(made.value, str):
            return made.value
        if not (isinstance(made, Scalar) and made.value == Broken()):
            self._report("yaml-syntax", place, "a key is a text", "write key: value")
        return None

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        place = self._place(event.start_mark)
        raw = None
        start: Any = event.start_mark
        end: Any = event.end_mark
        if start.line == end.line < len(self._lines):
            raw = self._lines[start.line][start.column : end.column]
            if (event.anchor or event.tag) and (properties := _PROPERTIES.match(raw)) is not None:
                place = replace(place, column=place.column + properties.end())
                raw = raw[properties.end() :]
        return Scalar(place, self._value(event, place), raw)

    def _value(self, event: yaml.ScalarEvent, place: Place) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = _resolve(event.value) if event.implicit[0] and tag is None else _TAG + "str"
        node = yaml.ScalarNode(tag, event.value)
        try:
            match tag.removeprefix(_TAG):
                case "str" | "timestamp" | "value" | "merge":
                    event.value.encode()
                    return event.value
                case "null":
                    return None
                case "bool":
                    return SafeConstructor.bool_values[event.value.lower()]
                case "int":
                    return SafeConstructor().construct_yaml_int(node)
                case "float":
                    return SafeConstructor().construct_yaml_float(node)
        except (ValueError, KeyError, IndexError, OverflowError):
            self._report("yaml-syntax", place, f"this is no {tag.removeprefix(_TAG)}", "put a text in quotes")
            return Broken()
        self._report_tag(event)
        return Broken()

    def _check_tag(self, event: Any, expected: str) -> None:
        if event.tag not in (None, "!", _TAG + expected):
            self._report_tag(event)

    def _report_tag(self, event: Any) -> None:
        tag = _shown(event.tag.replace(_TAG, "!!"))
        place = self._place(event.start_mark)
        self._report("yaml-syntax", place, f"the tag {tag} is not for policies", "remove the tag")

    def _place(self, mark: Any) -> Place:
        """The parser may speak of a line behind the last: that is the text's end."""
        if mark.line >= len(self._lines):
            return self._place_at(len(self._lines) - 1, len(self._lines[-1]))
        return self._place_at(mark.line, mark.column)

    def _place_at(self, line: int, column: int) -> Place:
        return Place(line + self.first_line + 1, column + 1)

    def _report(self, rule: str, place: Place, message: str, advice: str | None = None) -> None:
        self._problems.append(problem(rule, self.file, place, message, advice=advice))


def _resolve(value: str) -> str:
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    for tag, expression in resolvers.get(value[:1], []) + resolvers.get(None, []):
        if expression.match(value):
            return str(tag)
    return _TAG + "str"


def _raw_offset(raw: str, offset: int) -> int:
    """Where in a scalar's source a character of its text stands."""
    if raw[:1] == '"':
        escapes = list(_ESCAPE.finditer(raw, 1))
        return escapes[offset].start() if offset < len(escapes) else len(raw)
    if raw[:1] == "'":
        at = 1
        for _ in range(offset):
            at += 2 if raw.startswith("''", at) else 1
        return at
    return offset


def _end(text: str) -> Place:
    lines = _LINES.split(text)
    return Place(len(lines), len(lines[-1]) + 1)


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
