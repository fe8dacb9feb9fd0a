"""What a suite may expect of an object after the patch: values, claims, and that there is a patch at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from webhook.admission.decision import Decision
from webhook.admission.suite_check import failures_of
from webhook.admission.suite_read import read_suites

ROOT = Path(__file__).parent.parent.parent
REVIEWS = ROOT / "tests" / "reviews"
HEAD = "apiVersion: fieldwarden.dev/v1alpha1\nkind: Suite\npolicies: [policy.yaml]\ncases:\n"
CASE = "- name: one\n  review: review.json\n  phase: mutate\n  expect: "


def _entry(manager: str, operation: str, fields: Any, subresource: str = "") -> dict[str, Any]:
    where = {"subresource": subresource} if subresource else {}
    tree = {"apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {"manager": manager, "operation": operation, **tree, **where}


WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "labels": {"app": "web", "team": "a"},
        "finalizers": ["example.com/one"],
        "managedFields": [
            _entry("flux", "Apply", {"f:metadata": {"f:labels": {"f:app": {}, "f:team": {}}}}),
            _entry("kubectl-edit", "Update", {"f:metadata": {"f:labels": {"f:team": {}}}}),
            _entry("kubectl-label", "Update", {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": {"f:paused": {}}}),
            _entry("manager", "Update", {"f:status": {"f:replicas": {}}}, "status"),
        ],
    },
    "spec": {
        "replicas": 1,
        "paused": True,
        "minReadySeconds": None,
        "template": {"spec": {"containers": [{"name": "app", "image": "web:1"}]}},
    },
}
PATCH = (
    {"op": "remove", "path": "/metadata/managedFields/1"},
    {"op": "remove", "path": "/metadata/managedFields/1/fieldsV1/f:metadata"},
    {"op": "replace", "path": "/spec/replicas", "value": 5},
)
"""Takes kubectl-edit's claim away, thins kubectl-label's, and sets the replicas to 5."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "review.json").write_bytes((REVIEWS / "ghost-1-co-ownership.json").read_bytes())
    return tmp_path


def failures(folder: Path, expect: str, patch: tuple[dict[str, Any], ...] = PATCH) -> tuple[str, ...]:
    """What a case that expects this says of the object above and a patch."""
    (folder / "suite.yaml").write_text(HEAD + CASE + expect + "\n")
    (suite,), problems = read_suites(folder / "suite.yaml")
    assert problems == ()
    return tuple(failures_of(suite.cases[0].expect, Decision(patch=patch), WEB))


HOLDS = {
    "a patch": "{patched: true}",
    "a value": "{values: {.spec.replicas: 5}}",
    "a number is one however it is written": "{values: {.spec.replicas: 5.0}}",
    "a value in a list item": "{values: {'.spec.template.spec.containers[name=\"app\"].image': 'web:1'}}",
    "a member of a set": "{values: {'.metadata.finalizers[=\"example.com/one\"]': example.com/one}}",
    "a whole map": "{values: {.metadata.labels: {team: a, app: web}}}",
    "nothing": "{values: {.metadata.annotations: null, .spec.strategy.type: null}}",
    "null in the object is nothing": "{values: {.spec.minReadySeconds: null}}",
    "a claim": "{claims: [{manager: flux}]}",
    "a claim by operation": "{claims: [{manager: flux, operation: Apply}]}",
    "a claim by subresource": "{claims: [{manager: manager, subresource: status, holds: [.status.replicas]}]}",
    "a claim that holds a path": "{claims: [{manager: flux, holds: [.metadata.labels.team]}]}",
    "a claim that holds what lies below": "{claims: [{manager: flux, holds: [.metadata.labels]}]}",
    "a claim that lacks a path": "{claims: [{manager: kubectl-label, lacks: [.metadata.labels.team]}]}",
    "a claim that holds exactly this": "{claims: [{manager: kubectl-label, fields: [.spec.paused]}]}",
    "a claim that holds exactly what patterns find": "{claims: [{manager: flux, fields: ['.metadata.labels[*]']}]}",
    "no claim any more": "{claims: [{manager: kubectl-edit, exists: false}]}",
    "no claim of any such name": "{claims: [{manager: 'kubectl-e*', exists: false}]}",
    "no claim of another operation": "{claims: [{manager: flux, operation: Update, exists: false}]}",
    "several claims together": "{claims: [{manager: '*l*', fields: [.metadata.labels, .spec.paused]}]}",
}


@pytest.mark.parametrize("what", HOLDS)
def test_what_the_patch_made_can_be_expected(folder: Path, what: str) -> None:
    assert failures(folder, HOLDS[what]) == ()


