"""What the API server is asked to send: enough for every policy, and no more."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.rule_sets import (
    CLAIMED_LABELS,
    CLAIMED_REPLICAS,
    HEALED,
    MATCHING_REPLICAS,
    RENAME,
    RESTORED_LABELS,
    RESTORED_REPLICAS,
    SERVED,
    WRITERS,
    Object,
    asks,
    policies,
    policy,
    rule,
)
from webhook.admission import decide, read_review
from webhook.cluster.discovery import Discovery, discover
from webhook.cluster.registration import MAX_CONDITIONS, conditions, rules
from webhook.policy import Mode, PolicySet, load
from webhook.policy.control_plane import ALL_USERS, GROUP, is_control_plane
from webhook.policy.evaluate import Phase

ROOT = Path(__file__).parents[2]
REVIEWS = sorted(path for path in (ROOT / "tests/reviews").glob("*.json") if path.name != "index.json")
SHIPPED = sorted(path.parent for path in (ROOT / "policies").glob("*/policy.yaml"))

DEPLOYMENTS = ("deployments", "deployments/*")


def of(*items: Object, cap: Mode = Mode.ENFORCE) -> tuple[list[Object], list[Object]]:
    found = rules(policies(*items), SERVED, cap)
    assert found.doubts == ()
    return found.validating, found.mutating


# Rules of the validating call


def test_a_rule_is_asked_about_a_resource_and_all_below_it_in_the_preferred_version() -> None:
    validating, _ = of(policy(rules=[WRITERS]))
    assert validating == [rule("apps", "v1", "CREATE", "deployments"), rule("apps", "v1", "UPDATE", *DEPLOYMENTS)]


def test_ownership_is_not_asked_about_creations() -> None:
    validating, _ = of(policy(rules=[CLAIMED_LABELS]))
    assert validating == [rule("apps", "v1", "UPDATE", *DEPLOYMENTS)]


def test_names_are_not_asked_about_below_a_resource() -> None:
    validating, mutating = of(policy(rules=[RENAME]))
    assert validating == mutating == [rule("apps", "v1", "CREATE UPDATE", "deployments")]


def test_nothing_that_creates_below_a_resource_is_asked_about() -> None:
    """Evictions, bindings and tokens are other kinds: no node waits for fieldwarden to be drained."""
    validating, mutating = of(policy(rules=[WRITERS, HEALED], on=[("*", "*")]))
    assert asks(validating, "UPDATE", "", "v1", "pods/status")
    for below in ("pods/eviction", "pods/binding", "serviceaccounts/token"):
        assert not asks(validating + mutating, "CREATE", "", "v1", below)


def test_policies_on_one_group_are_asked_about_together_and_each_once() -> None:
    one = policy("one", [CLAIMED_LABELS], [("apps", "deployments"), ("apps", "statefulsets")])
    two = policy("two", [CLAIMED_LABELS], [("apps", "statefulsets"), ("", "configmaps")])
    wanted = [
        rule("", "v1", "UPDATE", "configmaps", "configmaps/*"),
        rule("apps", "v1", "UPDATE", *DEPLOYMENTS, "statefulsets", "statefulsets/*"),
    ]
    assert of(one, two)[0] == of(two, one)[0] == wanted


def test_what_a_star_means_is_not_named_again() -> None:
    everything = policy("everything", [CLAIMED_LABELS], [("*", "*")])
    assert of(everything)[0] == [rule("*", "*", "UPDATE", "*/*")]
    assert of(everything, policy())[0] == [
        rule("*", "*", "UPDATE", "*/*"),
        rule("apps", "v1", "CREATE", "deployments"),
    ]
    group = policy("group", [WRITERS], [("apps", "*")])
    assert of(group, policy())[0] == [rule("apps", "*", "CREATE", "*"), rule("apps", "*", "UPDATE", "*/*")]
    anywhere = policy("anywhere", [WRITERS], [("*", "deployments")])
    assert of(anywhere, policy())[0] == [
        rule("*", "*", "CREATE", "deployments"),
        rule("*", "*", "UPDATE", *DEPLOYMENTS),
    ]


def test_no_policy_asks_nothing() -> None:
    assert of() == ([], [])


# Rules of the mutating call


@pytest.mark.parametrize("rewriting, operations", [(RESTORED_LABELS, "UPDATE"), (RENAME, "CREATE UPDATE")])
def test_what_may_be_rewritten_is_asked_about_in_enforce_alone(rewriting: Object, operations: str) -> None:
    assert of(policy(rules=[rewriting]))[1] == [rule("apps", "v1", operations, "deployments")]
    assert of(policy(rules=[rewriting], mode="Warn"))[1] == []
    assert of(policy(rules=[rewriting]), cap=Mode.AUDIT)[1] == []


def test_creations_are_asked_about_for_rules_that_rewrite_them_alone() -> None:
    assert of(policy(rules=[RESTORED_LABELS, WRITERS]))[1] == [
        rule("apps", "v1", "UPDATE", "deployments", "deployments/scale")
    ]


def test_what_is_only_refused_is_not_asked_about_before() -> None:
    assert of(policy(rules=[CLAIMED_LABELS]))[1] == []


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
@pytest.mark.parametrize("claims", [CLAIMED_REPLICAS, WRITERS])
def test_whoever_needs_claims_is_asked_about_scale_in_every_mode(claims: Object, mode: str) -> None:
    """Only the mutating call shows them."""
    assert of(policy(rules=[claims], mode=mode))[1] == [rule("apps", "v1", "UPDATE", "deployments/scale")]


def test_restored_replicas_are_asked_about_with_scale_in_enforce() -> None:
    assert of(policy(rules=[RESTORED_REPLICAS]))[1] == [
        rule("apps", "v1", "UPDATE", "deployments", "deployments/scale")
    ]
    assert of(policy(rules=[RESTORED_REPLICAS], mode="Audit"))[1] == []
    assert of(policy(rules=[MATCHING_REPLICAS]))[1] == [], "values and user tell, in the validating call"
    seen = {"managedBy": ["hpa"]}
    assert of(policy(rules=[MATCHING_REPLICAS], match=seen))[1] == [rule("apps", "v1", "UPDATE", "deployments/scale")]


def test_policies_that_no_scale_can_be_about_are_not_asked_about_it() -> None:
    """A Scale carries no labels, and of its parent nothing but replicas, which may stand elsewhere."""
    selected = {"objectSelector": {"matchLabels": {"a": "b"}}}
    assert of(policy(rules=[CLAIMED_REPLICAS], match=selected))[1] == []
    on = [("example.com", "widgets")]
    assert rules(policies(policy(rules=[CLAIMED_REPLICAS], on=on, scalePath=".spec.size")), SERVED).mutating == []
    assert of(policy(rules=[CLAIMED_REPLICAS], on=on, scalePath=".spec.replicas"))[1] == [
        rule("example.com", "*", "UPDATE", "widgets/scale")
    ]


# Versions


def test_the_version_that_a_policy_names_is_asked_about() -> None:
    on = ("autoscaling", "horizontalpodautoscalers")
    assert [each["apiVersions"] for each in of(policy(on=[on]))[0]] == [["v2"], ["v2"]]
    assert [each["apiVersions"] for each in of(policy(on=[(*on, "v1")]))[0]] == [["v1"], ["v1"]]


def test_of_two_versions_the_preferred_one_is_asked_about_and_that_is_told() -> None:
    on = ("autoscaling", "horizontalpodautoscalers")
    found = rules(policies(policy("new", on=[on]), policy("old", on=[(*on, "v1")])), SERVED)
    assert {version for each in found.validating for version in each["apiVersions"]} == {"v2"}
    assert found.doubts == (
        "horizontalpodautoscalers.autoscaling is asked about in v2 alone, and policies speak v1 (old), v2 (new)",
    )


def test_what_is_not_served_is_asked_about_in_any_version() -> None:
    """As soon as it is: custom resources may come later."""
    found = rules(policies(policy(on=[("example.com", "widgets")])), SERVED)
    assert found.validating[0]["apiVersions"] == ["*"] and not found.doubts
    named = rules(policies(policy(on=[("example.com", "widgets", "v1beta1")])), SERVED)
    assert named.validating[0]["apiVersions"] == ["v1beta1"] and not named.doubts
    gone = rules(policies(policy(on=[("apps", "deployments", "v9")])), SERVED)
    assert gone.validating[0]["apiVersions"] == ["*"]
    assert gone.doubts == ("a-policy: deployments.apps is not served in v9",)


def test_a_resource_is_found_in_the_preferred_version_that_serves_it() -> None:
    documents: dict[str, Object] = {
        "/apis/example.com": {
            "preferredVersion": {"version": "v2"},
            "versions": [{"version": "v3alpha1"}, {"version": "v2"}, {"version": "v1"}],
        },
        "/apis/example.com/v2": {"resources": [{"name": "gadgets"}, {"name": "gadgets/status"}]},
        "/apis/example.com/v1": {"resources": [{"name": "gadgets"}, {"name": "widgets"}]},
        "/apis/example.com/v3alpha1": {"resources": [{"name": "gadgets"}]},
        "/api/v1": {"resources": [{"name": "pods"}]},
    }
    asked: list[str] = []

    def get(path: str) -> Object | None:
        asked.append(path)
        return documents.get(path)

    on = [("example.com", "widgets"), ("example.com", "gadgets"), ("", "pods"), ("gone.example.com", "things")]
    found = discover(policies(policy(on=[*on, ("*", "secrets"), ("apps", "*")])), get)
    assert found == Discovery(
        {
            ("", "pods"): ("v1",),
            ("example.com", "gadgets"): ("v2", "v3alpha1", "v1"),
            ("example.com", "widgets"): ("v1",),
        }
    )
    assert len(asked) == len(set(asked)) and "/apis/apps" not in asked


# What is never asked about


@pytest.mark.parametrize(
    "place",
    [
        ("coordination.k8s.io", "leases"),
        ("", "events"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("openreports.io", "reports"),
        ("wgpolicyk8s.io", "clusterpolicyreports"),
    ],
)
def test_what_keeps_a_cluster_alive_is_never_asked_about_and_that_is_told(place: tuple[str, str]) -> None:
    found = rules(policies(policy(on=[place])), SERVED)
    assert (found.validating, found.mutating) == ([], [])
    [doubt] = found.doubts
    assert doubt.startswith("a-policy: writes of ") and doubt.endswith(" are never asked about")


def test_where_a_star_means_it_a_condition_leaves_it_out() -> None:
    def never(*on: tuple[str, str]) -> str:
        return "".join(each["expression"] for each in conditions(policies(policy(on=on))) if "review" in each["name"])

    assert never(("apps", "deployments"), ("apps", "*"), ("", "events")) == ""
    assert never(("", "*")) == '!((request.resource.group == "" && request.resource.resource in ["events"]))'
    assert re.findall(r'"([a-z0-9.]*k8s.io)"', never(("*", "*"))) == [
        "authentication.k8s.io",
        "authorization.k8s.io",
        "coordination.k8s.io",
        "events.k8s.io",
        "wgpolicyk8s.io",
    ]
    assert 'group == "openreports.io" && request.resource.resource in ["clusterreports", "reports"]' in never(
        ("*", "*")
    )
    assert never(("coordination.k8s.io", "*")) == '!((request.resource.group == "coordination.k8s.io"))'


# Conditions


def test_the_control_plane_is_exempt_by_the_very_names_that_policies_exempt() -> None:
    users, nodes = (each["expression"] for each in conditions(policies(policy())))
    assert set(re.findall(r'"([^"]+)"', users)) == ALL_USERS
    assert re.findall(r'"([^"]+)"', nodes) == [GROUP]


def test_one_policy_that_judges_the_control_plane_takes_the_exemption_away() -> None:
    judging = policy("judging", exempt={"controlPlane": False})
    assert conditions(policies(policy(), judging)) == []


def test_conditions_are_few_and_their_names_are_their_own() -> None:
    found = conditions(policies(policy(on=[("*", "*")])))
    assert len({each["name"] for each in found}) == len(found) <= MAX_CONDITIONS


# The law: whatever a policy finds something in is asked about


def shipped() -> Iterator[PolicySet]:
    for folder in SHIPPED:
        loaded = load([folder / "policy.yaml"]).policies
        assert loaded is not None
        yield loaded


def made() -> Iterator[PolicySet]:
    """Each kind of rule alone, on what the reviews are about."""
    on = [("apps", "deployments"), ("", "configmaps"), ("", "services"), ("example.com", "widgets")]
    anybody = {"fields": [".spec", ".metadata.labels"], "owners": ["nobody"], "guard": "Matching"}
    for each in (WRITERS, RENAME, HEALED, RESTORED_LABELS, RESTORED_REPLICAS, MATCHING_REPLICAS, CLAIMED_REPLICAS):
        yield policies(policy(rules=[each], on=on))
    for action in ("Deny", "Restore"):
        yield policies(policy(rules=[{"name": "anybody", "ownership": {**anybody, "onChange": action}}], on=on))


@pytest.mark.parametrize("mode", [Mode.ENFORCE, Mode.AUDIT])
def test_no_review_in_which_a_policy_finds_something_is_left_out(mode: Mode) -> None:
    found: set[tuple[str, str, str]] = set()
    for given in (*shipped(), *made()):
        loaded = PolicySet(tuple(dataclasses.replace(each, mode=mode) for each in given.policies))
        for path in REVIEWS:
            found.update((path.name, *call) for call in calls(loaded, path.read_bytes()))
    assert len(found) > 50
    assert {("kubectl-scale.mutate.json", "mutate", "scale"), ("kubectl-scale.json", "validate", "scale")} <= found


def calls(loaded: PolicySet, body: bytes) -> Iterator[tuple[str, str]]:
    """The calls in which something is found: phase and subresource. Each must be asked for."""
    request, review = json.loads(body)["request"], read_review(body)
    kind, below = request["resource"], request.get("subResource", "")
    asked = rules(loaded, Discovery({(kind["group"], kind["resource"]): (kind["version"],)}))
    resource = f"{kind['resource']}/{below}" if below else kind["resource"]
    phases: tuple[tuple[Phase, list[Object]], ...] = (("validate", asked.validating), ("mutate", asked.mutating))
    for phase, of_phase in phases:
        decision = decide(loaded, review, phase)
        if decision.results or decision.patch or not decision.allowed:
            assert asks(of_phase, request["operation"], kind["group"], kind["version"], resource)
            assert not is_control_plane(review.user) or not conditions(loaded)
            yield phase, below


def test_reviews_that_nothing_can_be_found_in_are_left_out() -> None:
    labels: Any = policies(policy(rules=[CLAIMED_LABELS], on=[("apps", "deployments")]))
    found = rules(labels, SERVED)
    left_out = 0
    for path in REVIEWS:
        request = json.loads(path.read_bytes())["request"]
        kind = request["resource"]
        left_out += not asks(found.validating, request["operation"], kind["group"], kind["version"], kind["resource"])
    assert left_out > 0
