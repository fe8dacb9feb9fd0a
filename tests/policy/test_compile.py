"""What a policy means once it is loaded."""

from __future__ import annotations

from webhook.fields import Identity, User
from webhook.policy import Action, Mode, Policy, load_text
from webhook.policy.compiled import IntegrityRule, OwnershipRule, RenameRule, WritersRule


def policy(rules: str, more: str = "") -> Policy:
    text = f"""apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {{name: p}}
spec:
  match: {{resources: [{{groups: [apps], resources: [deployments]}}]{more}}}
  rules: [{rules}]
"""
    loaded = load_text(text, "f")
    assert loaded.policies is not None, loaded.problems
    return loaded.policies.policies[0]


def ownership(body: str) -> OwnershipRule:
    (rule,) = policy(f"{{name: one, ownership: {{fields: [.spec], owners: [flux]{body}}}}}").rules
    assert isinstance(rule, OwnershipRule)
    return rule


def test_what_is_absent_has_the_documented_default() -> None:
    made = policy("{name: one, ownership: {fields: [.spec], owners: [flux]}}")
    (rule,) = made.rules
    assert isinstance(rule, OwnershipRule)
    assert (made.mode, made.description, made.scale_path, made.exempt.control_plane) == (Mode.AUDIT, "", None, True)
    assert (rule.guard, rule.on_change, rule.on_share, rule.on_ghost) == ("Claimed", None, None, None)
    assert (rule.for_subjects, rule.except_) == (None, ())


def test_leftovers_by_default_are_kubectl_and_the_server_s_own_names() -> None:
    def left(identity: Identity) -> bool:
        return any(matcher.matches_claim(identity) for matcher in ownership("").leftovers)

    assert left(Identity("kubectl-edit", "Update"))
    assert left(Identity("before-first-apply", "Update"))
    assert left(Identity("ancient-changes", "Update"))
    assert not left(Identity("kubectl-edit", "Apply"))
    assert not left(Identity("helm", "Update"))


def test_no_leftovers_can_be_asked_for() -> None:
    assert ownership(", leftovers: []").leftovers == ()


def test_a_service_account_is_the_user_behind_it() -> None:
    rule = ownership("").owners
    assert not rule[0].subjects
    (made,) = policy("{name: one, integrity: {allow: [{serviceAccount: flux-*/k}, {user: a}, {group: g}]}}").rules
    assert isinstance(made, IntegrityRule)
    assert made.allow.match(User("system:serviceaccount:flux-system:k"))
    assert not made.allow.match(User("system:serviceaccount:other:k"))
    assert made.allow.match(User("a")) and made.allow.match(User("b", frozenset({"g"})))
    assert not made.allow.match(User("g"))


def test_nobody_but_a_bound_user_is_meant_by_a_binding() -> None:
    (rule,) = policy("{name: one, writers: {bind: [{manager: flux, operation: Apply, subjects: [{user: f}]}]}}").rules
    assert isinstance(rule, WritersRule)
    assert (rule.deny, rule.allow) == ((), None)
    matcher = rule.bind[0].manager
    assert matcher.manager.text == "flux" and matcher.operation == "Apply" and matcher.subjects.match(User("f"))


def test_names_and_objects_mean_the_same_in_lists_of_managers() -> None:
    plain, full = ownership("").owners, policy("{name: one, writers: {deny: [{manager: flux}]}}").rules[0]
    assert isinstance(full, WritersRule)
    assert plain == full.deny


def test_rename_reads_names_and_objects() -> None:
    (rule,) = policy('{name: one, rename: {from: ["kubectl-*", {manager: x, operation: Update}], to: people}}').rules
    assert isinstance(rule, RenameRule)
    assert ([glob.text for glob in rule.from_], rule.to) == (["kubectl-*", "x"], "people")


def test_selectors_keep_every_requirement() -> None:
    made = policy(
        "{name: one, ownership: {fields: [.metadata.labels], owners: [flux]}}",
        ", objectSelector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: NotIn, values: [d]}]}",
    )
    selector = made.match.object_selector
    assert selector is not None
    assert selector.matches({"a": "b"}) and selector.matches({"a": "b", "c": "e"})
    assert not selector.matches({"a": "b", "c": "d"}) and not selector.matches({})


def test_actions_are_read() -> None:
    rule = ownership(", onChange: Restore, onShare: Release, onGhost: Prune")
    assert (rule.on_change, rule.on_share, rule.on_ghost) == (Action.RESTORE, Action.RELEASE, Action.PRUNE)
