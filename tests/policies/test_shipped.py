"""The shipped policies: complete, clean, tested by their own suites, and fit to be enforced together."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from webhook.admission import Decision, decide, read_review, understand
from webhook.admission.suite import run_suite
from webhook.admission.suite_read import read_suites
from webhook.fields import value_at
from webhook.policy import Mode, PolicySet, load

ROOT = Path(__file__).parent.parent.parent
POLICIES = ROOT / "policies"
REVIEWS = ROOT / "tests" / "reviews"
SHIPPED = (
    "autoscaler-owns-replicas",
    "claims-are-not-edited",
    "gitops-owns-labels",
    "guard-everything-flux-applies",
    "known-managers-only",
    "no-client-side-apply-on-gitops",
    "writers-are-who-they-say",
)
PINNED = yaml.safe_load((Path(__file__).parent / "decisions.yaml").read_text())
NAMES = sorted(path.stem for path in REVIEWS.glob("*.json") if path.name != "index.json")


@cache
def enforced() -> PolicySet:
    loaded = load([POLICIES])
    assert loaded.policies is not None, loaded.problems
    return PolicySet(tuple(replace(policy, mode=Mode.ENFORCE) for policy in loaded.policies.policies))


def answer(name: str) -> Decision:
    body = (REVIEWS / f"{name}.json").read_bytes()
    return decide(enforced(), read_review(body), "mutate" if name.endswith(".mutate") else "validate")


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
    decision = answer(name)
    pinned = PINNED[name]
    found = [(f"{result.policy} {result.kind}", result.outcome == "refused") for result in decision.results]
    assert sorted(told for told, refused in found if refused) == sorted(pinned.get("denied", []))
    assert sorted(told for told, refused in found if not refused) == sorted(pinned.get("recorded", []))
    assert decision.allowed == ("denied" not in pinned)


@pytest.mark.parametrize("name", NAMES)
def test_writing_an_object_back_as_it_is_passes(name: str) -> None:
    """`get | replace`, by anybody and on any object: a storage migration is nothing else."""
    review = json.loads((REVIEWS / f"{name}.json").read_text())
    request = review["request"]
    request |= {"operation": "UPDATE", "oldObject": request["object"], "options": {"fieldManager": "some-tool"}}
    for phase in ("mutate", "validate"):
        decision = decide(enforced(), read_review(json.dumps(review).encode()), phase)  # type: ignore[arg-type]
        assert decision.allowed and not decision.results


def test_no_value_that_was_written_is_told() -> None:
    tried = 0
    for name in NAMES:
        review = read_review((REVIEWS / f"{name}.json").read_bytes())
        assert review.request is not None
        change = understand(review.request)
        told = f"{answer(name).message} {answer(name).warnings} {answer(name).audit_annotations}"
        for path in change.written:
            value = value_at(review.request.new, path)
            if isinstance(value, str) and len(value) > 3:
                tried += 1
                assert value not in told, (name, str(path))
    assert tried > 10
