"""FieldPath and the text form of paths: as the API server prints them in conflict messages, so that people can paste.

`.spec.template.spec.containers[name="app"].image`, `.metadata.finalizers[="x"]`, `.spec.ports[port=80,protocol="TCP"]`.
A field whose name is not plain is quoted: `.metadata.labels["app.kubernetes.io/name"]`; what nobody would see is spelt out
in quotes, as `\\u202e`. The server does not quote, so directly below `.metadata.labels` and `.metadata.annotations`,
whose values are never maps, the rest of the text is one name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from webhook.fields.errors import FieldsError
from webhook.fields.shown import visible
from webhook.fields.steps import field_step, index_step, key_step, normal, step_order, step_value, value_step

_PLAIN = re.compile(r"[\w-]+", re.ASCII)
_NAME = re.compile(r"[^.\[\]]+")
_KEY_NAME = re.compile(r"[^=,\[\]\"]+")
_INDEX = re.compile(r"-?[0-9]+(?=\]|$)")
_DECODER = json.JSONDecoder()
IN_BRACKETS = 'in brackets stand keys (name="app"), a member (="x"), an index, "a name" or *'
_FLAT = (("metadata", "labels"), ("metadata", "annotations"))


@dataclass(frozen=True, slots=True)
class Token:
    """One step of a text, before it is known whether it is a path's or a pattern's."""

    kind: Literal["field", "keys", "value", "index", "any"]
    value: Any  # name, dict of keys, set member, int, None
    column: int


def tokens(text: str) -> Iterator[Token]:
    """The steps of a path or pattern text; raises FieldsError with the column of the fault."""
    if not text:
        raise FieldsError("an empty path: write one such as .metadata.labels", text, 0)
    at = 0
    names: tuple[str, ...] = ()  # of the two plain fields just before, to know a flat map
    while at < len(text):
        if text[at] == ".":
            token, at = _field(text, at, flat=names in _FLAT)
            names = (*names[-1:], token.value)
        elif text[at] == "[":
            token, at = _bracket(text, at)
            names = ()
        else:
            wanted = "a path begins with a dot, as .spec" if at == 0 else 'here a "." or a "[" is expected'
            raise FieldsError(wanted, text, at)
        yield token


def _field(text: str, at: int, *, flat: bool) -> tuple[Token, int]:
    match = _NAME.match(text, at + 1)
    if match is None:
        raise FieldsError("a field's name is missing after the dot", text, at + 1)
    if flat and "[" not in text[at:] and "]" not in text[at:]:
        return Token("field", text[at + 1 :], at + 1), len(text)
    return Token("field", match.group(), at + 1), match.end()


def _bracket(text: str, at: int) -> tuple[Token, int]:
    start = at + 1
    if text.startswith("*]", start) or text[start:] == "*":
        return Token("any", None, start), _close(text, start + 1)
    if text.startswith("]", start):
        return Token("keys", {}, start), start + 1
    if (index := _INDEX.match(text, start)) is not None:
        if len(index.group()) > 20 or not -(1 << 63) <= int(index.group()) < 1 << 63:
            raise FieldsError("an index has at most 64 bits", text, start)
        return Token("index", int(index.group()), start), _close(text, index.end())
    if text.startswith("=", start):
        value, end = _json(text, start + 1)
        return Token("value", value, start), _close(text, end)
    if text.startswith('"', start):
        name, end = _json(text, start)
        if not text.startswith("=", end):
            return Token("field", name, start), _close(text, end)
    return _keys(text, start)


def _keys(text: str, start: int) -> tuple[Token, int]:
    keys: dict[str, Any] = {}
    at = start
    while True:
        if text.startswith('"', at):
            name, end = _json(text, at)
        else:
            match = _KEY_NAME.match(text, at)
            if match is None:
                raise FieldsError(IN_BRACKETS, text, at)
            name, end = match.group(), match.end()
        if not text.startswith("=", end):
            raise FieldsError(f'after the key {name} an "=" and a JSON value are expected, as name="app"', text, end)
        keys[name], at = _json(text, end + 1)
        if not text.startswith(",", at):
            return Token("keys", keys, start), _close(text, at)
        at += 1


def _json(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
        return normal(value), end
    except (ValueError, RecursionError):  # among them the FieldsError of a number that is out of range
        hint = (
            "a quoted text that ends"
            if text.startswith('"', at)
            else 'a JSON value (a text in double quotes, as "app")'
        )
        raise FieldsError(f"here {hint} is expected", text, at) from None


def _close(text: str, at: int) -> int:
    if not text.startswith("]", at):
        raise FieldsError('a "]" is expected here', text, min(at, len(text)))
    return at + 1


class FieldPath(tuple[str, ...]):
    """A path to one field: a tuple of canonical steps. Equal paths are equal tuples.

    >>> FieldPath.parse('.spec.containers[name="app"].image')
    FieldPath.parse('.spec.containers[name="app"].image')
    >>> tuple(FieldPath.parse('.metadata.finalizers[="x"]'))
    ('f:metadata', 'f:finalizers', 'v:"x"')
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> FieldPath:
        """Reads the server's text form; raises FieldsError with text and column."""
        return cls(_step(token, text) for token in tokens(text))

    def __str__(self) -> str:
        return render(self)

    def __repr__(self) -> str:
        return f"FieldPath.parse({render(self)!r})"

    def starts_with(self, prefix: tuple[str, ...]) -> bool:
        return self[: len(prefix)] == prefix

    @property
    def order(self) -> tuple[Any, ...]:
        """A sort key: step by step in the server's order."""
        return tuple(step_order(step) for step in self)


def _step(token: Token, text: str) -> str:
    match token.kind:
        case "field":
            return field_step(token.value)
        case "keys":
            return key_step(token.value)
        case "value":
            return value_step(token.value)
        case "index":
            return index_step(token.value)
        case "any":
            raise FieldsError("[*] stands in patterns only; a path names one field", text, token.column)


def render(path: tuple[str, ...]) -> str:
    """The text of a path of canonical steps."""
    return _known_text(path) if sum(map(len, path)) <= _SHORT else _render(path)


def _render(path: tuple[str, ...]) -> str:
    parts: list[str] = []
    for position, step in enumerate(path):
        value = step_value(step)
        if step[:2] == "f:":
            flat = path[max(position - 2, 0) : position] in _FLAT_STEPS
            plain = _PLAIN.fullmatch(value) is not None and not (flat and position + 1 < len(path))
            parts.append(f".{value}" if plain else f"[{_text(value)}]")
        elif step[:2] == "k:":
            parts.append("[" + ",".join(f"{_key_name(name)}={_text(value[name])}" for name in sorted(value)) + "]")
        elif step[:2] == "v:":
            parts.append(f"[={_text(value)}]")
        else:
            parts.append(f"[{value}]")
    return "".join(parts)


_SHORT = 512  # characters of a path whose text is kept
_known_text = lru_cache(maxsize=4096)(_render)


_FLAT_STEPS = tuple((field_step(first), field_step(second)) for first, second in _FLAT)


def _key_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _text(name)


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if text.isprintable():
        return text
    return "".join(part if number % 2 else visible(part) for number, part in enumerate(_SECOND_HALF.split(text)))


_SECOND_HALF = re.compile("((?<=[\ud800-\udbff])[\udc00-\udfff])")
"""Of two halves of a character side by side: where both were spelt out, they would be read as one character."""
