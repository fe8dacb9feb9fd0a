"""The checks of one policy's sense. Each opens with its rule in the user's words; each finds all there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from webhook.fields.pattern import Pattern
from webhook.fields.values import NEVER_CLAIMED, NEVER_CLAIMED_METADATA
from webhook.policy.compiled import Action, Mode, OwnershipRule
from webhook.policy.drafts import Draft, DraftRule
from webhook.policy.lint_selectors import namespace_labels, selector_scale, selector_unguarded
from webhook.policy.model import RULE_KINDS, ManagerMatcher
from webhook.policy.overlap import all_covered, claims_cover, globs_cover, steps, subjects_cover
from webhook.policy.problems import STRICT, Problem, Severity

Check: TypeAlias = Callable[[Draft], Iterator[Problem]]


def lint(draft: Draft, *, strict: bool = False) -> Iterator[Problem]:
    """Every problem of sense in one document."""
    for check in CHECKS:
        for found in check(draft):
            yield replace(found, severity="error") if strict and found.rule in STRICT else found


def _ownerships(draft: Draft) -> Iterator[tuple[DraftRule, OwnershipRule]]:
    for draft_rule in draft.rules:
        if isinstance(draft_rule.rule, OwnershipRule):
            yield draft_rule, draft_rule.rule


def rule_kind(draft: Draft) -> Iterator[Problem]:
    """A rule is about one thing: ownership, writers, integrity or rename."""
    for rule in draft.rules:
        kinds = rule.written.kinds
        if not kinds and rule.whole:
            yield draft.problem(
                "rule-kind",
                rule.node,
                (),
                f"the rule {rule.name} says nothing",
                advice=f"add one of {', '.join(RULE_KINDS)}",
            )
        for kind in kinds[1:]:
            said = f"the rule {rule.name} has {kinds[0]} already"
            yield draft.key_problem("rule-kind", rule.node, (kind,), said, advice=f"put {kind} into a rule of its own")


def writers_shape(draft: Draft) -> Iterator[Problem]:
    """A writers rule lists the names to deny or the names to allow, or binds names to users."""
    for rule in draft.rules:
        writers = rule.written.writers
        if writers is None:
            continue
        if writers.deny is not None and writers.allow is not None:
            yield draft.key_problem("writers-shape", rule.node, ("writers", "allow"), "allow beside deny")
        if writers.deny is None and writers.allow is None and not writers.bind and rule.whole:
            yield draft.key_problem(
                "writers-shape", rule.node, ("writers",), "writers says nothing", advice="add deny, allow or bind"
            )


def duplicate_rule(draft: Draft) -> Iterator[Problem]:
    """A rule is known by its name in messages and metrics, so each has its own."""
    seen: set[str] = set()
    for rule in draft.rules:
        if rule.name in seen:
            yield draft.problem("duplicate-rule", rule.node, ("name",), f"there is a rule {rule.name} already")
        seen.add(rule.name)


def unreachable_rule(draft: Draft) -> Iterator[Problem]:
    """Of the ownership rules that are for the requester the first that guards a path decides: is anything left?"""
    exempt = draft.exempt
    earlier: list[OwnershipRule] = []
    for draft_rule in draft.rules:
        rule = draft_rule.rule
        said = None
        if (
            rule is not None
            and rule.for_subjects
            and exempt is not None
            and subjects_cover(exempt.subjects, rule.for_subjects)
        ):
            said = "all that it is for are exempt from the policy"
        elif isinstance(rule, OwnershipRule) and draft_rule.whole:
            if all_covered(rule.fields, rule.except_):
                said = "its except leaves out all of its fields"
            elif (names := _shadows(rule, earlier)) is not None:
                said = f"all of its fields are decided about before it, by {names}"
            earlier.append(rule)
        if said is not None:
            yield draft.problem(
                "unreachable-rule", draft_rule.node, ("name",), f"the rule {draft_rule.name} can never decide: {said}"
            )


def _shadows(rule: OwnershipRule, earlier: list[OwnershipRule]) -> str | None:
    """The names of the earlier rules that take every pattern of a rule; None where something is left to it."""
    names: dict[str, None] = {}
    for pattern in rule.fields:
        first = next((one for one in earlier if _takes(one, rule, pattern)), None)
        if first is None:
            return None
        names[first.name] = None
    return " and ".join(names)


def _takes(first: OwnershipRule, rule: OwnershipRule, pattern: Pattern) -> bool:
    if first.for_subjects is not None and not (
        rule.for_subjects and subjects_cover(first.for_subjects, rule.for_subjects)
    ):
        return False
    if not all_covered((pattern,), first.fields) or not all_covered(first.except_, rule.except_):
        return False
    if first.guard == "Matching":
        return True
    held = all(any(claims_cover(mine, theirs) for mine in first.owners) for theirs in rule.owners)
    return rule.guard == "Claimed" and held


def unreachable_policy(draft: Draft) -> Iterator[Problem]:
    """A policy that exempts every namespace it matches does nothing."""
    if draft.match is None or draft.exempt is None or not draft.match.match.namespaces:
        return
    matched, exempt = draft.match.match.namespaces, draft.exempt.namespaces
    if all(any(globs_cover(one.text, glob.text) for one in exempt) for glob in matched):
        path = ("spec", "exempt", "namespaces")
        yield draft.key_problem(
            "unreachable-policy", draft.root, path, "every namespace that the policy matches is exempt"
        )


def owner_by_name(draft: Draft) -> Iterator[Problem]:
    """A manager's name is free text: in Enforce an owner is a name and the users who may bear it."""
    if draft.mode is not Mode.ENFORCE:
        return
    for draft_rule, rule in _ownerships(draft):
        for index, owner in enumerate(rule.owners):
            if not owner.subjects:
                path = ("ownership", "owners", index, "manager")
                said = f"the owner {owner.manager.text} is known by name alone, which anyone can take"
                yield draft.problem("owner-by-name", draft_rule.node, path, said)


