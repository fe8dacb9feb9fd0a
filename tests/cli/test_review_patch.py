"""`fieldwarden review --phase mutate`: the patch as the server sends it, and as a table for people."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import jsonpatch
import pytest
import yaml

from webhook.admission import DoubtfulPatch
from webhook.cli import main
from webhook.fields import FieldPath, ManagedFields

ROOT = Path(__file__).parent.parent.parent
REVIEWS = ROOT / "tests" / "reviews"
TEAM = FieldPath.parse(".metadata.labels.team")
POLICY = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: labels}
spec:
  mode: Enforce
  match:
    resources: [{groups: [apps], resources: [deployments]}]
  rules:
  - name: labels
    ownership:
      fields: [.metadata.labels]
      owners: [{manager: kustomize-controller, operation: Apply}]
      onChange: %s
      onShare: Release
  - name: people
    rename: {from: [kubectl-set], to: people}
"""

Review: TypeAlias = Callable[..., tuple[int, str]]


@pytest.fixture
def mutate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Review:
    """Asks the mutating call: the exit code and what was printed."""

    def run(review: str | dict[str, Any], *options: str, change: str = "Restore") -> tuple[int, str]:
        (tmp_path / "policy.yaml").write_text(POLICY % change)
        body = review if isinstance(review, dict) else captured(review)
        (tmp_path / "review.json").write_text(json.dumps(body))
        arguments = ("review", tmp_path / "review.json", "--policies", tmp_path, "--phase", "mutate", *options)
        code = main([str(argument) for argument in arguments])
        return code, capsys.readouterr().out

    return run


def captured(name: str) -> dict[str, Any]:
    review: dict[str, Any] = json.loads((REVIEWS / f"{name}.json").read_text())
    return review


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_answer_carries_the_patch_as_the_server_sends_it(mutate: Review, form: str) -> None:
    code, out = mutate("ghost-1-co-ownership", "-o", form)
    response = (json.loads(out) if form == "json" else yaml.safe_load(out))["response"]
    assert (code, response["allowed"], response["patchType"]) == (0, True, "JSONPatch")
    patched = jsonpatch.apply_patch(
        captured("ghost-1-co-ownership")["request"]["object"], base64.b64decode(response["patch"]).decode()
    )
    holders = ManagedFields.parse(patched["metadata"]["managedFields"]).holders(TEAM)
    assert [str(identity) for identity in holders] == ["kustomize-controller (Apply)"]


def test_the_table_shows_outcome_ownership_and_what_the_patch_touches(mutate: Review) -> None:
    code, out = mutate("ghost-1-co-ownership", "-o", "table")
    assert code == 0
    assert out.startswith("allowed with a patch: UPDATE deployments default/web by ")
    lines = [line.split() for line in out.splitlines()]
    assert ["share", "labels/labels", "Enforce", "release", "rewritten", ".metadata.labels.app"] in lines
    owners = out.partition("Claimed before by")[2].partition("Patch")[0]
    row = owners.partition(".metadata.labels.team")[2].partition("\n.")[0].split()
    assert row.count("kustomize-controller") == 2, "before and after"
    assert owners.count("kubectl-client-side-apply (Update)") == 2, "of both labels, before"
    assert ["replace", "/metadata/managedFields"] in lines


def test_the_table_tells_no_values(mutate: Review) -> None:
    text = json.dumps(captured("kubectl-label-overwrite"))
    was, now = (json.loads(text)["request"][key]["metadata"]["labels"]["team"] for key in ("oldObject", "object"))
    review = json.loads(text)
    review["request"]["oldObject"]["metadata"]["labels"]["team"] = "the-old-one"
    review["request"]["object"]["metadata"]["labels"]["team"] = "the-new-one"
    assert was != now
    code, out = mutate(review, "-o", "table")
    assert code == 0 and "rewritten" in out and ".metadata.labels.team" in out
    assert "the-old-one" not in out and "the-new-one" not in out


def test_a_rename_is_one_of_the_whole_claim(mutate: Review) -> None:
    code, out = mutate("kubectl-set-image", "-o", "table")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("the whole claim"))
    assert row.split("  ")[0] == "the whole claim" and row.endswith("kubectl-set (Update)   people (Update)")


def test_a_patch_that_cannot_be_vouched_for_is_no_answer(mutate: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubtful(*_: object) -> None:
        raise DoubtfulPatch("two claims have one identity")

    monkeypatch.setattr("webhook.admission.engine.decide", doubtful)
    code, out = mutate("ghost-1-co-ownership")
    assert (code, out) == (1, "")


def test_where_nothing_is_rewritten_the_table_says_so(mutate: Review) -> None:
    code, out = mutate("kubectl-label-add", "-o", "table")
    assert code == 0
    assert out.startswith("allowed: ") and "Nothing is rewritten." in out and "Patch" not in out


def test_what_is_denied_is_left_to_the_validating_call(mutate: Review) -> None:
    code, out = mutate("kubectl-label-overwrite", change="Deny")
    response = json.loads(out)["response"]
    assert (code, response["allowed"]) == (0, True) and "patch" not in response


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
def test_only_enforce_rewrites(mutate: Review, mode: str) -> None:
    code, out = mutate("ghost-1-co-ownership", "--mode", mode)
    assert code == 0 and "patch" not in json.loads(out)["response"]
