"""Every disagreement that a history has found, kept: reviews and expected Changes in the format of tests/reviews."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import yaml

from webhook.admission.review import read_review
from webhook.admission.understand import understand

PINNED = Path(__file__).parent / "pinned"
CASES = sorted(path.stem for path in PINNED.glob("*.json"))
CAPTURED = runpy.run_path(str(Path(__file__).parent.parent / "admission" / "test_captured_reviews.py"))


def test_every_pinned_review_has_an_expected_change_and_no_expectation_is_left_over() -> None:
    assert CASES
    assert sorted(path.stem for path in PINNED.glob("*.yaml")) == CASES


@pytest.mark.parametrize("case", CASES)
def test_understands(case: str) -> None:
    expected = yaml.safe_load((PINNED / f"{case}.yaml").read_text())
    expected.pop("why")
    request = read_review((PINNED / f"{case}.json").read_bytes()).request
    assert request is not None
    assert CAPTURED["ordered"](CAPTURED["plain"](understand(request))) == CAPTURED["ordered"](expected)
