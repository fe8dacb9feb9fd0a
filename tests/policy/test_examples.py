"""The folders beside: every good file loads without a word, every bad one gives exactly the problems that it names."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from webhook.policy import load, load_text, schema
from webhook.policy.problems import CATALOGUE

HERE = Path(__file__).parent
GOOD = sorted((HERE / "good").glob("*.yaml"))
BAD = sorted((HERE / "bad").glob("*.yaml"))
_EXPECT = re.compile(r"^# expect: (\d+):(\d+) (\S+)(?: (error|warning))?$", re.MULTILINE)
_NEEDS_NO_FILE = {"unreadable-file", "no-policies"}


def documents(path: Path) -> list[object]:
    """Read by PyYAML itself, not by the code under test."""
    return [document for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader) if document is not None]


def expected(text: str) -> list[tuple[int, int, str, str]]:
    found = _EXPECT.findall(text)
    return sorted(
        (int(line), int(column), rule, severity or CATALOGUE[rule].severity) for line, column, rule, severity in found
    )


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_file_loads_without_a_word(path: Path) -> None:
    loaded = load([path], strict=True)
    assert not loaded.problems, "\n".join(map(str, loaded.problems))
    assert loaded.policies is not None and loaded.policies.policies


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_the_schema_accepts_a_good_file(path: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema())
    for document in documents(path):
        assert [error.message for error in validator.iter_errors(document)] == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_file_gives_exactly_its_problems(path: Path) -> None:
    text = path.read_text()
    loaded = load([path], strict="# strict\n" in text)
    found = sorted((one.line, one.column, one.rule, one.severity) for one in loaded.problems)
    assert found == expected(text), "\n".join(map(str, loaded.problems))
    assert (loaded.policies is None) == any(severity == "error" for *_, severity in found)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_text_gives_the_same_problems_as_its_file(path: Path) -> None:
    text = path.read_text()
    strict = "# strict\n" in text
    assert load_text(text, str(path), strict=strict).problems == load([path], strict=strict).problems


def test_every_kind_of_problem_has_a_bad_file() -> None:
    shown = {rule for path in BAD for _, _, rule, _ in expected(path.read_text())}
    assert shown == set(CATALOGUE) - _NEEDS_NO_FILE


SHAPE = {"unknown-key", "missing-key", "wrong-type", "wrong-value", "rule-kind", "writers-shape", "empty-value"}


@pytest.mark.parametrize("path", [path for path in BAD if path.stem in SHAPE], ids=lambda path: path.stem)
def test_the_schema_refuses_a_bad_shape(path: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema())
    assert not any(validator.is_valid(document) for document in documents(path))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_every_key_of_the_schema_is_described() -> None:
    tables = schema()["$defs"]
    for name, table in [("FieldPolicy", schema()), *tables.items()]:
        for key, value in table["properties"].items():
            meant = tables.get(value.get("$ref", "").rpartition("/")[2], {})
            assert value.get("description") or meant.get("description"), f"{name}.{key}"
