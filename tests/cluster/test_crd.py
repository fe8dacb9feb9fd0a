"""The custom resource's definition, on a real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.support import PATH, Object, policy
from webhook.cluster import Api, Gone
from webhook.cluster.crd import definition
from webhook.cluster.resource import problems_of
from webhook.sandbox import Sandbox

SHIPPED = sorted((Path(__file__).parents[2] / "policies").glob("*/policy.yaml"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_the_server_finds_no_fault_in_the_schema(fieldpolicies: Sandbox) -> None:
    stored = fieldpolicies.request("GET", f"{DEFINITIONS}/{definition()['metadata']['name']}").body
    conditions = {one["type"]: one["status"] for one in stored["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}  # and not NonStructuralSchema


def test_it_is_applied_again_without_a_change(fieldpolicies: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "crd.json").write_text(json.dumps(definition()))
    apply = ("apply", "--server-side", "-f", str(tmp_path / "crd.json"), "--force-conflicts")
    fieldpolicies.kubectl(*apply)
    path = f"{DEFINITIONS}/{definition()['metadata']['name']}"
    before = fieldpolicies.request("GET", path).body["metadata"]["resourceVersion"]
    fieldpolicies.kubectl(*apply)
    assert fieldpolicies.request("GET", path).body["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.parent.name)
def test_every_shipped_policy_is_accepted_and_stays_as_it_is_written(clean: Sandbox, file: Path) -> None:
    clean.kubectl("apply", "-f", str(file))
    clean.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    for written in yaml.safe_load_all(file.read_text()):
        stored = clean.request("GET", f"{PATH}/{written['metadata']['name']}").body
        assert stored["spec"] == {"mode": "Audit", **written["spec"]}


def refused(sandbox: Sandbox, item: Object) -> str:
    reply = sandbox.request("POST", PATH, item)
    assert reply.status == 422, reply.body
    return str(reply.body["message"])


def with_rule(**rule: Any) -> Object:
    made = policy()
    made["spec"]["rules"] = [{"name": "r", **rule}]
    return made


def with_spec(**spec: Any) -> Object:
    made = policy()
    made["spec"] |= spec
    return {**made, "spec": {key: value for key, value in made["spec"].items() if value is not None}}


OWNED = {"fields": [".spec"], "owners": ["flux"]}


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ({**policy(), "spec": None}, "spec"),
        (with_spec(mode="enforce"), "spec.mode"),
        (with_spec(match=None), "spec.match"),
        (with_spec(match={"resources": []}), "spec.match.resources"),
        (with_spec(match={"resources": [{"groups": ["apps"]}]}), "spec.match.resources[0].resources"),
        (with_spec(match={"resources": [{"groups": "apps", "resources": ["x"]}]}), "spec.match.resources[0].groups"),
        (with_spec(rules=[]), "spec.rules"),
        (with_spec(rules=[{"name": "r"}]), "exactly one of ownership, writers, integrity, rename"),
        (with_spec(exempt={"controlPlane": "no"}), "spec.exempt.controlPlane"),
        (with_spec(exempt={"subjects": [{"user": "a", "group": "b"}]}), "spec.exempt.subjects[0]"),
        (with_spec(exempt={"subjects": [{}]}), "spec.exempt.subjects[0]"),
        (with_rule(writers={"deny": ["a"]}, integrity={}), "exactly one of"),
        (with_rule(writers={"deny": ["a"], "allow": ["b"]}), "spec.rules[0].writers"),
        (with_rule(writers={"deny": [""]}), "spec.rules[0].writers.deny[0]"),
        (with_rule(writers={"deny": [{"operation": "Apply"}]}), "spec.rules[0].writers.deny[0].manager"),
        (with_rule(writers={"bind": [{"manager": "a"}]}), "spec.rules[0].writers.bind[0].subjects"),
        (with_rule(ownership={**OWNED, "guard": "All"}), "spec.rules[0].ownership.guard"),
        (with_rule(ownership={**OWNED, "onGhost": "Deny"}), "spec.rules[0].ownership.onGhost"),
        (with_rule(ownership={**OWNED, "fields": [1]}), "spec.rules[0].ownership.fields[0]"),
        (with_rule(ownership={**OWNED, "onChange": None}), "spec.rules[0].ownership.onChange"),
        ({**policy(), "spec": {**policy()["spec"], "mode": None}}, "spec.mode"),
        (with_rule(rename={"from": ["a"]}), "spec.rules[0].rename.to"),
    ],
)
def test_another_shape_is_refused_by_the_server_itself(clean: Sandbox, item: Object, path: str) -> None:
    assert path in refused(clean, item)


@pytest.mark.parametrize("given", [{"onChnage": "Deny"}, {"leftovers": None}, {"except": None}])
def test_a_key_that_means_nothing_is_kept_for_the_linter_to_refuse(clean: Sandbox, given: Object) -> None:
    item = with_rule(ownership={**OWNED, **given})
    made = clean.request("POST", PATH, item)
    assert made.status == 201, made.body
    assert made.body["spec"]["rules"][0]["ownership"] == {**OWNED, **given}
    assert [one.path for one in problems_of(made.body) if one.is_error] == [
        f"spec.rules[0].ownership.{next(iter(given))}"
    ]


def test_people_see_mode_readiness_and_age(clean: Sandbox) -> None:
    clean.kubectl("apply", "-f", "-", input=json.dumps(policy()))
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "InForce",
        "message": "in force",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"observedGeneration": 1, "conditions": [condition], "matchedResources": ["*.*"], "problems": []}
    status["mode"] = "Audit"
    Api.connect(clean.kubeconfig()).patch_status(f"{PATH}/no-labels", status)
    lines = clean.kubectl("get", "fwp").stdout.splitlines()
    assert lines[0].split() == ["NAME", "MODE", "EFFECTIVE", "READY", "AGE"]
    assert lines[1].split()[:4] == ["no-labels", "Enforce", "Audit", "True"]


def test_a_write_of_the_policy_leaves_its_status_and_the_other_way_round(clean: Sandbox) -> None:
    made = clean.request("POST", PATH, {**policy(), "status": {"observedGeneration": 7}}).body
    assert "status" not in made
    api = Api.connect(clean.kubeconfig())
    patched = api.patch_status(f"{PATH}/no-labels", {"observedGeneration": 1})
    assert (patched["metadata"]["generation"], patched["status"]) == (1, {"observedGeneration": 1})
    assert api.replace(f"{PATH}/no-labels", {**patched, "status": {}})["status"] == {"observedGeneration": 1}


def test_every_key_is_explained(fieldpolicies: Sandbox) -> None:
    told = fieldpolicies.kubectl("explain", "fieldpolicy.spec.rules.ownership.onShare").stdout
    assert "After the write an owner and a non-owner claim one path" in told


def test_a_version_of_before_the_definition_is_gone(fieldpolicies: Sandbox) -> None:
    api = Api.connect(fieldpolicies.kubeconfig())
    with pytest.raises(Gone):
        list(api.watch(PATH, "1", 5))
