"""The laws of rewriting, held against random writes and random policies.

LAWS_EXAMPLES and LAWS_SEED in the environment ask for more writes, and for others.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.rewriting_laws.answers import Rewriting, rewriting, without_claims
from tests.rewriting_laws.laws import broken
from tests.rewriting_laws.policies import ACTIONS, Document, loads
from tests.rewriting_laws.strategies import Case, Recipe, made, recipes, shrunk

EXAMPLES = int(os.environ.get("LAWS_EXAMPLES", "300"))
RARELY = 60  # of so many writes at least one is rewritten
searching = settings(
    max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)


EVERYTHING: Document = {
    "apiVersion": "fieldwarden.dev/v1alpha1",
    "kind": "FieldPolicy",
    "metadata": {"name": "everything"},
    "spec": {
        "mode": "Enforce",
        "match": {"resources": [{"groups": ["*"], "resources": ["*"]}]},
        "exempt": {"controlPlane": False},
        "rules": [
            {
                "name": "nobodys",
                "ownership": {
                    "fields": [".*"],
                    "owners": [{"manager": "nobody"}],
                    "guard": "Matching",
                    "onChange": "Restore",
                },
            }
        ],
    },
}


def hold(recipe: Recipe) -> Rewriting | None:
    """What was rewritten, if all laws hold; None where policies do not load. A failure tells of the smallest case found."""
    case = made(recipe)
    loaded = loads(case.policies)
    if loaded is None:
        return None
    found = broken(case, loaded)
    if not found:
        return rewriting(loaded, case.review)
    law = next(iter(found))
    smallest = made(shrunk(recipe, lambda case: _breaks(case, law)))
    pytest.fail(f"{found}\n{recipe}\n{law}:\n{json.dumps(smallest._asdict())}", pytrace=False)


def _breaks(case: Case, law: str) -> bool:
    loaded = loads(case.policies)
    return loaded is not None and law in broken(case, loaded)


def tallied(tally: Counter[str], recipes: st.SearchStrategy[Recipe]) -> None:
    @searching
    @given(recipes)
    def search(recipe: Recipe) -> None:
        done = hold(recipe)
        tally.update(done.actions or ["nothing"] if done is not None else ["no policies"])

    search()


@pytest.mark.parametrize("action", ACTIONS)
def test_the_laws_hold_of_one_action_alone(action: str) -> None:
    tally: Counter[str] = Counter()
    tallied(tally, recipes((action,)))
    assert tally[action] * RARELY > EXAMPLES, tally


def test_the_laws_hold_of_all_actions_together_in_several_policies() -> None:
    tally: Counter[str] = Counter()
    tallied(tally, recipes(most=3))
    assert (tally.total() - tally["nothing"] - tally["no policies"]) * RARELY > EXAMPLES, tally


@searching
@given(recipes(document=EVERYTHING))
def test_what_nobody_may_change_is_as_it_was(recipe: Recipe) -> None:
    done = hold(recipe)
    assert done is not None
    assert without_claims(done.result) == without_claims(done.old)
    assert done.decision.patch or without_claims(done.came) == without_claims(done.old)