FAILS = {
    "no patch": (
        "{patched: false}",
        "expected no patch; it does remove /metadata/managedFields/1,"
        " remove /metadata/managedFields/1/fieldsV1/f:metadata, replace /spec/replicas",
    ),
    "the value before the patch": (
        "{values: {.spec.replicas: 1}}",
        "another value than expected is at .spec.replicas",
    ),
    "true for 1": ("{values: {.spec.paused: 1}}", "another value than expected is at .spec.paused"),
    "a value that is not there": (
        "{values: {.metadata.labels.gone: x}}",
        "expected a value at .metadata.labels.gone; nothing is there",
    ),
    "nothing where a value is": (
        "{values: {.metadata.labels.team: null}}",
        "expected nothing at .metadata.labels.team; a value is there",
    ),
    "a claim that is not there": (
        "{claims: [{manager: kubectl-edit, lacks: [.metadata.labels.team]}]}",
        "expected a claim of kubectl-edit; there are flux (Apply), kubectl-label (Update), manager (Update, status)",
    ),
    "a claim of another operation": (
        "{claims: [{manager: flux, operation: Update}]}",
        "expected a claim of flux (Update); there are ",
    ),
    "a claim on another subresource": (
        "{claims: [{manager: manager, operation: Update, subresource: scale}]}",
        "expected a claim of manager (Update, scale); there are ",
    ),
    "a claim that should be gone": (
        "{claims: [{manager: 'kubectl-*', exists: false}]}",
        "expected no claim of kubectl-*; kubectl-label (Update) claims .spec.paused",
    ),
    "a path that is not claimed": (
        "{claims: [{manager: kubectl-label, operation: Update, holds: [.metadata.labels.team]}]}",
        "expected kubectl-label (Update) to claim .metadata.labels.team; it does not",
    ),
    "a path that is claimed still": (
        "{claims: [{manager: flux, lacks: [.metadata.labels]}]}",
        "expected flux not to claim .metadata.labels; it claims .metadata.labels.app, .metadata.labels.team",
    ),
    "more than expected": (
        "{claims: [{manager: flux, fields: [.metadata.labels.app]}]}",
        "flux claims .metadata.labels.team as well",
    ),
    "less than expected": (
        "{claims: [{manager: kubectl-label, fields: [.spec.paused, .spec.replicas]}]}",
        "expected kubectl-label to claim .spec.replicas; it does not",
    ),
}


@pytest.mark.parametrize("what", FAILS)
def test_what_is_not_so_is_told_by_path_and_name(folder: Path, what: str) -> None:
    expect, said = FAILS[what]
    (failure,) = failures(folder, expect)
    assert failure.startswith(said)


def test_no_value_is_told(folder: Path) -> None:
    secret = "{values: {.metadata.labels.team: very-secret, .metadata.labels.app: null}}"
    told = " ".join(failures(folder, secret))
    assert told and "very-secret" not in told and "web" not in told


def test_without_a_patch_the_requests_object_is_meant(folder: Path) -> None:
    claims = "claims: [{manager: kubectl-edit, fields: [.metadata.labels.team]}]"
    assert failures(folder, "{patched: false, values: {.spec.replicas: 1}, " + claims + "}", ()) == ()
    assert failures(folder, "{patched: true}", ()) == ("expected a patch; there is none",)


def test_a_patch_that_does_not_fit_fails_the_case(folder: Path) -> None:
    patch = ({"op": "remove", "path": "/spec/nothing"},)
    (failure,) = failures(folder, "{values: {.spec.replicas: 1}}", patch)
    assert failure.startswith("the patch does not fit the object (") and failure.endswith("remove /spec/nothing")


def test_an_object_without_claims_has_none(folder: Path) -> None:
    (folder / "suite.yaml").write_text(HEAD + CASE + "{claims: [{manager: flux}, {manager: flux, exists: false}]}\n")
    (suite,), _ = read_suites(folder / "suite.yaml")
    for obj in ({}, {"metadata": None}, {"metadata": {"name": "web"}}):
        assert list(failures_of(suite.cases[0].expect, Decision(), obj)) == [
            "expected a claim of flux; there are no claims"
        ]


FAULTS = {
    "patched that is no flag": ("{patched: 1}", "8:21", "wrong-type"),
    "patched beside a denial": ("{allowed: false, patched: true}", "8:28", "case-shape"),
    "values that are a list": ("{values: [.spec]}", "8:20", "wrong-type"),
    "no values": ("{values: {}}", "8:20", "empty-value"),
    "an empty key": ("{values: }", "8:12", "empty-value"),
    "a value at no path": ("{values: {.spec..replicas: 1}}", "8:21", "bad-path"),
    "a value at a pattern": ("{values: {'.spec[*]': 1}}", "8:21", "bad-path"),
    "claims that are a mapping": ("{claims: {manager: flux}}", "8:20", "wrong-type"),
    "no claims": ("{claims: []}", "8:20", "empty-value"),
    "a claim of nobody": ("{claims: [{holds: [.spec]}]}", "8:21", "missing-key"),
    "a key that no claim has": ("{claims: [{manager: flux, hold: [.spec]}]}", "8:37", "unknown-key"),
    "an operation that is none": ("{claims: [{manager: flux, operation: apply}]}", "8:48", "wrong-value"),
    "a subresource that is none": ("{claims: [{manager: flux, subresource: stats}]}", "8:50", "wrong-value"),
    "a pattern that is none": ("{claims: [{manager: flux, lacks: [.a..b]}]}", "8:48", "bad-path"),
    "fields of what does not exist": ("{claims: [{manager: x, exists: false, lacks: [.a]}]}", "8:49", "case-shape"),
    "an outcome that is none": ("{events: [{kind: change, outcome: denied}]}", "8:45", "wrong-value"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_with_its_place_and_advice(folder: Path, fault: str) -> None:
    expect, place, rule = FAULTS[fault]
    (folder / "suite.yaml").write_text(HEAD + CASE + expect + "\n")
    _, (problem,) = read_suites(folder / "suite.yaml")
    assert (f"{problem.line}:{problem.column}", problem.rule) == (place, rule), str(problem)
    assert problem.advice


@pytest.mark.parametrize("flag", ["true", "false"])
def test_the_validating_call_cannot_be_expected_to_patch_or_not(folder: Path, flag: str) -> None:
    text = (HEAD + CASE).replace("phase: mutate", "phase: validate")
    (folder / "suite.yaml").write_text(text + "{patched: " + flag + "}\n")
    _, (problem,) = read_suites(folder / "suite.yaml")
    assert (problem.rule, problem.advice) == ("case-shape", "add phase: mutate")
