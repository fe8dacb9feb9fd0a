"""The checks of policies against one another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from webhook.policy.compiled import Action, ManagerMatcher, Mode, OwnershipRule, RenameRule, WritersRule
from webhook.policy.drafts import Draft, DraftRule
from webhook.policy.overlap import managers_overlap, patterns_cover, resources_overlap, surely_meet
from webhook.policy.problems import Problem, Severity, problem


def lint_cross(drafts: Sequence[Draft]) -> Iterator[Problem]:
    """Every problem that no policy has alone, reported at the later of the two."""
    yield from duplicate_policy(drafts)
    yield from rename_to_owner(drafts)
    yield from contradiction(drafts)


def duplicate_policy(drafts: Sequence[Draft]) -> Iterator[Problem]:
    """A policy is known by its name, in the cluster too, so each has its own."""
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.name is None:
            continue
        other = first.setdefault(draft.name, draft)
        if other is not draft:
            place = other.name_place
            said = f"there is a policy {draft.name} already, in {other.file}:{place.line}"
            yield replace(problem("duplicate-policy", draft.file, draft.name_place, said), other=draft.name)


def rename_to_owner(drafts: Sequence[Draft]) -> Iterator[Problem]:
    """Claims must not be renamed to the name of an owner or of a bound writer: they would become its."""
    named = [
        (draft, rule.name, kind, matcher) for draft in drafts for rule in draft.rules for kind, matcher in _names(rule)
    ]
    for draft in drafts:
        for draft_rule in draft.rules:
            rule = draft_rule.rule
            if not isinstance(rule, RenameRule):
                continue
            told: set[str | None] = set()  # one name of each policy is enough
            for other, where, kind, matcher in named:
                if other.name not in told and matcher.manager.matches(rule.to) and _may_meet(draft, other):
                    told.add(other.name)
                    said = f"{rule.to} is the name of {kind} in {other.name}/{where}"
                    found = draft.problem("rename-to-owner", draft_rule.node, ("rename", "to"), said)
                    yield replace(found, other=other.name)


def _names(draft_rule: DraftRule) -> Iterator[tuple[str, ManagerMatcher]]:
    rule = draft_rule.rule
    if isinstance(rule, OwnershipRule):
        for owner in rule.owners:
            yield "an owner", owner
    elif isinstance(rule, WritersRule):
        for binding in rule.bind:
            yield "a bound writer", binding.manager


def _may_meet(a: Draft, b: Draft) -> bool:
    return a is b or (a.match is not None and b.match is not None and resources_overlap(a.match.match, b.match.match))


def contradiction(drafts: Sequence[Draft]) -> Iterator[Problem]:
    """Two policies that guard one pattern for owners with nobody in common, and both deny: no write satisfies both."""
    guards: dict[object, list[tuple[Draft, DraftRule, OwnershipRule, int]]] = {}
    for draft in drafts:
        for draft_rule in draft.rules if draft.whole else ():
            if isinstance(rule := draft_rule.rule, OwnershipRule):
                for index in _denied(rule):
                    guards.setdefault(rule.fields[index].matchers, []).append((draft, draft_rule, rule, index))
    for same in guards.values():
        for (first, _, one, _), (second, node, other, index) in combinations(same, 2):
            if first is second or _overlap(one, other) or not _certain(first, second):
                continue
            both = first.mode is Mode.ENFORCE and second.mode is Mode.ENFORCE
            severity: Severity = "error" if both else "warning"
            pattern = other.fields[index].text
            said = f"{first.name}/{one.name} denies what this allows: nobody is an owner of {pattern} in both"
            path = ("ownership", "fields", index)
            yield replace(second.problem("contradiction", node.node, path, said, severity=severity), other=first.name)


def _certain(a: Draft, b: Draft) -> bool:
    return a.match is not None and b.match is not None and surely_meet(a.match.match, b.match.match)


def _denied(rule: OwnershipRule) -> Iterator[int]:
    """The patterns that a rule for everyone denies all but its owners."""
    if rule.guard != "Matching" or rule.on_change is not Action.DENY or rule.for_subjects is not None:
        return
    for index, pattern in enumerate(rule.fields):
        if not any(patterns_cover(one, pattern) for one in rule.except_):
            yield index


def _overlap(a: OwnershipRule, b: OwnershipRule) -> bool:
    return any(managers_overlap(one, other) for one in a.owners for other in b.owners)
