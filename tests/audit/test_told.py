"""Nothing is left out by a name that is nobody's."""

from __future__ import annotations

import ast

import pytest

from tests.audit.retelling import TESTS
from tests.audit.told import LEFT_OUT, NAMED_ANEW, OTHERWISE, SHORT, SILENT

NAMES = sorted({*LEFT_OUT, *SHORT, *SILENT, *NAMED_ANEW, *(n for names in OTHERWISE.values() for n in names)})


@pytest.mark.parametrize("name", NAMES)
def test_every_exception_is_there(name: str) -> None:
    file, _, story = name.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    assert not story or story in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("folder", ["stories", "rewriting"])
def test_nearly_all_is_told(folder: str) -> None:
    files = sorted((TESTS / folder).glob("test_*.py"))
    told = [
        (path, node.name)
        for path in files
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    out = [name for path, name in told if {f"{folder}/{path.name}", f"{folder}/{path.name}::{name}"} & {*LEFT_OUT}]
    assert len(told) > 80
    assert len(out) < 0.08 * len(told), out
