"""Suites: what they say is wrong, what fails a case, and that their writes are what a server would have made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from webhook.admission import read_review, understand
from webhook.admission.review import review_of
from webhook.admission.suite import CaseReport, SuiteReport, find_suites, run_suite
from webhook.admission.suite_model import Client, Write
from webhook.admission.suite_write import WriteError, review_of_write
from webhook.fields import ManagedFields

ROOT = Path(__file__).parent.parent.parent
REVIEWS = ROOT / "tests" / "reviews"
POLICY = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: labels-come-from-git}
spec:
  mode: Audit
  match: {resources: [{groups: ["*"], resources: ["*"]}]}
  rules:
  - name: labels
    ownership:
      fields: [.metadata.labels]
      owners: [{manager: kustomize-controller, operation: Apply}]
      onChange: Deny
      onShare: Release
"""
HEAD = "apiVersion: fieldwarden.dev/v1alpha1\nkind: Suite\npolicies: [policy.yaml]\nmode: Enforce\ncases:\n"
OVERWRITE = "- name: one\n  review: review.json\n  expect: "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "review.json").write_bytes((REVIEWS / "kubectl-label-overwrite.json").read_bytes())
    return tmp_path


def run(folder: Path, text: str) -> SuiteReport:
    (folder / "suite.yaml").write_text(text)
    return run_suite(folder / "suite.yaml")


def one(folder: Path, expect: str) -> CaseReport:
    report = run(folder, HEAD + OVERWRITE + expect + "\n")
    assert report.problems == ()
    (case,) = report.cases
    return case


