"""Every captured review is understood as its expected file says, which was written from the server's rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.admission.review import read_review
from webhook.admission.understand import understand
from webhook.fields import Change, FieldSet, Identity

REVIEWS = Path(__file__).parent.parent / "reviews"
CASES = sorted(path.stem for path in REVIEWS.glob("*.json") if path.stem != "index")


def test_every_review_has_an_expected_change_and_no_expectation_is_left_over() -> None:
    assert CASES
    assert sorted(path.stem for path in (REVIEWS / "expected").glob("*.yaml")) == CASES


@pytest.mark.parametrize("case", CASES)
def test_understands(case: str) -> None:
    expected = yaml.safe_load((REVIEWS / "expected" / f"{case}.yaml").read_text())
    expected.pop("why")
    request = read_review((REVIEWS / f"{case}.json").read_bytes()).request
    assert request is not None
    assert ordered(plain(understand(request))) == ordered(expected)


def plain(change: Change) -> dict[str, Any]:
    """A Change in the words of the expected files; what is empty is left out."""
    label = labels(change)
    told: dict[str, Any] = {"requester": label(change.requester.identity) if change.requester.identity else "unknown"}
    found: dict[str, Any] = {
        "creation": change.request.old is None,
        "tampering": {
            label(item.identity): some({"gained": texts(item.gained), "lost": texts(item.lost)})
            for item in change.tampering
        },
        "explained": {label(identity): list(why) for identity, why in change.explained.items()},
    }
    if change.request.old is not None:
        found |= {
            "written": texts(change.written),
            "removed": texts(change.removed),
            "reordered": texts(change.reordered),
            "gained": some({label(item.identity): texts(item.gained) for item in change.changes.values()}),
            "lost": some({label(item.identity): texts(item.lost) for item in change.changes.values()}),
            "takeover": {label(identity): texts(paths) for identity, paths in change.takeover.items()},
            "elsewhere": texts(change.elsewhere),
            "no_op": change.no_op,
        }
    return told | some(found)


def labels(change: Change) -> Any:
    identities = {*change.old_claims, *change.new_claims}

    def label(identity: Identity) -> str:
        twins = [other for other in identities if str(other) == str(identity)]
        return str(identity) if len(twins) < 2 else f"{str(identity)[:-1]}, {identity.api_version})"

    return label


def ordered(told: Any) -> Any:
    """Sets have no order; the files list them as a person reads them."""
    if isinstance(told, dict):
        return {name: ordered(value) for name, value in told.items()}
    return sorted(told) if isinstance(told, list) else told


def some(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value}


def texts(paths: FieldSet) -> list[str]:
    return list(map(str, paths))
