"""`change`: somebody who is no owner changed or removed a guarded value."""

from __future__ import annotations

from tests.evaluation.writes import (
    DEPLOYMENT,
    DEVELOPER,
    FLUX,
    FLUX_USER,
    IMAGE,
    NAMES,
    ONCALL,
    TEAM,
    changed,
    events,
    judge,
    updater,
    write,
)
from webhook.fields import Change, Identity, User

LABELS = """
- name: labels
  ownership:
    fields: [.metadata.labels]
    owners: [{manager: kustomize-controller, operation: Apply, subjects: [{serviceAccount: flux-system/kustomize-controller}]}]
    onChange: Deny
"""
EDIT = updater("kubectl-edit")


def overwrite(user: User = DEVELOPER) -> Change:
    return write(
        DEPLOYMENT,
        changed(DEPLOYMENT, team="b"),
        {FLUX: [TEAM]},
        {FLUX: [], EDIT: [TEAM]},
        manager="kubectl-edit",
        user=user,
    )


def test_a_claimed_label_that_another_manager_overwrites_is_refused_with_owner_path_and_remedy() -> None:
    decision = judge(overwrite(), LABELS)
    assert not decision.allowed
    assert decision.message == (
        "[p/labels] kubectl-edit (Update) by developer@example.com may not change .metadata.labels.team: "
        "it is owned by kustomize-controller (Apply). Change it in Git and let it be applied."
    )
    assert [(cause.field, cause.message) for cause in decision.causes] == [
        (TEAM, "[p/labels] owned by kustomize-controller (Apply)")
    ]


def test_of_several_owners_the_one_is_named_whose_field_it_was() -> None:
    """The other lost a field that is not the rule's business."""
    owners = LABELS.replace("owners: [", "owners: [{manager: argocd, operation: Apply}, ")
    argo = Identity("argocd", "Apply")
    change = write(
        DEPLOYMENT,
        changed(DEPLOYMENT, team="b", image="other"),
        {argo: [IMAGE], FLUX: [TEAM]},
        {argo: [], FLUX: [], EDIT: [IMAGE, TEAM]},
        manager="kubectl-edit",
        user=DEVELOPER,
    )
    assert "it is owned by kustomize-controller (Apply)" in judge(change, owners).message


def test_a_removed_label_is_a_change_by_whoever_asks_also_unnamed() -> None:
    change = write(DEPLOYMENT, changed(DEPLOYMENT, team=None), {FLUX: [TEAM]}, {FLUX: []})
    assert events(judge(change, LABELS)) == [("change", "labels", [TEAM])]
    assert "an unknown manager by developer@example.com" in judge(change, LABELS).message


def test_the_owner_changes_what_it_owns() -> None:
    change = write(
        DEPLOYMENT, changed(DEPLOYMENT, team="b"), {FLUX: [TEAM]}, {FLUX: [TEAM]}, manager=FLUX.manager, user=FLUX_USER
    )
    assert events(judge(change, LABELS)) == []


def test_the_owners_name_used_by_another_user_is_not_the_owner() -> None:
    change = write(DEPLOYMENT, changed(DEPLOYMENT, team="b"), {FLUX: [TEAM]}, {FLUX: [TEAM]}, manager=FLUX.manager)
    assert events(judge(change, LABELS)) == [("change", "labels", [TEAM])]


def test_what_no_owner_claims_is_nobodys_under_guard_claimed() -> None:
    change = write(
        DEPLOYMENT, changed(DEPLOYMENT, team="b"), {FLUX: []}, {FLUX: [], EDIT: [TEAM]}, manager="kubectl-edit"
    )
    assert events(judge(change, LABELS)) == []


def test_an_exception_is_left_to_everyone() -> None:
    rules = LABELS.replace("onChange", "except: ['.metadata.labels[\"te*\"]']\n    onChange")
    assert events(judge(overwrite(), rules)) == []


def test_the_first_rule_that_guards_a_path_decides_about_it() -> None:
    break_glass = """
- name: break-glass
  for: {subjects: [{group: oncall}]}
  ownership:
    fields: [.metadata.labels]
    owners: [{manager: kustomize-controller, operation: Apply}]
"""
    assert judge(overwrite(ONCALL), break_glass + LABELS).allowed
    assert events(judge(overwrite(ONCALL), break_glass + LABELS)) == [("change", "break-glass", [TEAM])]
    assert events(judge(overwrite(DEVELOPER), break_glass + LABELS)) == [("change", "labels", [TEAM])]


def test_an_owner_of_the_first_rule_is_not_judged_by_the_second() -> None:
    for_people = """
- name: people-may
  ownership:
    fields: [.metadata.labels.team]
    owners: [{manager: "kubectl-*", subjects: [{user: developer@example.com}]}, {manager: kustomize-controller}]
"""
    assert events(judge(overwrite(), for_people + LABELS)) == []


def test_what_an_owner_of_the_first_rule_holds_is_not_judged_by_the_second() -> None:
    change = write(
        DEPLOYMENT, changed(DEPLOYMENT, team="b"), {FLUX: [TEAM]}, {FLUX: [TEAM]}, manager=FLUX.manager, user=FLUX_USER
    )
    everything = """
- name: all
  ownership: {fields: [.metadata], owners: [{manager: argocd-controller, subjects: [{user: argo}]}], guard: Matching, onChange: Deny}
"""
    assert events(judge(change, everything)) == [("change", "all", [TEAM])]
    assert events(judge(change, LABELS + everything)) == []


