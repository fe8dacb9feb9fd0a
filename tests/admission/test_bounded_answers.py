"""Whatever a client writes: what is answered is short and plain enough to be read, and what is recorded is whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from webhook.admission import Decision, Engine
from webhook.policy import load_text

REVIEW = Path(__file__).parent.parent / "reviews" / "custom-resource-update.json"
HUGE = "k" * 1_400_000

POLICY = """
---
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {{name: p{number}}}
spec:
  mode: {mode}
  match: {{resources: [{{groups: [example.com], resources: [gadgets]}}]}}
  rules:
  - name: all-of-it
    ownership:
      fields: [.spec]
      owners: [{{manager: kustomize-controller, operation: Apply, subjects: [{{user: flux@example.com}}]}}]
      onChange: Deny
"""


def answered(
    keys: list[str],
    mode: str = "Enforce",
    policies: int = 1,
    user: str = "developer@example.com",
    manager: str = "kubectl-edit",
) -> Any:
    """What comes of a change of so many fields that Flux owns: the whole answer, and the decision."""
    told = json.loads(REVIEW.read_text())
    request = told["request"]
    request["userInfo"]["username"] = user
    request["options"]["fieldManager"] = manager
    request["object"]["metadata"]["managedFields"][1]["manager"] = manager
    for which, value, entry in (("oldObject", 1, 0), ("object", 2, 1)):
        request[which]["spec"] |= dict.fromkeys(keys, value)
        request[which]["metadata"]["managedFields"][entry]["fieldsV1"]["f:spec"] |= {f"f:{key}": {} for key in keys}
    loaded = load_text("".join(POLICY.format(number=number, mode=mode) for number in range(policies)), "p.yaml")
    assert loaded.policies, loaded.problems
    answer = Engine(loaded.policies).answer(json.dumps(told).encode(), "validate")
    return json.loads(answer.response)["response"], answer.decision


def test_a_path_without_end_is_cut_in_all_that_is_answered() -> None:
    response, _ = answered([HUGE])
    status = response["status"]
    assert not response["allowed"]
    assert len(status["message"]) < 1000
    assert ".spec.kkkk" in status["message"] and "kkk…" in status["message"]
    assert max(len(cause["field"]) for cause in status["details"]["causes"]) == 300
    assert len(json.dumps(response)) < 5000


def test_what_is_recorded_of_it_is_whole() -> None:
    decision: Decision = answered([HUGE])[1]
    (result,) = decision.results
    assert f".spec.{HUGE}" in result.paths
    assert len(result.message) < 1000


@pytest.mark.parametrize("mode", ["Enforce", "Warn", "Audit"])
def test_many_long_paths_of_many_policies_under_a_long_name_make_no_long_answer(mode: str) -> None:
    keys = [f"{number}-{'k' * 5000}" for number in range(40)]
    response, decision = answered(keys, mode, policies=30, user="u" * 100_000)
    assert len(decision.results) == 30
    assert len(response.get("status", {}).get("message", "")) < 8192
    assert sum(len(text.encode()) for text in response.get("warnings", ())) <= 4096
    assert len(response["auditAnnotations"]["events"]) <= 2000
    assert len(json.dumps(response)) < 100_000


def test_of_more_denials_than_people_read_the_number_is_told() -> None:
    message = answered([f"{number}-{'k' * 5000}" for number in range(40)], policies=30)[0]["status"]["message"]
    *lines, last = message.splitlines()
    assert [line[: line.index("]")] for line in lines] == [f"[p{number}/all-of-it" for number in range(len(lines))]
    assert last == f"and {30 - len(lines)} more"
    assert 1 <= len(lines) < 30


UNSEEN = "\x9b2J\u202e\u200b\U000e0041\x1b[31m\x7f"


@pytest.mark.parametrize("mode", ["Enforce", "Warn", "Audit"])
def test_what_would_do_something_to_a_terminal_is_spelt_out_in_all_that_is_answered(mode: str) -> None:
    response, decision = answered([f"key{UNSEEN}"], mode, user=f"user{UNSEEN}", manager=f"manager{UNSEEN}")
    status, told = response.get("status", {}), response.get("warnings", [])
    told += [*status.get("message", "").splitlines(), *response["auditAnnotations"].values()]
    told += [text for cause in status.get("details", {}).get("causes", ()) for text in cause.values()]
    assert all(text.isprintable() for text in told)
    spelt = r"\u009b2J\u202e\u200b\udb40\udc41\u001b[31m\u007f"
    assert any(f"manager{spelt} (Update) by user{spelt} may not change" in text for text in told)
    (result,) = decision.results
    assert (result.user, result.manager) == (f"user{UNSEEN}", f"manager{UNSEEN}")
    assert f'.spec["key{spelt}"]' in result.paths