FAULTS = {
    "a key that no suite has": (HEAD.replace("mode:", "mood:") + OVERWRITE + "{allowed: true}", "4:1", "unknown-key"),
    "another kind": (HEAD.replace("Suite", "Suites") + OVERWRITE + "{allowed: true}", "2:7", "wrong-kind"),
    "another version": (HEAD.replace("v1alpha1", "v1") + OVERWRITE + "{allowed: true}", "1:13", "wrong-value"),
    "no policies": (
        HEAD.replace("policies: [policy.yaml]\n", "") + OVERWRITE + "{allowed: true}",
        "1:1",
        "missing-key",
    ),
    "a mode that is none": (HEAD.replace("Enforce", "enforce") + OVERWRITE + "{allowed: true}", "4:7", "wrong-value"),
    "no cases": (HEAD, "5:1", "empty-value"),
    "an empty file": ("", "1:1", "no-cases"),
    "not YAML": ("kind: Suite\n  a: b: c", "2:4", "yaml-syntax"),
    "a case without expectations": (HEAD + "- name: one\n  review: review.json\n", "6:3", "missing-key"),
    "a case that expects nothing": (HEAD + OVERWRITE + "{}", "8:3", "expects-nothing"),
    "an expectation that is none": (HEAD + OVERWRITE + "{allow: true}", "8:12", "unknown-key"),
    "noEvents that is false": (HEAD + OVERWRITE + "{noEvents: false}", "8:12", "wrong-value"),
    "events and none": (HEAD + OVERWRITE + "{noEvents: true, events: [{kind: change}]}", "8:12", "case-shape"),
    "a message where it is allowed": (HEAD + OVERWRITE + "{allowed: true, message: [denied]}", "8:27", "case-shape"),
    "an event of no kind": (HEAD + OVERWRITE + "{events: [{rule: labels}]}", "8:21", "missing-key"),
    "an event of another kind": (HEAD + OVERWRITE + "{events: [{kind: chnage}]}", "8:28", "wrong-value"),
    "a path that is none": (HEAD + OVERWRITE + "{events: [{kind: change, paths: [.a..b]}]}", "8:47", "bad-path"),
    "a case of the same name": (
        HEAD + (OVERWRITE + "{allowed: false}\n") * 2,
        "9:3",
        "duplicate-case",
    ),
    "a review that is not there": (
        HEAD + "- {name: one, review: no.json, expect: {allowed: true}}",
        "6:23",
        "unreadable-file",
    ),
    "a review that is no review": (
        HEAD + "- {name: one, review: {}, expect: {allowed: true}}",
        "6:3",
        "unreadable-review",
    ),
    "a review with a user beside it": (
        HEAD + "- {name: one, review: review.json, user: me, expect: {allowed: true}}",
        "6:36",
        "case-shape",
    ),
    "neither review nor objects": (HEAD + "- {name: one, user: me, expect: {allowed: true}}", "6:3", "case-shape"),
    "an object without a name": (
        HEAD + "- {name: one, new: {apiVersion: v1, kind: Pod}, user: me, manager: m, operation: Apply,"
        " expect: {allowed: true}}",
        "6:15",
        "bad-object",
    ),
    "a write without a manager": (
        HEAD + "- {name: one, new: {apiVersion: v1, kind: Pod, metadata: {name: p}}, user: me, operation: Apply,"
        " expect: {allowed: true}}",
        "6:3",
        "missing-key",
    ),
    "a claim on nothing": (
        HEAD + "- name: one\n  old: &a {apiVersion: v1, kind: Pod, metadata: {name: p}}\n  new: *a\n  user: me\n"
        "  manager: m\n  operation: Update\n  claims: [{manager: a, operation: Apply, fields: [.spec]}]\n"
        "  expect: {allowed: true}",
        "6:3",
        "impossible-write",
    ),
    "policies that are not there": (
        HEAD.replace("policy.yaml", "nothing.yaml") + OVERWRITE + "{allowed: true}",
        "1:1",
        "unreadable-file",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_with_its_place_and_raises_no_other(folder: Path, fault: str) -> None:
    text, place, rule = FAULTS[fault]
    report = run(folder, text)
    (problem,) = report.problems
    assert (f"{problem.line}:{problem.column}", problem.rule) == (place, rule), str(problem)
    assert problem.advice and not report.passed


def test_all_faults_are_told_at_once_and_the_other_cases_run(folder: Path) -> None:
    text = (
        HEAD
        + OVERWRITE
        + "{allowed: maybe}\n- name: two\n  reveiw: x\n  expect: {}\n"
        + "- "
        + (OVERWRITE[2:].replace("one", "three") + "{allowed: false}")
    )
    report = run(folder, text)
    assert [problem.rule for problem in report.problems] == [
        "wrong-type",
        "case-shape",
        "unknown-key",
        "expects-nothing",
    ]
    assert [(case.name, case.passed) for case in report.cases] == [("three", True)]


@pytest.mark.parametrize(
    "expect",
    [
        "{allowed: false}",
        "{events: [{kind: change}]}",
        "{events: [{kind: change, policy: labels-come-from-git, rule: labels, paths: [.metadata.labels.team]}]}",
        "{events: [{kind: change, action: Deny, outcome: refused}]}",
        "{message: [may not change, .metadata.labels.team]}",
    ],
)
def test_an_expectation_that_holds(folder: Path, expect: str) -> None:
    assert one(folder, expect).passed


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("{allowed: true}", "expected allowed, was denied: [labels-come-from-git/labels]"),
        (
            "{noEvents: true}",
            "came unexpected: change of labels-come-from-git/labels (Deny, refused) on .metadata.labels.team",
        ),
        ("{events: [{kind: ghost}]}", "expected ghost; it did not come"),
        ("{events: [{kind: change, rule: other}]}", "expected change of other; it did not come"),
        (
            "{events: [{kind: change, paths: [.metadata.labels]}]}",
            "expected change on .metadata.labels; it did not come",
        ),
        ("{events: [{kind: change, action: Record}]}", "expected change (Record); it did not come"),
        ("{events: [{kind: change, outcome: recorded}]}", "expected change (recorded); it did not come"),
        ("{events: [{kind: change}, {kind: change}]}", "expected change; it did not come"),
        ("{message: [something else]}", "the message does not say 'something else'; it says: [labels-come"),
        ("{warnings: [something]}", "no warning says 'something'; they say: nothing"),
    ],
)
def test_an_expectation_that_does_not_hold_says_so(folder: Path, expect: str, said: str) -> None:
    assert any(failure.startswith(said) for failure in one(folder, expect).failures)


def test_without_a_mode_policies_keep_their_own(folder: Path) -> None:
    report = run(folder, HEAD.replace("mode: Enforce\n", "") + OVERWRITE + "{allowed: true, events: [{kind: change}]}")
    assert report.passed and report.cases


