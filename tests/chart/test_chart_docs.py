"""What the docs tell people to type is right: values, flags of Helm and kubectl, links, and the example policy."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
from charting import CHART, ROOT, Helm
from typed_values import read

from webhook.cli.app import app
from webhook.policy.load import load_text

PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", CHART / "README.md"])
OPERATORS = [ROOT / "docs" / f"{name}.md" for name in ("install", "certificates", "controller", "emergency", "kind")]
VALUES = {".".join(value.path): value for value in read((CHART / "values.yaml").read_text())}
SECTIONS = {path.partition(".")[0] for path in VALUES if "." in path}
_SETS = re.compile(r"--set '?([\w.]+)=")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _is_value(path: str) -> bool:
    """A value, a section of values, or a key of a value that is a mapping."""
    if path in VALUES or any(known.startswith(f"{path}.") for known in VALUES):
        return True
    above, _, key = path.rpartition(".")
    found = VALUES.get(above)
    if found is None:
        return False
    allowed = found.schema.get("properties", {}) or (found.default or {})
    return key in allowed


def _commands(page: Path, program: str) -> Iterator[list[str]]:
    """What stands in indented lines and begins with a program's name."""
    text = _FENCE.sub("", page.read_text()).replace("\\\n", " ")
    for line in re.findall(rf"^    ({program} .*)$", text, re.MULTILINE):
        yield shlex.split(re.split(r" [|>] ", line)[0])


def _all(program: str) -> list[Any]:
    found = [(page.name, words) for page in PAGES for words in _commands(page, program)]
    return [pytest.param(words, id=f"{name}: {' '.join(words[:6])}") for name, words in found]


def _flags(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_set_and_name_only_values_that_there_are(page: Path) -> None:
    text = page.read_text()
    named = set(_SETS.findall(text))
    if page in OPERATORS:
        told = re.findall(r"`(\w+(?:\.\w+)+)\b(?!\()", text)
        named |= {path for path in told if path.partition(".")[0] in SECTIONS}
    assert {path for path in named if not _is_value(path)} == set()


def test_what_is_looked_for_is_found() -> None:
    text = "".join(page.read_text() for page in OPERATORS)
    assert {"certificates.source", "webhooks.failurePolicy", "image.tag"} <= set(_SETS.findall(text))
    assert not _is_value("certificates.sauce")
    assert not _is_value("certificates.certManager.issuerRef.nmae")
    assert len(_all("kubectl")) > 20
    assert len(_all("helm")) > 8


@pytest.mark.parametrize("words", _all("helm"))
def test_helm_takes_what_the_docs_tell_people_to_type(helm: Helm, words: list[str]) -> None:
    verb = words[1]
    help_ = helm(verb, "--help").stdout
    assert {flag for flag in _flags(words) if not re.search(rf"(?<![\w-]){flag}(?![\w-])", help_)} == set()
    if "charts/fieldwarden" in words:
        release, sets = words[2], [text for name, text in pairwise(words) if name == "--set"]
        given = [f"--set={text}" for text in sets]
        said = helm("template", release, str(CHART), "--namespace=fieldwarden", *given)
        assert said.returncode == 0, said.stderr


@pytest.fixture(scope="module")
def kubectl() -> Path:
    from webhook.sandbox import binaries

    return binaries({"kubectl"})["kubectl"]


@pytest.mark.parametrize("words", _all("kubectl"))
def test_kubectl_knows_the_flags_that_the_docs_tell_people_to_type(kubectl: Path, words: list[str]) -> None:
    words = words[: words.index("--")] if "--" in words else words  # what follows is another program's
    verbs = words[1:3] if words[1] == "create" and words[2] in ("deployment", "namespace", "secret") else words[1:2]
    verbs = words[1:4] if verbs == ["create", "secret"] else verbs

    def help_of(*arguments: str) -> str:
        done = subprocess.run(
            [str(kubectl), *arguments], env={"KUBERC": "off"}, capture_output=True, text=True, check=True
        )
        return done.stdout

    known = help_of(*verbs, "--help") + help_of("options")
    assert {flag for flag in _flags(words) if not re.search(rf"^ +(?:-\w, )?{flag}[=,]", known, re.MULTILINE)} == set()


@pytest.mark.parametrize("words", _all("fieldwarden"))
def test_fieldwarden_knows_the_commands_and_flags_in_the_docs(words: list[str]) -> None:
    command: Any = app
    for word in words[1:]:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word)
        assert command is not None, word
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    own = words[: words.index("--")] if "--" in words else words
    assert _flags(own) - known == set()


def test_the_policy_on_the_page_for_kind_loads() -> None:
    (policy,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "kind.md").read_text(), re.DOTALL)
    assert load_text(policy, "docs").problems == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_pages_and_headings_that_there_are(page: Path) -> None:
    def anchors(file: Path) -> set[str]:
        headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", file.read_text()), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)", page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"