MATCHING = """
- name: replicas
  ownership:
    fields: [.spec.replicas]
    owners: [{manager: kube-controller-manager, subjects: [{user: autoscaler@example.com}]}]
    guard: Matching
    onChange: Deny
"""


def test_a_matching_path_is_guarded_whoever_claims_it() -> None:
    change = write(
        DEPLOYMENT,
        changed(DEPLOYMENT, replicas=3),
        {},
        {EDIT: [".spec.replicas"], FLUX: [TEAM]},
        manager="kubectl-edit",
    )
    assert events(judge(change, MATCHING)) == [("change", "replicas", [".spec.replicas"])]


def test_what_another_webhook_wrote_is_not_blamed_on_the_requester() -> None:
    new = changed(DEPLOYMENT, team="b", replicas=3)
    change = write(DEPLOYMENT, new, {FLUX: [TEAM]}, {FLUX: [], EDIT: [TEAM]}, manager="kubectl-edit")
    assert events(judge(change, MATCHING)) == []


def test_an_object_without_claims_is_guarded_by_values() -> None:
    change = write(DEPLOYMENT, changed(DEPLOYMENT, replicas=3), {}, {})
    assert events(judge(change, MATCHING)) == [("change", "replicas", [".spec.replicas"])]


def test_a_scale_without_claims_is_judged_by_values_and_user_in_the_validating_call_alone() -> None:
    old, new = {"spec": {"replicas": 2}}, {"spec": {"replicas": 5}}
    change = write(old, new, {}, {}, subresource="scale")
    assert events(judge(change, MATCHING)) == [("change", "replicas", [".spec.replicas"])]
    assert events(judge(change, MATCHING, phase="mutate")) == []
    owner = write(old, new, {}, {}, subresource="scale", user=User("autoscaler@example.com"))
    assert events(judge(owner, MATCHING)) == []


def test_a_scale_is_judged_by_claims_in_the_mutating_call_alone() -> None:
    claimed = LABELS.replace(".metadata.labels", ".spec.replicas")
    replicas = [".spec.replicas"]
    change = write(
        {"spec": {"replicas": 2}},
        {"spec": {"replicas": 5}},
        {FLUX: replicas},
        {updater("kubectl", "scale"): replicas},
        subresource="scale",
    )
    assert events(judge(change, claimed, phase="mutate")) == [("change", "labels", replicas)]
    assert events(judge(change, claimed)) == []


def test_a_custom_resources_scale_is_a_write_of_the_path_that_the_policy_gives() -> None:
    rules = MATCHING.replace(".spec.replicas", ".spec.size")
    change = write({"spec": {"replicas": 2}}, {"spec": {"replicas": 5}}, {}, {}, subresource="scale")
    assert events(judge(change, rules, extra="scalePath: .spec.size")) == [("change", "replicas", [".spec.size"])]
    assert events(judge(change, rules)) == []


def test_what_lies_below_and_above_a_field_is_guarded_with_it() -> None:
    for pattern in (".spec.template", IMAGE, ".spec"):
        rules = LABELS.replace("fields: [.metadata.labels]", f"fields: ['{pattern}']")
        change = write(
            DEPLOYMENT,
            changed(DEPLOYMENT, image="web:2"),
            {FLUX: [IMAGE, *NAMES]},
            {FLUX: NAMES, EDIT: [IMAGE]},
            manager="kubectl-edit",
        )
        assert events(judge(change, rules)) == [("change", "labels", [IMAGE])], pattern


def test_an_object_being_deleted_only_has_its_changes_recorded() -> None:
    old = changed(DEPLOYMENT, deleting=True)
    change = write(old, changed(old, team=None), {FLUX: [TEAM]}, {FLUX: []})
    decision = judge(change, LABELS)
    assert decision.allowed
    assert [result.would for result in decision.results] == ["record"]


def test_a_change_that_a_policy_wants_restored_is_refused_and_says_so() -> None:
    decision = judge(overwrite(), LABELS.replace("onChange: Deny", "onChange: Restore"))
    assert not decision.allowed
    assert "Restore" in decision.message
    assert decision.results[0].would == "restore"


def test_a_claim_taken_through_a_subresource_that_does_not_store_the_field_is_a_change() -> None:
    me = updater("kubectl-edit", "resize")
    change = write(
        DEPLOYMENT,
        changed(DEPLOYMENT, image="web:2"),
        {FLUX: [TEAM, IMAGE]},
        {FLUX: [], me: [TEAM, IMAGE]},
        manager=me.manager,
        subresource="resize",
    )
    assert change.explained[FLUX] == ("another-webhook",)
    every = LABELS.replace(".metadata.labels", '".*"')
    assert events(judge(change, every)) == [("change", "labels", [TEAM, IMAGE])]


def test_migrating_claims_is_no_change() -> None:
    csa = updater("kubectl-client-side-apply")
    last = '.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]'
    kubectl = Identity("kubectl", "Apply")
    change = write(DEPLOYMENT, DEPLOYMENT, {csa: [TEAM, last], kubectl: []}, {kubectl: [TEAM, last]}, manager="kubectl")
    rules = LABELS.replace("kustomize-controller, operation: Apply", "kubectl-client-side-apply")
    assert events(judge(change, rules)) == []