def test_a_warning_can_be_expected(folder: Path) -> None:
    (folder / "review.json").write_bytes((REVIEWS / "ghost-1-co-ownership.json").read_bytes())
    report = run(
        folder, HEAD + OVERWRITE.replace("expect", "phase: mutate\n  expect") + "{warnings: [released .metadata]}"
    )
    assert report.passed and report.cases


def test_suites_are_found_in_folders_and_nothing_else_is(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    for name in ("b.yaml", "deep/er/a.yml", ".hidden/c.yaml", "not-yaml.txt"):
        (folder / name).write_text(HEAD)
    assert find_suites([folder]) == (folder / "b.yaml", folder / "deep" / "er" / "a.yml")
    assert find_suites([folder / "policy.yaml"]) == (folder / "policy.yaml",), "a file named is taken at its word"


def test_the_example_in_the_documentation_runs(folder: Path) -> None:
    text = (ROOT / "docs" / "suites.md").read_text()
    example = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]
    (folder / "cases").mkdir()
    (folder / "cases" / "kubectl-label-add.json").write_bytes((REVIEWS / "kubectl-label-add.json").read_bytes())
    report = run(folder, example)
    assert report.passed and len(report.cases) == 2, (report.problems, report.cases)


def test_every_problem_that_a_suite_can_have_is_documented() -> None:
    documented = set(re.findall(r"`([a-z-]+)`", (ROOT / "docs" / "suites.md").read_text().partition("## Problems")[2]))
    sources = " ".join(path.read_text() for path in (ROOT / "webhook" / "admission").glob("suite*.py"))
    reported = set(re.findall(r'(?:report\(\s*|"error", str\(file\), 1, 1, |place, )"([a-z]+-[a-z-]+)"', sources))
    assert len(reported) > 10 and reported <= documented, reported - documented


# Writes in the user's words, against what a real server made of the same writes.

UPDATES = [
    "kubectl-label-overwrite",
    "kubectl-label-remove",
    "kubectl-label-add",
    "kubectl-annotate",
    "kubectl-set-image",
    "kubectl-edit",
    "kubectl-replace",
    "kubectl-patch-merge",
    "kubectl-patch-json-removes",
    "kubectl-replace-noop",
    "kubectl-rollout-restart",
    "csa-on-flux-changes-label",
    "configmap-csa-changes-key",
    "secret-update",
    "service-set-and-keyed-lists",
    "custom-resource-update",
    "status-update",
    "status-door-label",
    "reorder-init-containers",
]


def synthesised(name: str, operation: Any, **changed: Any) -> dict[str, Any]:
    request = json.loads((REVIEWS / f"{name}.json").read_text())["request"]
    new = request["object"]
    new["metadata"].pop("managedFields", None)
    client = Client(
        user=request["userInfo"]["username"],
        groups=(),
        manager=request["options"]["fieldManager"],
        operation=operation,
        subresource=request.get("subResource", ""),
        dry_run=request["dryRun"],
    )
    write = Write(request["oldObject"], new, (), changed.get("applied"), client, request["resource"]["resource"])
    return review_of_write(write)


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_moves_claims_as_the_server_did(name: str) -> None:
    captured = json.loads((REVIEWS / f"{name}.json").read_text())["request"]["object"]
    wanted = ManagedFields.parse(captured["metadata"]["managedFields"])
    made = ManagedFields.parse(synthesised(name, "Update")["request"]["object"]["metadata"]["managedFields"])
    assert set(made) == set(wanted)
    for identity, claim in wanted.items():
        assert set(made[identity].fields.leaves()) == set(claim.fields.leaves()), identity


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_is_understood_as_the_captured_one_was(name: str) -> None:
    captured = read_review((REVIEWS / f"{name}.json").read_bytes()).request
    made = review_of(synthesised(name, "Update")).request
    assert captured is not None and made is not None
    one, other = understand(captured), understand(made)
    assert other.requester == one.requester
    assert (other.written, other.removed, other.tampering) == (one.written, one.removed, one.tampering)


def test_an_apply_does_not_remove_what_another_claims() -> None:
    with pytest.raises(WriteError, match=r"does not remove \.metadata\.labels\.team, which kustomize-controller"):
        synthesised("kubectl-label-remove", "Apply")


def test_a_scale_is_never_created() -> None:
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    client = Client("me", (), "kubectl", "Update", "scale", dry_run=False)
    with pytest.raises(WriteError, match="never created"):
        review_of_write(Write(None, web, (), None, client, None))
