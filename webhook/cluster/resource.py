"""A FieldPolicy as the API server shows it: the linter's problems, with the path of each field."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.policy import Problem, load_text
from webhook.policy.source import Items, Node, Table, read

GROUP, VERSION, PLURAL = "fieldwarden.dev", "v1alpha1", "fieldpolicies"
POLICIES = f"/apis/{GROUP}/{VERSION}/{PLURAL}"
NAMESPACES = "/api/v1/namespaces"

UNTRUE = frozenset({"namespace-labels"})
"""Kinds of problems that a policy cannot have in a cluster, where the labels of namespaces are known."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_SHOWN = ("name",)  # of the metadata: the rest has no meaning here, and changes without the policy changing


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A problem, and the path of the field that has it, such as spec.rules[0].ownership.fields[1]."""

    path: str
    problem: Problem

    @property
    def words(self) -> str:
        """What the linter says, without the place in a file that nobody has."""
        advice = f" ({self.problem.advice})" if self.problem.advice else ""
        return f"{self.problem.message}{advice} [{self.problem.rule}]"

    @property
    def drawn(self) -> str:
        """The same, with a text that cannot be read below it, and a caret at the fault."""
        text, caret = self.problem.text, self.problem.caret
        return self.words if text is None or caret is None else f"{self.words}\n  {text}\n  {' ' * caret}^"

    @property
    def is_error(self) -> bool:
        return self.problem.severity == "error"

    def __str__(self) -> str:
        return f"{self.path}: {self.words}" if self.path else self.words


def name_of(resource: Mapping[str, Any]) -> str:
    return str(resource.get("metadata", {}).get("name", ""))


def text_of(resource: Mapping[str, Any]) -> str:
    """What of a resource makes the policy, as a document: the same text for the same policy, whatever its status.

    >>> print(text_of({"kind": "FieldPolicy", "metadata": {"name": "a", "uid": "1"}, "spec": {}, "status": {}}))
    {
     "kind": "FieldPolicy",
     "metadata": {
      "name": "a"
     },
     "spec": {}
    }
    """
    metadata = resource.get("metadata")
    kept = {key: value for key, value in metadata.items() if key in _SHOWN} if isinstance(metadata, Mapping) else {}
    policy = {key: resource[key] for key in ("apiVersion", "kind") if key in resource}
    policy["metadata"] = kept
    if "spec" in resource:
        policy["spec"] = resource["spec"]
    # JSON is YAML, with a place of its own for every table and list; only some characters must be escaped for it.
    text = json.dumps(policy, indent=1, ensure_ascii=False)
    return "\n".join(_UNPRINTABLE.sub(_escaped, line) for line in text.split("\n"))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def problems_of(resource: Mapping[str, Any], *, strict: bool = False) -> tuple[FieldProblem, ...]:
    """All that is wrong with one resource by itself, in the order of its fields."""
    text = text_of(resource)
    loaded = load_text(text, f"{PLURAL}/{name_of(resource)}", strict=strict)
    return located(loaded.problems, text)


def located(problems: tuple[Problem, ...], text: str) -> tuple[FieldProblem, ...]:
    """Problems of one text by their fields, without those that a cluster makes untrue."""
    paths = _Paths(text)
    return tuple(FieldProblem(paths.at(one.line, one.column), one) for one in problems if one.rule not in UNTRUE)


class _Paths:
    """Which field is at a place of a document."""

    def __init__(self, text: str) -> None:
        documents = read(text, "").documents
        found = sorted(_places(documents[0], "")) if documents else []
        self._starts = [(line, column) for line, column, _ in found]
        self._paths = [path for _, _, path in found]

    def at(self, line: int, column: int) -> str:
        """The last field that begins there or before; a fault may lie within a text."""
        index = bisect_right(self._starts, (line, column))
        return self._paths[index - 1] if index else ""


def _places(node: Node, path: str) -> Iterator[tuple[int, int, str]]:
    yield node.place.line, node.place.column, path
    if isinstance(node, Table):
        for name, entry in node.entries.items():
            below = _child(path, name)
            yield entry.place.line, entry.place.column, below
            yield from _places(entry.node, below)
    elif isinstance(node, Items):
        for index, item in enumerate(node.items):
            yield from _places(item, f"{path}[{index}]")


def _child(path: str, name: str) -> str:
    if not _PLAIN.fullmatch(name):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name
