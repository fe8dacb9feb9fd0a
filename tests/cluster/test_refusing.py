"""`kubectl apply` of a FieldPolicy, with the webhook that lints it registered: it fails open."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support import PATH, Object, following, in_force, invalid, owned, policy
from tests.server.serving import Server, eventually
from webhook.sandbox import Completed, Sandbox

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def configuration(server: Server) -> Object:
    """As the installation registers it."""
    rule = {
        "apiGroups": ["fieldwarden.dev"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["fieldpolicies"],
    }
    webhook = {
        "name": "policies.fieldwarden.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.listen[1]}/validate-policy",
            "caBundle": base64.b64encode(server.ca.read_bytes()).decode(),
        },
        "rules": [rule],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 5,
    }
    return {"metadata": {"name": "policies"}, "webhooks": [webhook]}


@pytest.fixture
def server(clean: Sandbox, folder: Path) -> Iterator[Server]:
    """Registered, and known to be asked."""
    with following(clean, folder) as server:
        made = clean.request("POST", CONFIGURATIONS, configuration(server))
        assert made.status == 201, made.body
        dry = {"dryRun": "All"}
        eventually(lambda: clean.request("POST", PATH, invalid("probe"), params=dry).status == 422)
        yield server
        assert clean.request("DELETE", f"{CONFIGURATIONS}/policies").status == 200
        eventually(lambda: clean.request("POST", PATH, invalid("probe"), params=dry).status == 201)


def apply(sandbox: Sandbox, item: Object) -> Completed:
    return sandbox.kubectl("apply", "-f", "-", input=json.dumps(item), check=False)


def test_people_read_the_linter_s_words_with_the_field(server: Server, clean: Sandbox) -> None:
    bad = policy("bad")
    bad["spec"]["rules"].append({"name": "labels", "ownership": {"fields": [".metadata.labels[x"], "owners": ["a"]}})
    bad["spec"]["rules"][0]["writers"]["dney"] = ["a"]
    done = apply(clean, bad)
    assert done.returncode == 1
    assert "spec.rules[0].writers.dney: " in done.stderr
    assert "there is no key dney here (did you mean deny?) [unknown-key]" in done.stderr
    assert "spec.rules[1].ownership.fields[0]: " in done.stderr
    assert "[bad-path]" in done.stderr
    assert clean.request("GET", f"{PATH}/bad").status == 404


def test_warnings_reach_people_too(server: Server, clean: Sandbox) -> None:
    doubtful = owned("doubtful", "flux")
    del doubtful["spec"]["rules"][0]["ownership"]["owners"][0]["subjects"]
    done = apply(clean, doubtful)
    assert done.returncode == 0
    assert "Warning: spec.rules[0].ownership.owners[0].manager: the owner flux is known by name alone" in done.stderr


def test_a_good_policy_is_applied_and_in_force(server: Server, clean: Sandbox) -> None:
    done = apply(clean, policy())
    assert (done.returncode, done.stderr) == (0, "")
    in_force(server, label=True)
    assert server.metric("fieldwarden_requests_total", phase="policy", decision="allowed") >= 1
    assert server.metric("fieldwarden_requests_total", phase="policy", decision="denied") >= 1


def test_an_invalid_policy_can_be_deleted_and_repaired(server: Server, clean: Sandbox) -> None:
    """It came while nobody looked."""
    assert clean.request("DELETE", f"{CONFIGURATIONS}/policies").status == 200
    held = invalid("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    eventually(lambda: clean.request("POST", PATH, held).status == 201)
    assert clean.request("POST", PATH, invalid("bad")).status == 201
    assert clean.request("POST", CONFIGURATIONS, configuration(server)).status == 201
    eventually(lambda: clean.request("POST", PATH, invalid("probe"), params={"dryRun": "All"}).status == 422)
    clean.kubectl("label", "fwp", "bad", "a=b")
    assert apply(clean, policy("bad")).returncode == 0
    clean.kubectl("delete", "fwp", "bad")
    clean.kubectl("delete", "fwp", "held", "--wait=false")
    clean.kubectl("patch", "fwp", "held", "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]')
    assert clean.request("GET", f"{PATH}/held").status == 404


def test_with_nobody_to_ask_policies_are_let_in(server: Server, clean: Sandbox) -> None:
    assert server.stop() == 0
    assert apply(clean, invalid("bad")).returncode == 0
    clean.kubectl("delete", "fwp", "bad")
