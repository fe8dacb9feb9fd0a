"""evaluate: what the policies say about a change. Pure, and before modes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from webhook.fields import Change, FieldPath, FieldSet, Request
from webhook.policy.compiled import (
    Event,
    IntegrityRule,
    OwnershipRule,
    Policy,
    RenameRule,
    Rule,
    Verdict,
    WritersRule,
    rewrites,
)
from webhook.policy.facts import Facts
from webhook.policy.policyset import PolicySet
from webhook.policy.rules_integrity import integrity
from webhook.policy.rules_ownership import REPLICAS, changes, ghosts, shares
from webhook.policy.rules_rename import renames
from webhook.policy.rules_writers import writers

Phase = Literal["mutate", "validate"]


def evaluate(policies: PolicySet, change: Change, phase: Phase = "validate") -> Verdict:
    """All events, in the order of policies and rules. A no-op has none.

    The phase matters on a Scale: what needs claims is judged in the mutating call, which alone shows them, the rest
    in the validating one; what is to be rewritten, in both.
    """
    if change.no_op:
        return Verdict()
    matched = policies.rules_for(change)
    if not matched:
        return Verdict()
    facts = Facts(change)
    return Verdict(tuple(event for policy in matched for event in _judge(policy, facts, phase)))


def _judge(policy: Policy, facts: Facts, phase: Phase) -> Iterator[Event]:
    request = facts.change.request
    ownership, others = policy.ownership, policy.others
    if not policy.for_everyone or request.is_scale:
        ownership = tuple(rule for rule in ownership if _is_for(rule, policy, request, phase))
        others = tuple(rule for rule in others if _is_for(rule, policy, request, phase))
        if request.is_scale and policy.scale_path is not None:
            facts = _at_scale_path(facts, policy.scale_path)
    if ownership and request.old is not None:
        yield from changes(policy, ownership, facts)
        yield from shares(policy, ownership, facts)
        yield from ghosts(policy, ownership, facts)
    for rule in others:
        match rule:
            case WritersRule():
                yield from writers(policy, rule, facts)
            case IntegrityRule():
                yield from integrity(policy, rule, facts)
            case RenameRule() if (
                not request.subresource
            ):  # elsewhere claims are shown in part, or not taken from bodies
                yield from renames(policy, rule, facts)


def _is_for(rule: Rule, policy: Policy, request: Request, phase: Phase) -> bool:
    """Whether a rule is for a request's user and, on a Scale, for this of the two calls."""
    if request.is_scale and not _is_of(phase, policy, rule):
        return False
    return rule.for_subjects is None or rule.for_subjects.match(request.user)


def _is_of(phase: Phase, policy: Policy, rule: Rule) -> bool:
    if phase == "validate":
        return not needs_claims(policy, rule)
    return needs_claims(policy, rule) or rewrites(rule)


def needs_claims(policy: Policy, rule: Rule) -> bool:
    """Whether a rule can judge a Scale only where claims are shown."""
    if policy.match.managed_by or not isinstance(rule, OwnershipRule):
        return True
    return rule.guard == "Claimed" or any(not owner.subjects or owner.operation for owner in rule.owners)


def _at_scale_path(facts: Facts, text: str) -> Facts:
    """The same facts, where a custom resource's replicas stand elsewhere: a Scale always says .spec.replicas."""
    view = facts.views.get(text)
    if view is None:
        view = facts.views[text] = Facts(moved(facts.change, FieldPath.parse(text)))
    return view


def moved(change: Change, path: FieldPath) -> Change:
    """A Scale's change with `.spec.replicas` at another path."""

    def at(paths: FieldSet) -> FieldSet:
        return FieldSet.from_paths([path]) if REPLICAS in paths else paths

    return replace(
        change,
        written=at(change.written),
        removed=at(change.removed),
        changes={
            identity: item._replace(gained=at(item.gained), lost=at(item.lost))
            for identity, item in change.changes.items()
        },
    )
