"""`writer`, `impersonation`, `tamper`, `rename`; matching, exemptions and modes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.evaluation.writes import (
    DEPLOYMENT,
    DEVELOPER,
    FLUX,
    FLUX_USER,
    TEAM,
    changed,
    events,
    found_by,
    judge,
    updater,
    write,
)
from webhook.fields import Change, Identity, ManagedFields, User
from webhook.policy import Mode

CSA = updater("kubectl-client-side-apply")
WRITERS = """
- name: names
  writers:
    deny: [kubectl-client-side-apply]
    bind: [{manager: kustomize-controller, subjects: [{serviceAccount: flux-system/kustomize-controller}]}]
"""
INTEGRITY = """
- name: claims
  integrity: {allow: [{serviceAccount: flux-system/*}], migrates: [helm], onTamper: Deny}
"""


def by(manager: str, user: User = DEVELOPER, before: list[Identity] | None = None) -> Change:
    me = updater(manager)
    held = {identity: [".metadata.labels.app"] for identity in before or []}
    return write(DEPLOYMENT, changed(DEPLOYMENT, team="b"), held, {**held, me: [TEAM]}, manager=manager, user=user)


def test_a_denied_name_may_not_write() -> None:
    decision = judge(by("kubectl-client-side-apply"), WRITERS)
    assert events(decision) == [("writer", "names", [])]
    assert "kubectl-client-side-apply (Update) by developer@example.com may not write here" in decision.message


def test_an_unlisted_name_may_not_write_where_names_are_listed() -> None:
    rule = "- name: known\n  writers: {allow: [kubectl-edit, 'argocd-*']}\n"
    assert events(judge(by("curl"), rule)) == [("writer", "known", [])]
    assert events(judge(by("argocd-controller"), rule)) == []


def test_an_unknown_manager_is_no_writer() -> None:
    rule = "- name: known\n  writers: {allow: [kubectl-edit]}\n"
    assert events(judge(write(DEPLOYMENT, changed(DEPLOYMENT, team=None), {FLUX: [TEAM]}, {FLUX: []}), rule)) == []


def test_a_bound_name_used_by_another_user_is_an_impersonation() -> None:
    decision = judge(by("kustomize-controller"), WRITERS)
    assert events(decision) == [("impersonation", "names", [])]
    assert "developer@example.com may not write as kustomize-controller" in decision.message
    assert events(judge(by("kustomize-controller", FLUX_USER), WRITERS)) == []


def test_names_are_judged_at_creation_too() -> None:
    assert events(judge(write(None, DEPLOYMENT, {}, {CSA: [TEAM]}, manager=CSA.manager), WRITERS)) == [
        ("writer", "names", [])
    ]


def test_a_status_write_is_judged_by_name_only_where_it_leaves_status() -> None:
    old, new = dict(DEPLOYMENT, status={}), dict(DEPLOYMENT, status={"replicas": 1})
    rule = "- name: known\n  writers: {allow: [kubectl-edit]}\n"
    me = updater("some-controller", "status")
    only_status = write(old, new, {}, {me: [".status.replicas"]}, manager=me.manager, subresource="status")
    assert events(judge(only_status, rule)) == []
    label = write(
        old, changed(new, team="b"), {}, {me: [TEAM, ".status.replicas"]}, manager=me.manager, subresource="status"
    )
    assert events(judge(label, rule)) == [("writer", "known", [])]


def thinned(user: User = DEVELOPER) -> Change:
    return write(DEPLOYMENT, DEPLOYMENT, {FLUX: [TEAM]}, {FLUX: []}, manager="kubectl-patch", user=user)


def test_claims_edited_by_hand_are_refused_unless_by_those_allowed() -> None:
    decision = judge(thinned(), INTEGRITY)
    assert events(decision) == [("tamper", "claims", [TEAM])]
    assert [cause.field for cause in decision.causes] == [TEAM]
    assert events(judge(thinned(FLUX_USER), INTEGRITY)) == []


def test_what_looks_like_a_changed_schema_is_recorded_and_let_through() -> None:
    change = replace(thinned(), tampering=(), explained={FLUX: ("schema",)})
    assert found_by(change, INTEGRITY) == [("tamper", None)]
    assert found_by(replace(change, request=replace(change.request, subresource="status")), INTEGRITY) == []
    other_version = replace(change, explained={FLUX: ("version",)})
    assert found_by(other_version, INTEGRITY) == []
    assert found_by(replace(other_version, new_claims=ManagedFields({})), INTEGRITY) == [("tamper", None)]


@pytest.mark.parametrize(("manager", "found"), [("helm", []), ("mine", [("tamper", "claims", [TEAM])] * 2)])
def test_a_migration_is_allowed_for_the_names_that_the_policy_gives(manager: str, found: list[object]) -> None:
    source, target = updater(manager), Identity("helm", "Apply")
    change = write(DEPLOYMENT, DEPLOYMENT, {source: [TEAM]}, {target: [TEAM]}, manager="helm")
    assert events(judge(change, INTEGRITY)) == found


def test_a_forged_claim_at_creation_is_tampering() -> None:
    me = updater("kubectl-create")
    change = write(None, DEPLOYMENT, {}, {me: [TEAM], FLUX: [".metadata.labels.zzz"]}, manager=me.manager)
    assert events(judge(change, INTEGRITY)) == [("tamper", "claims", [".metadata.labels.zzz"])]


def test_a_name_to_be_changed_is_told_in_warn_and_refused_where_enforce_finds_it_unchanged() -> None:
    rule = '- name: people\n  rename: {from: ["kubectl-*"], to: people}\n'
    decision = judge(by("kubectl-edit"), rule, mode="Warn")
    assert events(decision) == [("rename", "people", [])]
    assert decision.allowed
    assert decision.warnings == ("[p/people] Rename is called for: kubectl-edit (Update) is to be called people.",)
    assert not judge(by("kubectl-edit"), rule).allowed


def test_managed_by_asks_for_a_claim_on_the_old_object() -> None:
    match = ", managedBy: [{manager: kustomize-controller, operation: Apply}]"
    assert events(judge(by(CSA.manager), WRITERS, match=match)) == []
    assert events(judge(by(CSA.manager, before=[FLUX]), WRITERS, match=match)) == [("writer", "names", [])]


@pytest.mark.parametrize(
    "extra",
    [
        "exempt: {subjects: [{group: developers}]}",
        "exempt: {subjects: [{user: 'developer@*'}]}",
        "exempt: {namespaces: ['team-*']}",
    ],
)
def test_the_exempt_are_left_alone(extra: str) -> None:
    assert events(judge(by(CSA.manager), WRITERS, extra=extra)) == []


def test_the_control_plane_is_exempt_unless_a_policy_says_otherwise() -> None:
    hpa = User("system:serviceaccount:kube-system:horizontal-pod-autoscaler")
    assert events(judge(by(CSA.manager, hpa), WRITERS)) == []
    assert events(judge(by(CSA.manager, hpa), WRITERS, extra="exempt: {controlPlane: false}")) != []


def test_a_policy_is_about_its_namespaces_and_objects() -> None:
    assert events(judge(by(CSA.manager), WRITERS, match=', namespaces: ["team-*"]')) != []
    assert events(judge(by(CSA.manager), WRITERS, match=', namespaces: ["other"]')) == []
    assert events(judge(by(CSA.manager), WRITERS, match=", objectSelector: {matchLabels: {app: web}}")) != []
    assert events(judge(by(CSA.manager), WRITERS, match=", objectSelector: {matchLabels: {app: api}}")) == []


def test_an_object_selector_matches_the_object_as_it_was_or_as_it_becomes() -> None:
    for team in ("a", "b"):
        match = f", objectSelector: {{matchLabels: {{team: {team}}}}}"
        assert events(judge(by(CSA.manager), WRITERS, match=match)) != []


def test_audit_records_and_is_silent_warn_tells_and_enforce_refuses() -> None:
    change = by(CSA.manager)
    audit, warn, enforce = (judge(change, WRITERS, mode=mode) for mode in ("Audit", "Warn", "Enforce"))
    assert (audit.allowed, audit.warnings, len(audit.results)) == (True, (), 1)
    assert (warn.allowed, len(warn.warnings), len(warn.results)) == (True, 1, 1)
    assert "would be refused" in warn.warnings[0]
    assert (enforce.allowed, enforce.warnings, len(enforce.results)) == (False, (), 1)
    assert {result.would for decision in (audit, warn, enforce) for result in decision.results} == {"deny"}
    assert [decision.results[0].outcome for decision in (audit, warn, enforce)] == ["recorded", "recorded", "refused"]


def test_the_servers_cap_softens_every_policy() -> None:
    decision = judge(by(CSA.manager), WRITERS, cap=Mode.AUDIT)
    assert decision.allowed
    assert decision.results[0].mode is Mode.AUDIT
    assert decision.results[0].would == "deny"


def test_a_no_op_is_never_recorded() -> None:
    same = write(DEPLOYMENT, DEPLOYMENT, {CSA: [TEAM]}, {CSA: [TEAM]}, manager=CSA.manager)
    assert events(judge(same, WRITERS)) == []
