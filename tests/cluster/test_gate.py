"""A policy on its way into the cluster: the linter's words, by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.support import ANNOTATE, Object, invalid, owned, policy
from webhook.admission import BadCall
from webhook.cluster.gate import MAX_WARNINGS, Gate
from webhook.cluster.mirrored import Mirrored
from webhook.cluster.resource import text_of
from webhook.cluster.settling import Together


def review(new: Object | None, old: Object | None = None, operation: str = "CREATE", **request: Any) -> bytes:
    resource = {"group": "fieldwarden.dev", "version": "v1alpha1", "resource": "fieldpolicies"}
    asked = {
        "uid": "u1",
        "operation": operation,
        "resource": resource,
        "kind": {"group": "fieldwarden.dev", "version": "v1alpha1", "kind": "FieldPolicy"},
        "userInfo": {"username": "developer@example.com"},
        "object": new,
        "oldObject": old,
        "options": {},
        **request,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    folder = tmp_path / "cluster"
    folder.mkdir()
    return Mirrored(folder)


@pytest.fixture
def gate(tmp_path: Path, files: Path, mirrored: Mirrored) -> Gate:
    (tmp_path / "scratch").mkdir()
    return Gate(Together((files,), tmp_path / "scratch"), mirrored)


def answer(gate: Gate, body: bytes) -> Object:
    given = gate.answer(body)
    whole = json.loads(given.response)
    assert (whole["apiVersion"], whole["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Object = whole["response"]
    assert (response["uid"], response["allowed"]) == ("u1", given.decision.allowed)
    return response


def test_a_good_policy_is_let_in_without_a_word(gate: Gate) -> None:
    assert answer(gate, review(policy())) == {"uid": "u1", "allowed": True}


def test_a_bad_one_is_refused_with_a_cause_for_each_problem(gate: Gate) -> None:
    bad = invalid()
    bad["spec"]["rules"].append({"name": "who-writes", "integrity": {"onTampr": "Deny"}})
    response = answer(gate, review(bad))
    status = response["status"]
    assert (response["allowed"], status["code"], status["reason"]) == (False, 422, "Invalid")
    assert status["message"].startswith("the policy no-labels has 3 problems:\n* spec.rules[0].writers.deny[0]: ")
    details = status["details"]
    assert (details["name"], details["group"], details["kind"]) == ("no-labels", "fieldwarden.dev", "FieldPolicy")
    assert sorted(cause["field"] for cause in details["causes"]) == [
        "spec.rules[0].writers.deny[0]",
        "spec.rules[1].integrity.onTampr",
        "spec.rules[1].name",
    ]
    assert any("(did you mean onTamper?) [unknown-key]" in cause["message"] for cause in details["causes"])
    assert details["causes"][0]["message"].endswith("\n  [kubectl]\n  ^"), "a caret points at the fault"


def test_a_doubtful_one_is_let_in_with_warnings(gate: Gate) -> None:
    doubtful = owned("a", "flux")
    owner = doubtful["spec"]["rules"][0]["ownership"]["owners"][0]
    del owner["subjects"]
    (warning,) = answer(gate, review(doubtful))["warnings"]
    assert warning.startswith("spec.rules[0].ownership.owners[0].manager: the owner flux is known by name alone")


def test_warnings_are_not_without_end(gate: Gate) -> None:
    doubtful = owned("a", "flux")
    doubtful["spec"]["rules"][0]["ownership"]["owners"] = [f"m{number}" for number in range(MAX_WARNINGS + 5)]
    warnings = answer(gate, review(doubtful))["warnings"]
    assert len(warnings) == MAX_WARNINGS + 1
    assert warnings[-1] == "and 5 more"


def test_strict_refuses_what_the_server_would_not_load(files: Path, tmp_path: Path) -> None:
    doubtful = owned("a", "flux")
    del doubtful["spec"]["rules"][0]["ownership"]["owners"][0]["subjects"]
    assert answer(Gate(Together((), tmp_path, strict=True)), review(doubtful))["allowed"] is False


def test_labels_of_namespaces_are_nothing_to_warn_about(gate: Gate) -> None:
    item = policy(namespaceSelector={"matchLabels": {"team": "a"}})
    assert answer(gate, review(item)) == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize(
    "body",
    [
        review(None, invalid(), "DELETE"),
        review(invalid(), invalid(), "UPDATE"),
        review({**invalid(), "status": {"observedGeneration": 1}}, invalid(), "UPDATE", subResource="status"),
        review({**invalid(), "metadata": {"name": "no-labels", "labels": {"a": "b"}}}, invalid(), "UPDATE"),
        review(
            {**invalid(), "metadata": {"name": "no-labels", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
            policy(),
            "UPDATE",
        ),
    ],
    ids=["a deletion", "no change", "a status", "a label", "one that is being deleted"],
)
def test_nothing_stands_in_the_way_of(gate: Gate, body: bytes) -> None:
    assert answer(gate, body) == {"uid": "u1", "allowed": True}


def test_a_change_for_the_worse_is_refused(gate: Gate) -> None:
    assert answer(gate, review(invalid(), policy(), "UPDATE"))["allowed"] is False
    assert answer(gate, review(policy(), invalid(), "UPDATE"))["allowed"] is True


def test_a_name_that_a_file_has_is_a_warning_that_names_both(gate: Gate, files: Path) -> None:
    (files / "a.yaml").write_text(text_of(policy("a")))
    (warning,) = answer(gate, review(policy("a", ANNOTATE)))["warnings"]
    assert warning.startswith(
        "as things are, fieldpolicies/a would not be in force: metadata.name: there is a policy a"
    )
    assert str(files / "a.yaml") in warning


def test_what_contradicts_another_policy_is_a_warning(gate: Gate, mirrored: Mirrored) -> None:
    """A tool may be about to change the other one too: it asks about both before it writes either."""
    mirrored.write_policies({"a": text_of(owned("a", "flux"))})
    (warning,) = answer(gate, review(owned("b", "argo")))["warnings"]
    assert "[contradiction]" in warning
    assert answer(gate, review(owned("a", "argo"), owned("a", "flux"), "UPDATE")) == {"uid": "u1", "allowed": True}


def test_it_leaves_no_drafts(gate: Gate, tmp_path: Path) -> None:
    answer(gate, review(policy()))
    assert not list((tmp_path / "scratch").iterdir())


def test_a_review_of_something_else_is_a_bad_call(gate: Gate) -> None:
    other = {"group": "apps", "version": "v1", "resource": "deployments"}
    with pytest.raises(BadCall) as raised:
        gate.answer(review(policy(), resource=other))
    assert (raised.value.status, raised.value.reason) == (400, "wrong-kind")


def test_what_is_no_review_is_a_bad_call(gate: Gate) -> None:
    with pytest.raises(BadCall):
        gate.answer(b"{}")
