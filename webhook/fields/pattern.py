"""Patterns: paths with `*`, which select the node that they name and all below it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from webhook.fields import trie
from webhook.fields.errors import FieldsError, TooDeep
from webhook.fields.fieldset import EMPTY, FieldSet
from webhook.fields.path import IN_BRACKETS, Token, tokens
from webhook.fields.steps import canonical_step, field_step, index_step, step_value, value_step


@dataclass(frozen=True, slots=True)
class _Exact:
    """One step, spelt out."""

    step: str

    def matches(self, step: str) -> bool:
        return step == self.step


@dataclass(frozen=True, slots=True)
class _Any:
    """`[*]`: every item of a list, every member of a set, every key of a map."""

    def matches(self, step: str) -> bool:
        return step != "."


@dataclass(frozen=True, slots=True)
class _Name:
    """A field's name with `*` in it."""

    regex: re.Pattern[str]

    def matches(self, step: str) -> bool:
        return step[:2] == "f:" and self.regex.fullmatch(step, 2) is not None


@dataclass(frozen=True, slots=True)
class _Member:
    """A set member that is a text with `*` in it."""

    regex: re.Pattern[str]

    def matches(self, step: str) -> bool:
        if step[:2] != "v:":
            return False
        value = step_value(step)
        return isinstance(value, str) and self.regex.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class _Keys:
    """Items with these keys; keys that the pattern does not name may have any value."""

    keys: tuple[tuple[str, Any], ...]  # a text with `*` stands as a compiled expression

    def matches(self, step: str) -> bool:
        if step[:2] != "k:":
            return False
        have = step_value(step)
        return all(name in have and _equal(wanted, have[name]) for name, wanted in self.keys)


_Matcher = _Exact | _Any | _Name | _Member | _Keys


@dataclass(frozen=True, slots=True)
class Pattern:
    """A path in which `*` stands for any characters of a name or text, and `[*]` for any item.

    >>> claimed = FieldSet.from_fields_v1({"f:metadata": {"f:labels": {"f:app": {}, "f:team": {}}, "f:finalizers": {}}})
    >>> [str(path) for path in Pattern.parse(".metadata.labels").select(claimed)]
    ['.metadata.labels.app', '.metadata.labels.team']
    """

    text: str
    matchers: tuple[_Matcher, ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Reads a pattern; raises FieldsError with text and column."""
        return cls(text, tuple(_matcher(token, text) for token in tokens(text)))

    def __str__(self) -> str:
        return self.text

    def select(self, paths: FieldSet) -> FieldSet:
        """The members at the nodes that the pattern names, and below them."""
        return self._found(paths, above=False)

    def touched(self, paths: FieldSet) -> FieldSet:
        """`select`, and the leaves above what the pattern names: a whole list replaced touches its items."""
        return self._found(paths, above=True)

    def _found(self, paths: FieldSet, *, above: bool) -> FieldSet:
        try:
            found = _select(paths.root, self.matchers, above=above)
        except RecursionError:
            raise TooDeep from None
        return FieldSet.of(found) if found else EMPTY

    def touches(self, path: tuple[str, ...]) -> bool:
        """Whether a path lies at, below or above what the pattern names."""
        return all(matcher.matches(step) for matcher, step in zip(self.matchers, path, strict=False))

    @property
    def literal(self) -> bool:
        """Whether the pattern names exactly one path."""
        return all(isinstance(matcher, _Exact) for matcher in self.matchers)


def _select(node: trie.Node, matchers: tuple[_Matcher, ...], *, above: bool) -> trie.Node | None:
    first, rest = matchers[0], matchers[1:]
    if isinstance(first, _Exact):
        steps = [first.step] if first.step in node else []
    else:
        steps = [step for step in node if step != "." and first.matches(step)]
    out: trie.Node = {}
    for step in steps:
        below = node[step]
        if not rest:
            out[step] = below
        elif not below:
            if above:
                out[step] = below
        elif (found := _select(below, rest, above=above)) is not None:
            out[step] = found
    return out or None


def _matcher(token: Token, text: str) -> _Matcher:
    match token.kind:
        case "any":
            return _Any()
        case "index":
            return _Exact(index_step(token.value))
        case "field":
            return _Name(_glob(token.value)) if "*" in token.value else _Exact(field_step(token.value))
        case "value":
            if isinstance(token.value, str) and "*" in token.value:
                return _Member(_glob(token.value))
            return _Exact(value_step(token.value))
        case "keys":
            if not token.value:
                raise FieldsError(IN_BRACKETS, text, token.column)
            for name, value in token.value.items():
                if isinstance(value, dict | list):
                    raise FieldsError(f"the key {name} holds a text, a number or a boolean", text, token.column)
            return _Keys(tuple((name, _wanted(value)) for name, value in sorted(token.value.items())))


def _wanted(value: Any) -> Any:
    return _glob(value) if isinstance(value, str) and "*" in value else canonical_step(value_step(value))


def _equal(wanted: Any, have: Any) -> bool:
    if isinstance(wanted, re.Pattern):
        return isinstance(have, str) and wanted.fullmatch(have) is not None
    return bool(wanted == value_step(have))


def _glob(text: str) -> re.Pattern[str]:
    return glob(map(re.escape, text.split("*")))


def glob(parts: Iterable[str]) -> re.Pattern[str]:
    """An expression that fits whole texts with these parts (expressions themselves) and anything between them.

    Each part is taken where it first fits, and for good: no text makes the search go back and forth.
    """
    first, *middle, last = parts
    return re.compile(f"{first}{''.join(f'(?>.*?{part})' for part in middle if part)}.*{last}", re.DOTALL)
