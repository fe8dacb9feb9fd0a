"""A real API server takes the rules and conditions, and sends what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster.rule_sets import (
    CLAIMED_LABELS,
    CLAIMED_REPLICAS,
    HEALED,
    RENAME,
    RESTORED_LABELS,
    RESTORED_REPLICAS,
    WRITERS,
    Object,
    policies,
    policy,
)
from webhook.cluster.discovery import Discovery, discover
from webhook.cluster.registration import conditions, rules
from webhook.policy import PolicySet
from webhook.sandbox import Capture, Registration, Sandbox
from webhook.sandbox.registration import PHASES

NODE = ("--as=system:node:x", "--as-group=system:nodes", "--as-group=system:masters")
CONTROLLER = ("--as=system:serviceaccount:kube-system:deployment-controller", "--as-group=system:masters")
SCHEDULER = ("--as=system:kube-scheduler", "--as-group=system:masters")
STRANGER = ("--as=system:serviceaccount:kube-system:somebody-elses-controller", "--as-group=system:masters")
ALONE = ("--as=alone@example.com", "--as-group=system:masters")


def served(sandbox: Sandbox, loaded: PolicySet) -> Discovery:
    def get(path: str) -> Object | None:
        reply = sandbox.request("GET", path)
        return reply.body if reply.status == 200 else None

    return discover(loaded, get)


def registration(sandbox: Sandbox, capture: Capture, loaded: PolicySet) -> Registration:
    asked = rules(loaded, served(sandbox, loaded))
    exempt = conditions(loaded)
    return Registration(
        capture.url, capture.ca_pem, asked.validating, match_conditions=exempt, mutate_rules=asked.mutating
    )


@contextmanager
def asked(sandbox: Sandbox, loaded: PolicySet) -> Iterator[Capture]:
    with Capture.start() as capture:
        sandbox.register(registration(sandbox, capture, loaded))
        try:
            yield capture
        finally:
            sandbox.unregister_webhooks()


def taken(capture: Capture) -> list[tuple[str, str, str]]:
    """What was sent: phase, operation, and resource with its subresource."""
    found = []
    for phase, review in capture.take():
        request = review["request"]
        below = f"/{request['subResource']}" if request.get("subResource") else ""
        found.append((phase, request["operation"], request["resource"]["resource"] + below))
    return sorted(set(found))


@pytest.fixture(scope="module")
def capture() -> Iterator[Capture]:
    with Capture.start() as listening:
        yield listening


places = st.tuples(
    st.sampled_from(["*", "", "apps", "coordination.k8s.io", "example.com"]),
    st.sampled_from(["*", "deployments", "configmaps", "leases", "widgets"]),
)
rule_kinds = st.sampled_from(
    [CLAIMED_LABELS, RESTORED_LABELS, CLAIMED_REPLICAS, RESTORED_REPLICAS, WRITERS, RENAME, HEALED]
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(st.tuples(st.lists(rule_kinds, min_size=1, max_size=2, unique_by=id), places), max_size=5))
def test_the_api_server_accepts_whatever_policies_come_to(
    sandbox: Sandbox, capture: Capture, drawn: list[tuple[list[Object], tuple[str, str]]]
) -> None:
    loaded = policies(*(policy(f"p{n}", kinds, [place]) for n, (kinds, place) in enumerate(drawn))) if drawn else None
    wanted = registration(sandbox, capture, loaded or PolicySet())
    for phase in PHASES:
        configuration = wanted.configuration(phase)
        configuration["metadata"]["name"] = "a-dry-run"
        path = f"/apis/admissionregistration.k8s.io/v1/{configuration['kind'].lower()}s"
        reply = sandbox.request("POST", path, configuration, params={"dryRun": "All"})
        assert reply.status == 201, reply.body
        assert not reply.warnings
        kept = reply.body["webhooks"][0]
        assert [{**each, "scope": "*"} for each in configuration["webhooks"][0]["rules"]] == kept.get("rules", [])


def test_people_and_strangers_are_asked_about_and_the_control_plane_is_not(sandbox: Sandbox, namespace: str) -> None:
    with asked(sandbox, policies(policy(on=[("", "configmaps")]))) as capture:
        for number, who in enumerate((NODE, CONTROLLER, SCHEDULER)):
            sandbox.kubectl("create", "configmap", f"exempt-{number}", "-n", namespace, *who)
            assert taken(capture) == []
        for number, who in enumerate((STRANGER, ALONE)):
            sandbox.kubectl("create", "configmap", f"judged-{number}", "-n", namespace, *who)
            assert taken(capture) == [("validate", "CREATE", "configmaps")]
        sandbox.kubectl("create", "configmap", "developed", "-n", namespace, user="developer")
        assert taken(capture) == [("validate", "CREATE", "configmaps")]


def test_a_policy_that_judges_the_control_plane_is_asked_about_it(sandbox: Sandbox, namespace: str) -> None:
    judging = policy(on=[("", "configmaps")], exempt={"controlPlane": False})
    with asked(sandbox, policies(judging)) as capture:
        sandbox.kubectl("create", "configmap", "node", "-n", namespace, *NODE)
        assert taken(capture) == [("validate", "CREATE", "configmaps")]


LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}}
TOKEN_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "none"}}


def events(namespace: str) -> tuple[Object, Object]:
    """One of each group."""
    about = {"kind": "ConfigMap", "namespace": namespace, "name": "a"}
    old = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "old"}, "involvedObject": about}
    new = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "new"},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "type": "Normal",
        "action": "a",
        "reason": "a",
        "reportingController": "example.com/a",
        "reportingInstance": "a",
        "regarding": about,
    }
    return old, new


def test_of_everything_what_keeps_a_cluster_alive_is_left_out(sandbox: Sandbox, namespace: str) -> None:
    everything = policies(policy(rules=[WRITERS, HEALED], on=[("*", "*")]))
    with asked(sandbox, everything) as capture:
        for item in (LEASE, *events(namespace)):
            sandbox.kubectl("create", "-n", namespace, "-f", "-", user="developer", input=json.dumps(item))
        sandbox.kubectl("auth", "can-i", "get", "pods", user="developer")
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        assert sandbox.request("POST", path, TOKEN_REVIEW, "developer").status == 201
        sandbox.kubectl("create", "serviceaccount", "robot", "-n", namespace, *NODE)
        sandbox.kubectl("create", "token", "robot", "-n", namespace, user="developer")
        assert taken(capture) == []
        sandbox.kubectl("create", "configmap", "a", "-n", namespace, user="developer")
        assert taken(capture) == [("mutate", "CREATE", "configmaps"), ("validate", "CREATE", "configmaps")]
        made = {"metadata": {"annotations": {"a": "b"}}}
        path = f"/api/v1/namespaces/{namespace}"
        both = [("mutate", "UPDATE", "namespaces"), ("validate", "UPDATE", "namespaces")]
        below = [("validate", "UPDATE", "namespaces/status")]  # nothing is rewritten there
        for patched, calls in ((path, both), (f"{path}/status", below)):
            reply = sandbox.request("PATCH", patched, made, "developer", "application/merge-patch+json")
            assert reply.status == 200
            assert taken(capture) == calls


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
        },
    },
}


def test_scale_is_asked_about_before_where_claims_are_needed(sandbox: Sandbox, namespace: str) -> None:
    with asked(sandbox, policies(policy(rules=[CLAIMED_REPLICAS]))) as capture:
        made = {**DEPLOYMENT, "metadata": {"name": "web", "namespace": namespace}}
        assert sandbox.apply(made, "flux", "developer").status == 201
        assert taken(capture) == [], "ownership judges no creations"
        sandbox.kubectl("scale", "deployment/web", "-n", namespace, "--replicas=2", user="developer")
        assert taken(capture) == [
            ("mutate", "UPDATE", "deployments/scale"),
            ("validate", "UPDATE", "deployments/scale"),
        ]
        sandbox.kubectl("label", "deployment/web", "-n", namespace, "a=b", user="developer")
        assert taken(capture) == [("validate", "UPDATE", "deployments")]


@pytest.mark.parametrize("named, sent, asked_in", [((), "v1", "v2"), (("v1",), "v2", "v1")])
def test_a_write_in_another_version_is_asked_about_in_the_one_that_policies_speak(
    sandbox: Sandbox, namespace: str, named: tuple[str, ...], sent: str, asked_in: str
) -> None:
    scaler = {
        "apiVersion": f"autoscaling/{sent}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
    on: tuple[str, ...] = ("autoscaling", "horizontalpodautoscalers", *named)
    with asked(sandbox, policies(policy(on=[on]))) as capture:  # type: ignore[list-item]
        assert sandbox.apply(scaler, "flux", "developer").status == 201
        [call] = capture.take()
        assert call.review["request"]["object"]["apiVersion"] == f"autoscaling/{asked_in}"
        assert call.review["request"]["requestKind"]["version"] == sent
