"""What is suggested is proved by what was recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.report.made import DEVELOPER, FLUX, OBSERVING, SHIPPED, judged, observed, policies, record
from webhook.policy import Mode, load_text
from webhook.policy.policyset import PolicySet
from webhook.report.records import MAX_PATHS, Record
from webhook.report.suggest import Proposal, propose
from webhook.report.suggest_fields import MAX_FIELDS, MAX_OWNERS

SA = {"serviceAccount": "flux-system/kustomize-controller"}


def flux(**given: object) -> Record:
    """Flux writes a label."""
    own = {"manager": "kustomize-controller", "operation": "Apply", "user": FLUX, "owner": "nobody", "would": "record"}
    return record(**(own | given))


def suggested(*records: Record, deny_seen: bool = False) -> dict[str, dict[str, object]]:
    """Specs by name."""
    text = propose(records, Proposal(("journal.db",), deny_seen))
    return {one["metadata"]["name"]: one["spec"] for one in yaml.safe_load_all(text) if one}


def enforced(text: str) -> PolicySet:
    """The text as it is, and as if somebody had switched it on: without a problem in either."""
    in_force, switched = re.subn(r"^  mode: Audit$", "  mode: Enforce", text, flags=re.MULTILINE)
    assert switched
    for one in (text, in_force):
        assert load_text(one, "suggested.yaml", strict=True).problems == ()
    loaded = load_text(in_force, "suggested.yaml", strict=True)
    assert loaded.policies is not None
    return loaded.policies


@pytest.mark.parametrize("sources", [[OBSERVING], [SHIPPED], [OBSERVING, SHIPPED]], ids=["observed", "shipped", "both"])
@pytest.mark.parametrize("times", [1, 5])
def test_nothing_that_was_recorded_would_be_denied(sources: list[Path], times: int) -> None:
    recorded = policies(*sources)
    found = enforced(propose(observed(recorded, times), Proposal()))
    with_results = [path for path, both in judged(recorded).items() if any(one.results for one in both)]
    assert len(with_results) > 25
    again = judged(found, Mode.ENFORCE, with_results)
    assert [path.stem for path, both in again.items() if not all(one.allowed for one in both)] == []


def test_only_what_is_listed_would_be_denied_where_that_is_asked_for() -> None:
    recorded = policies(OBSERVING, SHIPPED)
    text = propose(observed(recorded, 5), Proposal(deny_seen=True))
    again = judged(enforced(text), Mode.ENFORCE)
    refused = {
        f"{result.manager or '(unknown)'} by {result.user}:"
        for both in again.values()
        for decision in both
        for result in decision.results
        if result.outcome == "refused"
    }
    heading = text.partition("---")[0]
    assert "kubectl-edit by developer@example.com:" in refused
    assert [who for who in sorted(refused) if who not in heading] == []


def test_a_sole_writer_is_the_owner_of_what_it_writes() -> None:
    names, fields = suggested(flux(count=3)).values()
    assert names["rules"] == [
        {"name": "bound", "writers": {"bind": [{"manager": "kustomize-controller", "subjects": [SA]}]}}
    ]
    owner = {"manager": "kustomize-controller", "operation": "Apply", "subjects": [SA]}
    assert fields["rules"] == [
        {
            "name": "kustomize-controller",
            "ownership": {"fields": [".metadata.labels"], "owners": [owner], "onChange": "Deny"},
        }
    ]
    assert fields["match"] == {
        "resources": [{"groups": ["apps"], "resources": ["deployments"]}],
        "namespaces": ["team-a"],
    }


def test_whoever_wrote_too_becomes_an_exception_before_the_refusal() -> None:
    spec = suggested(flux(count=9), record())["suggested-deployments-apps"]
    exception, refusal = spec["rules"]  # type: ignore[misc]
    assert exception["for"] == {"subjects": [{"user": DEVELOPER}]}
    assert "onChange" not in exception["ownership"]
    assert exception["ownership"]["fields"] == [".metadata.labels.team"]
    assert refusal["ownership"]["onChange"] == "Deny"


def test_with_deny_seen_there_is_no_exception() -> None:
    spec = suggested(flux(count=9), record(), deny_seen=True)["suggested-deployments-apps"]
    assert [rule["name"] for rule in spec["rules"]] == ["kustomize-controller"]  # type: ignore[attr-defined]


def test_an_updater_guards_by_pattern_since_its_claim_can_be_pushed_out() -> None:
    keda = "system:serviceaccount:keda:keda-operator"
    spec = suggested(flux(manager="keda", operation="Update", user=keda, paths=(".spec.replicas",)))
    (rule,) = spec["suggested-deployments-apps"]["rules"]  # type: ignore[misc]
    assert rule["ownership"]["guard"] == "Matching"


def test_a_field_that_two_programs_hold_is_nobodys() -> None:
    argo = "system:serviceaccount:argocd:argocd-application-controller"
    other = flux(manager="argocd-controller", user=argo)
    assert list(suggested(flux(count=9), other)) == ["suggested-names"]
    text = propose([flux(count=9), other], Proposal())
    assert "deployments.apps .metadata.labels.team: held by argocd-controller, kustomize-controller" in text


def test_programs_that_hold_a_field_of_different_objects_both_own_it_there() -> None:
    argo = "system:serviceaccount:argocd:argocd-application-controller"
    spec = suggested(flux(count=9), flux(manager="argocd-controller", user=argo, name="db"))
    rules = [rule["name"] for rule in spec["suggested-deployments-apps"]["rules"]]  # type: ignore[attr-defined]
    assert rules == ["kustomize-controller-seen", "kustomize-controller", "argocd-controller-seen", "argocd-controller"]


def test_the_owner_of_a_claim_that_lost_a_path_is_not_locked_out_by_who_took_it() -> None:
    keda = "system:serviceaccount:keda:keda-operator"
    taken = record(manager="keda", operation="Update", user=keda, paths=(".spec.replicas",))
    assert "suggested-deployments-apps" not in suggested(taken, flux(paths=(".spec.replicas",)))


def test_a_name_that_people_bear_is_not_bound() -> None:
    assert suggested(record(count=50)) == {}


def test_a_spoofer_is_bound_in_unless_what_was_seen_may_be_denied() -> None:
    spoof = flux(user=DEVELOPER)
    for deny_seen, subjects in ((False, [{"user": DEVELOPER}, SA]), (True, [SA])):
        spec = suggested(flux(count=9), spoof, deny_seen=deny_seen)["suggested-names"]
        assert spec["rules"][0]["writers"]["bind"][0]["subjects"] == subjects  # type: ignore[index]


@pytest.mark.parametrize("deny_seen", [False, True])
def test_what_is_written_under_a_borrowed_name_is_not_its_bearers(deny_seen: bool) -> None:
    note = (".metadata.annotations.note",)
    spoof = flux(operation="Update", user=DEVELOPER, paths=note)
    under_it = flux(operation="Update", user=DEVELOPER, paths=note, owner="kustomize-controller (Update)", rule="own")
    overwritten = record(user="x", paths=note, owner="kustomize-controller (Update)")
    for recorded in ((spoof,), (under_it,), (spoof, overwritten)):
        specs = suggested(flux(count=9), *recorded, deny_seen=deny_seen)
        (rule,) = specs["suggested-deployments-apps"]["rules"]  # type: ignore[misc]
        owner = {"manager": "kustomize-controller", "operation": "Apply", "subjects": [SA]}
        assert rule["ownership"] == {"fields": [".metadata.labels"], "owners": [owner], "onChange": "Deny"}


def test_a_claim_counts_for_its_name_where_nobody_was_seen_to_borrow_it() -> None:
    named = flux(count=9, operation="Update", event="writer", paths=())
    exception, refusal = suggested(named, record())["suggested-deployments-apps"]["rules"]  # type: ignore[misc]
    assert exception["for"] == {"subjects": [{"user": DEVELOPER}]}
    assert refusal["ownership"]["owners"][0]["operation"] == "Apply"


@pytest.mark.parametrize("user", ["user-24e4f7ddb1f9cd88", "*", "a?b", "system:serviceaccount:x…", ""])
def test_a_user_whom_no_policy_can_name_is_no_ground_for_one(user: str) -> None:
    assert suggested(flux(user=user, count=9)) == {}


def test_an_exception_that_cannot_be_named_leaves_the_field_out() -> None:
    assert list(suggested(flux(count=9), record(user="user-24e4f7ddb1f9cd88"))) == ["suggested-names"]


@pytest.mark.parametrize(
    "paths", [tuple(f".spec.a{number:03}" for number in range(MAX_PATHS)), (".spec.a", "…"), (".spec[",)]
)
def test_a_record_that_does_not_hold_all_its_paths_counts_against_every_field(paths: tuple[str, ...]) -> None:
    exception, _ = suggested(flux(count=9), record(paths=paths, owner=""))["suggested-deployments-apps"]["rules"]  # type: ignore[misc]
    assert exception["ownership"]["fields"] == [".metadata.labels.team"]


def test_folded_records_prove_nothing_and_are_counted() -> None:
    folded = flux(count=70, name="*", user="*", manager="*", operation="*")
    assert suggested(folded) == {}
    assert "70 of the events are folded" in propose([folded, flux(count=9)], Proposal())


def test_a_manager_that_is_called_like_what_folds_is_a_writer_like_others() -> None:
    """The API server takes `*` for a name."""
    records = [flux(count=9), record(manager="*", count=50)]
    assert "folded" not in propose(records, Proposal())
    seen, _ = suggested(*records)["suggested-deployments-apps"]["rules"]  # type: ignore[misc]
    assert seen["for"] == {"subjects": [{"user": DEVELOPER}]}


def test_a_subresource_counts_for_its_resource() -> None:
    scaled = record(resource="deployments.apps/scale", paths=(".spec.replicas",), owner="")
    spec = suggested(flux(count=9, paths=(".spec.replicas",)), scaled)["suggested-deployments-apps"]
    assert [rule["name"] for rule in spec["rules"]] == ["kustomize-controller-seen", "kustomize-controller"]  # type: ignore[attr-defined]


def test_resources_with_the_same_rules_share_a_policy() -> None:
    spec = suggested(flux(count=9), flux(count=9, resource="statefulsets.apps"), flux(count=9, resource="services"))
    matched = spec["suggested-services"]["match"]["resources"]  # type: ignore[index]
    assert matched == [
        {"groups": [""], "resources": ["services"]},
        {"groups": ["apps"], "resources": ["deployments", "statefulsets"]},
    ]


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (".spec.template.spec.a{}.b", ".spec.template.spec"),
        (".spec.a{}", ".spec"),
        ('.spec.list[name="{}"].image', ".spec.list[*].image"),
        (".metadata.annotations.a{}", ".metadata.annotations"),
    ],
)
def test_many_paths_are_drawn_together(paths: str, pattern: str) -> None:
    many = tuple(paths.format(number) for number in range(60))
    (rule,) = suggested(flux(count=9, paths=many))["suggested-deployments-apps"]["rules"]  # type: ignore[misc]
    assert rule["ownership"]["fields"] == [pattern]


def test_of_very_many_owners_the_busiest_are_weighed_and_the_rest_is_told() -> None:
    """Names are free text: whoever makes up thousands holds up no suggestion."""
    made_up = [flux(manager=f"m{number}", paths=(f".spec.m{number}",), name=f"n{number}") for number in range(3000)]
    records = [flux(count=9), *made_up]
    rules = suggested(*records)["suggested-deployments-apps"]["rules"]
    assert isinstance(rules, list)
    assert len(rules) == MAX_OWNERS
    assert rules[0]["ownership"]["owners"][0]["manager"] == "kustomize-controller"
    assert f"what {3001 - MAX_OWNERS:,} managers hold" in propose(records, Proposal())


def test_of_very_many_fields_the_maps_are_weighed_as_wholes() -> None:
    labels = [flux(count=9, paths=(f".metadata.labels.a{number}",)) for number in range(MAX_FIELDS)]
    others = [flux(count=9, paths=(f".spec.a{number}",)) for number in range(MAX_FIELDS + 7)]
    (rule,) = suggested(*labels, others[0])["suggested-deployments-apps"]["rules"]  # type: ignore[misc]
    assert rule["ownership"]["fields"] == [".metadata.labels", ".spec.a0"]
    assert "8 of the fields that kustomize-controller holds" in propose([*labels, *others], Proposal())


def test_what_others_write_is_not_drawn_in_with_what_is_the_owners_alone() -> None:
    many = tuple(f".spec.{part}.a{number}" for part in ("mine", "ours") for number in range(30))
    exception, refusal = suggested(flux(count=9, paths=many), record(paths=(".spec.ours.a7",), owner=""))[
        "suggested-deployments-apps"
    ]["rules"]  # type: ignore[misc]
    assert exception["ownership"]["fields"] == [".spec.ours.a7"]
    fields = refusal["ownership"]["fields"]
    assert (".spec.mine" in fields, ".spec.ours" in fields, ".spec" in fields) == (True, False, False)
    assert {".spec.ours.a6", ".spec.ours.a7"} < set(fields)


@pytest.mark.parametrize(
    "manager", ["a\n---\nkind: Evil", "x: {y}", "\u202eevil", "a\u2028b", "'\"`", "-", "# no", "a b", "é", "{{", "\x07"]
)
def test_a_hostile_name_ends_no_comment_and_starts_no_document(manager: str) -> None:
    text = propose([flux(manager=manager, count=9), record(manager=manager)], Proposal((f"{manager}.db",)))
    assert all(line.isprintable() for line in text.splitlines())
    for document in yaml.safe_load_all(text):
        assert document is None or document["kind"] == "FieldPolicy"
    assert load_text(text, "suggested.yaml", strict=True).errors == ()


@pytest.mark.parametrize("manager", ["a,b", "m" * 200, "a[b]", "a{b}"])
def test_a_name_that_cannot_stand_in_a_policy_costs_no_other(manager: str) -> None:
    spec = suggested(flux(count=9), flux(manager=manager, count=9, name="db"))["suggested-names"]
    bound = spec["rules"][0]["writers"]["bind"]  # type: ignore[index]
    assert [one["manager"] for one in bound] == ["kustomize-controller"]


@pytest.mark.parametrize("resource", ["Deployments", "a b.apps", "x.y!", "", "*"])
def test_what_is_no_resource_proves_nothing(resource: str) -> None:
    assert suggested(flux(count=9, resource=resource)) == {}


def test_two_policies_never_have_one_name() -> None:
    resources = {"names": ".spec.n", "a.b.c": ".spec.dots", "a-b-c": ".spec.dashes"}
    specs = suggested(*(flux(count=9, resource=resource, paths=(path,)) for resource, path in resources.items()))
    assert sorted(specs) == ["suggested-a-b-c", "suggested-a-b-c-2", "suggested-names", "suggested-names-2"]


def test_what_several_rules_say_of_one_write_is_one_event() -> None:
    machine = {"manager": "tool", "user": "system:serviceaccount:ci:tool", "count": 2}
    once = [
        record(manager="tool", rule=rule, policy=policy, event=event)
        for rule, policy, event in (("a", "x", "change"), ("b", "x", "writer"), ("a", "y", "change"))
    ]
    text = propose([*once, record(**machine), record(name="db", **machine)], Proposal(deny_seen=True))
    assert "from 5 events," in text
    assert "tool by developer@example.com: 1 event, the name" in text
    assert "(4 events)" in text
    assert "tool by developer@example.com: 1 event, fields of deployments.apps" in text
    # counted by rule, most of the name's events would be by people, and it would not be bound
    assert "(1 event)" in propose([*once, record(**machine)], Proposal())


def test_nothing_recorded_proposes_nothing() -> None:
    assert propose([], Proposal()) == "# Nothing is recorded, so nothing can be proposed.\n"
