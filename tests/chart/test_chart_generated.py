"""What the chart has from elsewhere is as its sources are, and the typed comments say what they must."""

from __future__ import annotations

import json
import re
from pathlib import Path

import generate
import pytest
from charting import CHART, ROOT
from jsonschema import Draft7Validator
from typed_values import Untold, read, to_schema, to_table


def test_everything_that_is_generated_is_current() -> None:
    assert generate.stale(generate.made()) == {}


def test_the_check_names_what_is_stale(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = CHART / "README.md"
    monkeypatch.setattr(generate, "made", lambda: {table: "other"})
    assert generate.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "charts/fieldwarden/README.md is not current: run" in said
    assert "known-managers-only.yaml is of no policy that is shipped" in said


def test_every_shipped_policy_is_in_the_chart_to_the_letter() -> None:
    shipped = {file.parent.name: file.read_text() for file in (ROOT / "policies").glob("*/policy.yaml")}
    assert {file.stem: file.read_text() for file in (CHART / "policies").iterdir()} == shipped


def test_the_defaults_satisfy_their_schema() -> None:
    values = read((CHART / "values.yaml").read_text())
    schema = to_schema(values)
    Draft7Validator.check_schema(schema)
    defaults: dict[str, object] = {}
    for value in values:
        section = defaults
        for name in value.path[:-1]:
            section = section.setdefault(name, {})  # type: ignore[assignment]
        section[value.path[-1]] = value.default
    assert list(Draft7Validator(schema).iter_errors(defaults)) == []


def test_the_docs_name_only_values_that_there_are() -> None:
    paths = {".".join(value.path) for value in read((CHART / "values.yaml").read_text())}
    sections = {path.partition(".")[0] for path in paths if "." in path}
    text = (ROOT / "docs" / "install.md").read_text()
    named = {name for name in re.findall(r"`(\w+(?:\.\w+)+)\b", text) if name.partition(".")[0] in sections}
    known = {".".join(path.split(".")[:depth]) for path in paths for depth in range(1, 5)}
    assert "webhook.drainSeconds" in named
    assert {name for name in named if name not in known and name.rpartition(".")[0] not in paths} == set()


def test_a_comment_gives_description_and_type() -> None:
    (value,) = read("a:\n  # -- How many\n  # there are.\n  # @schema {minimum: 1}\n  b: 2\n")
    assert (value.path, value.default, value.description) == (("a", "b"), 2, "How many there are.")
    assert value.schema == {"type": "integer", "minimum": 1}
    assert "| `a.b` | integer | `2` | How many there are. |" in to_table((value,))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\n", "values.yaml:1: a has no description"),
        ("# about all\n\na: {b: 1}\n", "values.yaml:3: a.b has no description"),
        ("# -- What\na: null\n", "a: a default of null tells no type"),
        ("- 1\n", "is not a mapping"),
    ],
)
def test_a_value_that_does_not_say_what_it_is_has_no_schema(text: str, said: str) -> None:
    with pytest.raises(Untold, match=said):
        read(text)


def test_an_unknown_value_is_an_error_at_every_depth() -> None:
    def sections(schema: dict[str, object]) -> list[dict[str, object]]:
        below = schema.get("properties", {})
        assert isinstance(below, dict)
        found = [inner for inner in below.values() if "properties" in inner and "description" not in inner]
        return [schema, *(each for inner in found for each in sections(inner))]

    schema = json.loads((CHART / "values.schema.json").read_text())
    assert all(section["additionalProperties"] is False for section in sections(schema))
    assert len(sections(schema)) > 10


def test_the_chart_and_the_program_have_one_version() -> None:
    from webhook import __version__

    lines = Path(CHART / "Chart.yaml").read_text().splitlines()
    assert f"version: {__version__}" in lines
    assert f"appVersion: {__version__}" in lines
