"""values.yaml with typed comments: what each value is, what it may be, and what it is for.

    # -- Seconds that the API server waits for an answer.
    # @schema {minimum: 1, maximum: 30}
    timeoutSeconds: 10

A mapping without such a description is a section; one with it is a value. The type is that of the default, unless
`@schema`, a piece of JSON Schema in YAML's flow style, says `type`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

DESCRIPTION, SCHEMA = "# -- ", "# @schema "
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class Untold(Exception):
    """A value lacks what its comment must say; `str()` names it and the way out."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value: its place, what stands in values.yaml, and what the comment above says."""

    path: tuple[str, ...]
    default: Any
    description: str
    schema: Mapping[str, Any]

    @property
    def types(self) -> str:
        kind = self.schema.get("type", "")
        return " or ".join(kind) if isinstance(kind, list) else str(kind)


def read(text: str) -> tuple[Value, ...]:
    """All values in the order of the file. Raises Untold."""
    root = yaml.compose(text)
    if not isinstance(root, yaml.MappingNode):
        raise Untold("values.yaml: is not a mapping")
    return tuple(_values(root, (), text.splitlines()))


def _values(node: yaml.MappingNode, above: tuple[str, ...], lines: list[str]) -> Iterator[Value]:
    for key, child in node.value:
        path = (*above, key.value)
        description, schema = _comment(lines, key.start_mark.line)
        default = yaml.safe_load(yaml.serialize(child))
        if description:
            yield Value(path, default, description, _typed(path, default, schema))
        elif isinstance(child, yaml.MappingNode) and child.value:
            yield from _values(child, path, lines)
        else:
            raise Untold(
                f"values.yaml:{key.start_mark.line + 1}: {'.'.join(path)} has no description ({DESCRIPTION!r})"
            )


def _comment(lines: list[str], at: int) -> tuple[str, dict[str, Any]]:
    """Description and schema from the lines right above line `at`, counted from 0."""
    start = at
    while start > 0 and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    told, schema = [], {}
    for line in (line.strip() for line in lines[start:at]):
        if line.startswith(SCHEMA):
            schema = yaml.safe_load(line.removeprefix(SCHEMA))
        elif line.startswith(DESCRIPTION):
            told = [line.removeprefix(DESCRIPTION)]
        elif told:
            told.append(line.removeprefix("#").strip())
    return " ".join(told), schema


def _typed(path: tuple[str, ...], default: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        return dict(schema)
    if default is None:
        raise Untold(f"{'.'.join(path)}: a default of null tells no type: say `type` in its @schema")
    return {"type": _TYPES[type(default)], **schema}


def to_schema(values: tuple[Value, ...]) -> dict[str, Any]:
    """The JSON Schema that Helm holds values against; a name that is not there is an error."""
    root = _section()
    root = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart fieldwarden", **root}
    for value in values:
        section = root
        for name in value.path[:-1]:
            section = section["properties"].setdefault(name, _section())
        section["properties"][value.path[-1]] = {"description": value.description, **value.schema}
    root["properties"]["global"] = {"description": "What Helm hands to every chart.", "type": "object"}
    return root


def _section() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def to_table(values: tuple[Value, ...]) -> str:
    """The same as a table in Markdown."""
    rows = ["| value | type | default | what it is |", "|---|---|---|---|"]
    for value in values:
        allowed = value.schema.get("enum")
        kind = ", ".join(map(str, allowed)) if allowed else value.types
        default = json.dumps(value.default, separators=(", ", ": "))
        cells = (f"`{'.'.join(value.path)}`", kind, f"`{default}`", value.description)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)
