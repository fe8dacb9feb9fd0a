"""Every write that once broke a law, kept: the policies and the review."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rewriting_laws.laws import broken
from tests.rewriting_laws.policies import loads
from tests.rewriting_laws.strategies import Case

PINNED = Path(__file__).parent / "pinned"
CASES = sorted(path.stem for path in PINNED.glob("*.json"))


def test_there_are_pinned_cases() -> None:
    assert CASES


@pytest.mark.parametrize("name", CASES)
def test_no_law_is_broken_again_by(name: str) -> None:
    case = Case(**json.loads((PINNED / f"{name}.json").read_text()))
    policies = loads(case.policies)
    assert policies is not None
    assert broken(case, policies) == {}
