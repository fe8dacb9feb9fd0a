"""What the audit says of a review, whatever the policies: it is allowed, untouched and unwarned, and recorded as Enforce would.

Held against reviews of real clients under the policies of this repository, and against random writes under random policies.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import Phase, given, settings

from tests.rewriting_laws.answers import answer, patched, with_object
from tests.rewriting_laws.policies import loads
from tests.rewriting_laws.strategies import Case, Recipe, made, recipes
from webhook.admission import Decision, Result
from webhook.policy import PolicySet
from webhook.policy.compiled import Mode

TESTS = Path(__file__).parent.parent
FOLDERS = (TESTS.parent / "policies", TESTS / "stories" / "policies", TESTS / "rewriting" / "policies")
REVIEWS = sorted(path for path in (TESTS / "reviews").glob("*.json") if path.stem != "index")
PINNED = sorted((TESTS / "rewriting_laws" / "pinned").glob("*.json"))
EXAMPLES = 400


class Told(NamedTuple):
    """What a result tells, and of which paths."""

    of: tuple[object, ...]
    paths: frozenset[str]


@cache
def policies_of(folder: Path) -> PolicySet:
    """In Enforce, in every namespace."""
    documents = [
        document
        for path in sorted(folder.rglob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if document.get("kind") == "FieldPolicy"
    ]
    for document in documents:
        document["spec"]["mode"] = "Enforce"
        document["spec"]["match"].pop("namespaces", None)
    policies = loads(documents)
    assert policies is not None
    return policies


class Both:
    """One write, judged by an audit and by Enforce, each in both calls as the API server makes them."""

    def __init__(self, policies: PolicySet, review: dict[str, Any]) -> None:
        self.is_scale = review["request"].get("subResource") == "scale"
        self.audit = [answer(policies, review, phase, Mode.AUDIT) for phase in ("mutate", "validate")]
        rewritten = answer(policies, review, "mutate")
        after = with_object(review, patched(review["request"]["object"], rewritten)) if rewritten.patch else review
        self.rewrote = bool(rewritten.patch)
        self.enforce = [rewritten, answer(policies, after, "validate")]
        if not rewritten.allowed:
            self.enforce.pop()

    def told(self, decisions: list[Decision]) -> Counter[Told]:
        return Counter(self.to_tell(result) for decision in decisions for result in decision.results)

    def to_tell(self, result: Result) -> Told:
        """All but what came of it, and the mode.

        A Scale shows claims to one call alone, so that one names no manager; nor can Enforce always find the writer of
        what is left of a request that it has rewritten.
        """
        whose = (
            () if self.is_scale or self.rewrote else (result.owner, result.manager, result.operation, result.message)
        )
        what = (result.kind, result.policy, result.rule, result.action, result.would)
        where = (result.user, result.resource, result.namespace, result.name, result.dry_run)
        return Told((*what, *where, *whose), frozenset(result.paths))


def nothing_happens(both: Both) -> None:
    for decision in both.audit:
        assert (decision.allowed, decision.patch, decision.warnings) == (True, (), ())
        assert (decision.message, decision.causes) == ("", ())


def all_is_recorded(both: Both) -> None:
    for decision in both.audit:
        assert {(result.outcome, result.mode) for result in decision.results} <= {("recorded", Mode.AUDIT)}
        assert all(result.ownership == () for result in decision.results)


def as_enforce_finds_it(both: Both) -> None:
    """What Enforce rewrites, it rewrites for what the audit found; of all else that may leave less to be found."""
    audit, enforce = both.told(both.audit), both.told(both.enforce)
    if not both.enforce[0].allowed:  # on a Scale; the other call is not made then, and could have found more
        assert enforce <= audit, enforce - audit
        return
    if not both.rewrote:
        assert audit == enforce, (list((enforce - audit).elements()), list((audit - enforce).elements()))
        return
    rewritten = Counter(both.to_tell(result) for result in both.enforce[0].results if result.outcome == "rewritten")
    assert rewritten <= audit, rewritten - audit
    for one in enforce - rewritten:
        assert any(one.of == other.of and one.paths <= other.paths for other in audit), one


LAWS: tuple[Callable[[Both], None], ...] = (nothing_happens, all_is_recorded, as_enforce_finds_it)


def hold(both: Both) -> str:
    """What Enforce makes of it."""
    for law in LAWS:
        law(both)
    if both.rewrote:
        return "rewritten"
    return "passed" if all(decision.allowed for decision in both.enforce) else "refused"


def test_of_what_real_clients_write() -> None:
    reviews = [json.loads(path.read_text()) for path in REVIEWS]
    seen = Counter(hold(Both(policies_of(folder), review)) for folder in FOLDERS for review in reviews)
    assert min(seen["rewritten"], seen["refused"]) > 20, seen


@pytest.mark.parametrize("path", PINNED, ids=lambda path: path.stem)
def test_of_what_once_broke_a_law_of_rewriting(path: Path) -> None:
    case = Case(**json.loads(path.read_text()))
    policies = loads(case.policies)
    assert policies is not None
    hold(Both(policies, case.review))


def test_of_any_write_under_any_policies() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(recipes(most=3))
    def search(recipe: Recipe) -> None:
        case = made(recipe)
        policies = loads(case.policies)
        if policies is not None:
            seen[hold(Both(policies, case.review))] += 1

    search()
    assert min(seen["rewritten"], seen["refused"], seen["passed"]) > EXAMPLES // 20, seen
