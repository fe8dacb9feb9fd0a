"""Suites of writes in the user's words, put right by policies that rewrite: one case for each action, and the example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webhook.admission import DoubtfulPatch
from webhook.admission.suite import SuiteReport, run_suite

ROOT = Path(__file__).parent.parent.parent
REVIEWS = ROOT / "tests" / "reviews"
POLICY = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: from-git}
spec:
  mode: Audit
  match: {resources: [{groups: [apps], resources: [deployments]}]}
  rules:
"""
GIT = "owners: [{manager: kustomize-controller, operation: Apply}]"
RULES = {
    "Restore": f"ownership: {{fields: [.metadata.labels], {GIT}, onChange: Restore}}",
    "Reassign": f"ownership: {{fields: [.metadata.labels], {GIT}, onChange: Reassign}}\n"
    "    for: {subjects: [{group: oncall}]}",
    "Release": f"ownership: {{fields: [.metadata.labels], {GIT}, onShare: Release}}",
    "Prune": f"ownership: {{fields: [.metadata.labels], {GIT}, onGhost: Prune}}",
    "Rename": 'rename: {from: ["kubectl-*"], to: people}',
    "tamper": "integrity: {onTamper: Restore}",
    "scale": f"ownership: {{fields: [.spec.replicas], {GIT}, onChange: Restore}}",
}
HEAD = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: Suite
policies: [policy.yaml]
mode: Enforce
cases:
- name: one
  phase: mutate
  user: developer@example.com
  groups: [oncall]
"""
WEB = """\
  old: &web
    apiVersion: apps/v1
    kind: Deployment
    metadata: &meta {name: web, namespace: team-a, labels: {app: web, team: a}}
    spec: &spec {replicas: 2, paused: true}
"""
RELABELLED = "  new: {<<: *web, metadata: {<<: *meta, labels: {app: web, team: b}}}\n"
FLUX = "{manager: kustomize-controller, operation: Apply}"
EDIT = "{manager: kubectl-edit, operation: Update, fields: [.metadata.labels, .spec.paused]}"

CASES = {
    "Restore": RELABELLED
    + f"  claims: [{FLUX}]\n  manager: kubectl-label\n  operation: Update\n"
    + """  expect:
    allowed: true
    patched: true
    events: [{kind: change, action: Restore, outcome: rewritten, paths: [.metadata.labels.team]}]
    values: {.metadata.labels: {app: web, team: a}}
    claims:
    - {manager: kustomize-controller, holds: [.metadata.labels.team, .metadata.labels.app]}
    - {manager: kubectl-label, exists: false}
""",
    "Reassign": RELABELLED
    + f"  claims: [{FLUX}]\n  manager: kubectl-label\n  operation: Update\n"
    + """  expect:
    patched: true
    events: [{kind: change, action: Reassign, outcome: rewritten}]
    values: {.metadata.labels.team: b}
    claims:
    - {manager: kustomize-controller, operation: Apply, holds: [.metadata.labels.team]}
    - {manager: kubectl-label, exists: false}
""",
    "Release": "  new: *web\n"
    + f"  claims: [{EDIT}]\n  manager: kustomize-controller\n  operation: Apply\n"
    + """  expect:
    patched: true
    events: [{kind: share, action: Release, outcome: rewritten}]
    values: {.metadata.labels: {app: web, team: a}}
    claims:
    - {manager: kustomize-controller, holds: [.metadata.labels.app, .metadata.labels.team]}
    - {manager: kubectl-edit, fields: [.spec.paused]}
""",
    "Prune": "  new: *web\n  applied: [.metadata.labels.app, .spec]\n"
    + f"  claims: [{FLUX}, {EDIT}]\n  manager: kustomize-controller\n  operation: Apply\n"
    + """  expect:
    patched: true
    events: [{kind: ghost, action: Prune, outcome: rewritten, paths: [.metadata.labels.team]}]
    values: {.metadata.labels: {app: web}}
    claims: [{manager: kubectl-edit, fields: [.metadata.labels.app, .spec.paused]}]
""",
    "Rename": "  new: {<<: *web, spec: {<<: *spec, paused: false}}\n"
    + f"  claims: [{FLUX}]\n  manager: kubectl-edit\n  operation: Update\n"
    + """  expect:
    patched: true
    events: [{kind: rename, outcome: rewritten}]
    values: {.spec.paused: false}
    claims:
    - {manager: people, operation: Update, fields: [.spec.paused]}
    - {manager: "kubectl-*", exists: false}
""",
    "tamper": "  new: {<<: *web, metadata: {<<: *meta, managedFields: []}}\n"
    + f"  claims: [{FLUX}]\n  manager: kubectl-patch\n  operation: Update\n"
    + """  expect:
    patched: true
    events: [{kind: tamper, action: Restore, outcome: rewritten}]
    claims: [{manager: kustomize-controller, operation: Apply, holds: [.metadata.labels.app, .spec.replicas]}]
""",
    "scale": "  subresource: scale\n  new: {<<: *web, spec: {<<: *spec, replicas: 5}}\n"
    + f"  claims: [{FLUX}]\n  manager: kubectl\n  operation: Update\n"
    + """  expect:
    patched: true
    events: [{kind: change, action: Restore, outcome: rewritten, paths: [.spec.replicas]}]
    values: {.spec.replicas: 2}
    claims:
    - {manager: kustomize-controller, fields: [.spec.replicas]}
    - {manager: kubectl, subresource: scale, exists: false}
""",
}


def run(folder: Path, rule: str, suite: str) -> SuiteReport:
    (folder / "policy.yaml").write_text(f"{POLICY}  - name: rule\n    {rule}\n")
    (folder / "suite.yaml").write_text(suite)
    return run_suite(folder / "suite.yaml")


@pytest.mark.parametrize("action", CASES)
def test_a_rewrite_is_seen_by_its_suite(tmp_path: Path, action: str) -> None:
    report = run(tmp_path, RULES[action], HEAD + WEB + CASES[action])
    assert report.problems == ()
    assert [(case.passed, case.failures) for case in report.cases] == [(True, ())]


@pytest.mark.parametrize("action", CASES)
def test_without_the_rewrite_the_same_case_fails(tmp_path: Path, action: str) -> None:
    report = run(tmp_path, RULES[action], (HEAD + WEB + CASES[action]).replace("mode: Enforce", "mode: Audit"))
    assert report.problems == ()
    (case,) = report.cases
    assert "expected a patch; there is none" in case.failures and len(case.failures) > 1


def test_a_patch_that_cannot_be_vouched_for_fails_the_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubtful(*_: object) -> None:
        raise DoubtfulPatch("two claims have one identity")

    monkeypatch.setattr("webhook.admission.suite.decide", doubtful)
    report = run(tmp_path, RULES["Release"], HEAD + WEB + CASES["Release"])
    (case,) = report.cases
    assert case.failures == ("the mutating call answers with an error: two claims have one identity",)


def test_the_example_of_a_rewrite_in_the_documentation_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "suites.md").read_text()
    _, example = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "cases").mkdir()
    for name in ("ghost-1-co-ownership", "kubectl-label-add"):
        (tmp_path / "cases" / f"{name}.json").write_bytes((REVIEWS / f"{name}.json").read_bytes())
    report = run(tmp_path, RULES["Release"], HEAD.partition("- name")[0] + example)
    assert report.passed and len(report.cases) == 2, (report.problems, report.cases)