def update_owner_claimed(draft: Draft) -> Iterator[Problem]:
    """An object keeps ten Update claims: ten writes under ten names push an owner's out, and nothing is guarded."""
    for draft_rule, rule in _ownerships(draft):
        for index, owner in enumerate(rule.owners):
            if rule.guard == "Claimed" and owner.operation == "Update":
                path = ("ownership", "owners", index, "operation")
                said = (
                    f"ten writes by anyone make the Update claim of {owner.manager.text} vanish, and its guard with it"
                )
                yield draft.problem("update-owner-claimed", draft_rule.node, path, said)


def string_data(draft: Draft) -> Iterator[Problem]:
    """`stringData` is turned into `data` before anything is stored: no value of it is ever there to be guarded."""
    if draft.match is None or not any(
        ({"", "*"} & one.groups) and ({"secrets", "*"} & one.resources) for one in draft.match.match.resources
    ):
        return
    for draft_rule, rule in _ownerships(draft):
        for index, pattern in enumerate(rule.fields):
            if steps(pattern)[0].value == "stringData":
                path = ("ownership", "fields", index)
                said = ".stringData is never stored: whoever applies it claims no .data"
                yield draft.problem("string-data", draft_rule.node, path, said)


def never_claimed(draft: Draft) -> Iterator[Problem]:
    """Some fields are the server's own: nobody claims them, and no rule sees them."""
    for draft_rule, rule in _ownerships(draft):
        for index, pattern in enumerate(rule.fields):
            names = tuple(step.value for step in steps(pattern) if step.kind == "field")
            if set(names[:1]) & NEVER_CLAIMED or (
                names[:1] == ("metadata",) and set(names[1:2]) & NEVER_CLAIMED_METADATA
            ):
                path = ("ownership", "fields", index)
                yield draft.problem("never-claimed", draft_rule.node, path, f"no manager ever claims {pattern.text}")


