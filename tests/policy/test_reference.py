"""docs/policies.md says what the code does: the table of problems, the keys, the example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from webhook.policy import load_text, schema
from webhook.policy.model import MAX_RULES
from webhook.policy.problems import CATALOGUE
from webhook.policy.source import MAX_BYTES, MAX_DEPTH, MAX_NODES

TEXT = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()


def test_the_table_of_problems_is_the_catalogue() -> None:
    table = TEXT.split("## Problems")[1]
    rows = re.findall(r"^\| `(.+?)` \| (\w+) \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    assert rows == [(kind.rule, kind.severity, kind.meaning, kind.advice) for kind in CATALOGUE.values()]


def test_every_key_stands_in_the_reference() -> None:
    tables: dict[str, Any] = schema()["$defs"]
    keys = {key for name, table in tables.items() if name != "Metadata" for key in table["properties"]}
    missing = {key for key in keys if f"`{key}`" not in TEXT and f"`{key}:" not in TEXT}
    assert missing == set()


def test_every_choice_stands_in_the_reference() -> None:
    choices: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            choices.update(node.get("enum", []))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(schema())
    assert len(choices) > 10
    assert {choice for choice in choices if f"`{choice}`" not in TEXT} == set()


def test_the_example_loads_without_a_word() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert load_text(example, "docs").problems == ()


def test_the_limits_are_those_of_the_code() -> None:
    for limit in (f"{MAX_BYTES >> 20} MiB", f"{MAX_NODES:,} values", f"{MAX_DEPTH} levels", f"1 to {MAX_RULES}"):
        assert limit in TEXT
