"""The shipped policies: complete, clean, tested by their own suites, and fit to be enforced together."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonpatch
import pytest
import yaml

from webhook.admission import Decision, decide, read_review, understand
from webhook.admission.suite import run_suite
from webhook.admission.suite_read import read_suites
from webhook.fields import value_at
from webhook.policy import Mode, PolicySet, load
from webhook.policy.evaluate import Phase

ROOT = Path(__file__).parent.parent.parent
POLICIES = ROOT / "policies"
REVIEWS = ROOT / "tests" / "reviews"
SHIPPED = (
    "autoscaler-owns-replicas",
    "break-glass",
    "claims-are-not-edited",
    "gitops-owns-labels",
    "guard-everything-flux-applies",
    "heal-tampered-claims",
    "known-managers-only",
    "no-client-side-apply-on-gitops",
    "one-name-for-kubectl",
    "take-ownership-on-apply",
    "writers-are-who-they-say",
)
PINNED = yaml.safe_load((Path(__file__).parent / "decisions.yaml").read_text())
PHASES: tuple[Phase, ...] = ("mutate", "validate")
NAMES = sorted(path.stem for path in REVIEWS.glob("*.json") if path.name != "index.json")


@cache
def enforced() -> PolicySet:
    loaded = load([POLICIES])
    assert loaded.policies is not None, loaded.problems
    return PolicySet(tuple(replace(policy, mode=Mode.ENFORCE) for policy in loaded.policies.policies))


class Played(NamedTuple):
    """What the two calls said to one request, and the object that is left to be stored."""

    mutating: Decision | None
    validating: Decision | None
    obj: Any

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return tuple(decision for decision in (self.mutating, self.validating) if decision is not None)

    def found(self, outcome: str) -> list[str]:
        results = [result for decision in self.decisions for result in decision.results]
        return sorted(f"{result.policy} {result.kind}" for result in results if result.outcome == outcome)


@cache
def played(name: str) -> Played:
    """As the API server does: the mutating call, its patch, the validating call. A Scale was captured for one of them."""
    review = json.loads((REVIEWS / f"{name}.json").read_text())
    request = review["request"]
    on_scale = request.get("subResource") == "scale"
    mutating = judged(review, "mutate") if not on_scale or name.endswith(".mutate") else None
    if mutating is not None and mutating.patch:
        request["object"] = jsonpatch.apply_patch(request["object"], list(mutating.patch))
    validating = judged(review, "validate") if not name.endswith(".mutate") else None
    return Played(mutating, validating, request["object"])


def judged(review: dict[str, Any], phase: Phase) -> Decision:
    return decide(enforced(), read_review(json.dumps(review).encode()), phase)


def test_what_is_shipped_is_what_is_listed() -> None:
    assert tuple(sorted(path.name for path in POLICIES.iterdir() if path.is_dir())) == SHIPPED
    index = (POLICIES / "README.md").read_text()
    assert all(f"]({name}/)" in index for name in SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_policy_has_all_its_parts_and_no_others(name: str) -> None:
    parts = {path.name for path in (POLICIES / name).iterdir()}
    assert parts == {"README.md", "policy.yaml", "suite.yaml", "cases"}
    loaded = load([POLICIES / name / "policy.yaml"])
    assert loaded.policies is not None
    assert all(policy.name.startswith(name) for policy in loaded.policies.policies)
    assert all(policy.mode is Mode.AUDIT for policy in loaded.policies.policies), "shipped policies deny nothing"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_readme_tells_why_what_and_how(name: str) -> None:
    headings = re.findall(r"^## (.+)$", (POLICIES / name / "README.md").read_text(), re.MULTILINE)
    assert {"Why", "What it blocks", "Parameters", "How to exempt", "How to fix an object"} <= set(headings)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_suite_passes_and_shows_both_answers(name: str) -> None:
    path = POLICIES / name / "suite.yaml"
    report = run_suite(path)
    assert report.passed, (report.problems, [(case.name, case.failures) for case in report.cases if not case.passed])
    (suite,), _ = read_suites(path)
    assert suite.mode is Mode.ENFORCE
    assert {case.expect.allowed for case in suite.cases} == {True, False}
    assert all(case.expect.events is not None for case in suite.cases), "every case says all of its events"


@pytest.mark.parametrize("name", SHIPPED)
def test_every_captured_case_is_used_and_is_the_captured_review(name: str) -> None:
    folder = POLICIES / name
    used = set(re.findall(r"cases/(\S+\.json)", (folder / "suite.yaml").read_text()))
    assert {path.name for path in (folder / "cases").iterdir()} == used
    for file in used:
        assert (folder / "cases" / file).read_bytes() == (REVIEWS / file).read_bytes(), file


def test_lint_has_nothing_to_say_even_strictly_and_in_enforce(tmp_path: Path) -> None:
    assert load([POLICIES], strict=True).problems == ()
    shutil.copytree(POLICIES, tmp_path / "policies")
    changed = 0
    for path in tmp_path.rglob("policy.yaml"):
        text = path.read_text()
        changed += text.count("mode: Audit")
        path.write_text(text.replace("mode: Audit", "mode: Enforce"))
    loaded = load([tmp_path / "policies"], strict=True)
    assert loaded.problems == ()
    assert loaded.policies is not None and len(loaded.policies.policies) == changed


def test_every_captured_review_has_its_line() -> None:
    assert sorted(PINNED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_all_together_in_enforce_answer_as_reasoned(name: str) -> None:
    answer, pinned = played(name), PINNED[name]
    assert answer.found("rewritten") == sorted(pinned.get("rewritten", []))
    assert answer.found("refused") == sorted(pinned.get("denied", []))
    assert answer.found("recorded") == sorted(pinned.get("recorded", []))
    assert all(decision.allowed for decision in answer.decisions) == ("denied" not in pinned)
    assert bool(answer.mutating and answer.mutating.patch) == ("rewritten" in pinned)


@pytest.mark.parametrize("name", [name for name in NAMES if "rewritten" in PINNED[name]])
def test_what_the_mutating_call_did_not_rewrite_is_refused(name: str) -> None:
    """The same request, as it comes where the mutating webhook is not called."""
    decision = judged(json.loads((REVIEWS / f"{name}.json").read_text()), "validate")
    refused = sorted(f"{result.policy} {result.kind}" for result in decision.results if result.outcome == "refused")
    assert (decision.allowed, refused) == (False, sorted(PINNED[name]["rewritten"]))


@pytest.mark.parametrize("name", [name for name in NAMES if "rewritten" in PINNED[name]])
def test_a_second_mutating_call_finds_nothing_to_do(name: str) -> None:
    """The server calls it again where another webhook has mutated after it."""
    review = json.loads((REVIEWS / f"{name}.json").read_text())
    review["request"]["object"] = played(name).obj
    again = judged(review, "mutate")
    assert (again.allowed, again.patch, again.results) == (True, (), ())


@pytest.mark.parametrize("name", NAMES)
def test_writing_an_object_back_as_it_is_passes(name: str) -> None:
    """`get | replace`, by anybody and on any object: a storage migration is nothing else."""
    review = json.loads((REVIEWS / f"{name}.json").read_text())
    request = review["request"]
    request |= {"operation": "UPDATE", "oldObject": request["object"], "options": {"fieldManager": "some-tool"}}
    for phase in PHASES:
        decision = judged(review, phase)
        assert decision.allowed and not decision.results and not decision.patch


def test_no_value_that_was_written_is_told() -> None:
    tried = 0
    for name in NAMES:
        review = read_review((REVIEWS / f"{name}.json").read_bytes())
        assert review.request is not None
        change = understand(review.request)
        told = "".join(f"{said.message} {said.warnings} {said.audit_annotations}" for said in played(name).decisions)
        for path in change.written:
            value = value_at(review.request.new, path)
            if isinstance(value, str) and len(value) > 3:
                tried += 1
                assert value not in told, (name, str(path))
    assert tried > 10