def by_position(draft: Draft) -> Iterator[Problem]:
    """The server follows list items by their keys, or takes the list as one value: a position means nothing to it."""
    for draft_rule, rule in _ownerships(draft):
        for index, pattern in enumerate(rule.fields):
            if any(step.kind == "index" for step in steps(pattern)):
                path = ("ownership", "fields", index)
                yield draft.problem("by-position", draft_rule.node, path, f"{pattern.text} means no item of any list")


def reassign_for_everyone(draft: Draft) -> Iterator[Problem]:
    """Reassign lets the change through: only for those whom the rule names."""
    for draft_rule, rule in _ownerships(draft):
        if rule.on_change is Action.REASSIGN and rule.for_subjects is None:
            severity: Severity = "error" if draft.mode is Mode.ENFORCE else "warning"
            path = ("ownership", "onChange")
            said = "Reassign without for.subjects lets everyone change what the owners own"
            yield draft.problem("reassign-for-everyone", draft_rule.node, path, said, severity=severity)


def ghost_without_apply(draft: Draft) -> Iterator[Problem]:
    """Only an apply that drops a field leaves a ghost."""
    for draft_rule, rule in _ownerships(draft):
        if rule.on_ghost is not None and draft_rule.whole and all(owner.operation == "Update" for owner in rule.owners):
            yield draft.problem(
                "ghost-without-apply", draft_rule.node, ("ownership", "onGhost"), "no owner of this rule applies"
            )


def rename_apply(draft: Draft) -> Iterator[Problem]:
    """Renaming an Apply claim breaks its client: its next apply conflicts with the new name."""
    for rule in draft.rules:
        for index, source in enumerate(rule.written.rename.from_ if rule.written.rename is not None else ()):
            if not isinstance(source, str) and source.operation == "Apply":
                path = ("rename", "from", index, "operation")
                yield draft.problem("rename-apply", rule.node, path, "Apply claims are never renamed")


def subjects_unused(draft: Draft) -> Iterator[Problem]:
    """A claim carries a name and no user, so where claims alone are looked at, subjects say nothing."""
    said = "claims carry no user, so subjects are not looked at here"
    if draft.match is not None:
        for index, matcher in enumerate(draft.match.written.managed_by or ()):
            if isinstance(matcher, ManagerMatcher) and matcher.subjects is not None:
                yield draft.key_problem("subjects-unused", draft.match.node, ("managedBy", index, "subjects"), said)
    for rule in draft.rules:
        leftovers = rule.written.ownership.leftovers if rule.written.ownership is not None else None
        for index, matcher in enumerate(leftovers or ()):
            if isinstance(matcher, ManagerMatcher) and matcher.subjects is not None:
                yield draft.key_problem(
                    "subjects-unused", rule.node, ("ownership", "leftovers", index, "subjects"), said
                )


def control_plane(draft: Draft) -> Iterator[Problem]:
    """The control plane must be able to write while no pod of ours runs."""
    if draft.exempt is not None and not draft.exempt.control_plane:
        path = ("spec", "exempt", "controlPlane")
        said = "the control plane is judged too, and is stopped while fieldwarden is down and failurePolicy is Fail"
        yield draft.problem("control-plane", draft.root, path, said)


def version_unused(draft: Draft) -> Iterator[Problem]:
    """A version belongs to one group's resources; with "*" patterns are read against claims of any version."""
    for index, one in enumerate(draft.match.match.resources if draft.match is not None else ()):
        if one.version is not None and ("*" in one.groups or "*" in one.resources) and draft.match is not None:
            yield draft.problem(
                "version-unused", draft.match.node, ("resources", index, "version"), 'with "*" no version is asked for'
            )


CHECKS: tuple[Check, ...] = (
    rule_kind,
    writers_shape,
    duplicate_rule,
    unreachable_rule,
    unreachable_policy,
    owner_by_name,
    update_owner_claimed,
    string_data,
    never_claimed,
    by_position,
    reassign_for_everyone,
    ghost_without_apply,
    rename_apply,
    subjects_unused,
    selector_unguarded,
    selector_scale,
    namespace_labels,
    control_plane,
    version_unused,
)
