"""Integrity rules: "claims are not edited by hand"."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.fields.change import Migration
from webhook.policy.compiled import Action, Event, IntegrityRule, Policy
from webhook.policy.facts import Facts


def integrity(policy: Policy, rule: IntegrityRule, facts: Facts) -> Iterator[Event]:
    """Claims that moved without a write that moves them: cleared, renamed, thinned, forged."""
    change = facts.change
    if not (change.tampering or change.explained) or rule.allow.match(change.request.user):
        return
    yield from _like_a_schema_change(policy, rule, facts)
    if change.migration is not None and _known(rule, change.migration):
        return
    action = rule.on_tamper
    if action is Action.RESTORE and not facts.only_tampered:
        action = Action.DENY  # what else the request did would be lost, or kept under a claim that was not looked at
    for item in change.tampering:
        paths = item.gained | item.lost
        verb = "its API version was altered" if item.version else _verb(bool(item.gained), bool(item.lost))
        note = f"the claim of {item.identity}: {verb} with no write that does so"
        named = facts.texts(paths)
        yield Event("tamper", policy, rule.name, action, named, str(item.identity), note, paths, (item.identity,))


def _like_a_schema_change(policy: Policy, rule: IntegrityRule, facts: Facts) -> Iterator[Event]:
    """Recorded only: what a changed schema does at an innocent write, a client can do to claims on purpose.

    A body sent to a subresource brings no claims, so that there it is the schema for certain.
    """
    change = facts.change
    if change.request.subresource:
        return
    for identity, reasons in change.explained.items():
        if (moved := change.changes.get(identity)) is None:
            continue
        note = ""
        if "schema" in reasons:
            note = f"the claim of {identity} holds other parts than before, as after a change of the schema"
        elif "version" in reasons and not change.new_claims:
            note = f"the claim of {identity} went with all others, as where versions differ in their fields"
        if note:
            yield Event("tamper", policy, rule.name, None, facts.texts(moved.gained | moved.lost), str(identity), note)


def _known(rule: IntegrityRule, migration: Migration) -> bool:
    """Every source either held the last-applied annotation, as kubectl's does, or is named by the rule."""
    return all(any(glob.matches(source.manager) for glob in rule.migrates) for source in migration.unproven)


def _verb(gained: bool, lost: bool) -> str:
    if gained and lost:
        return "paths were added and removed"
    return "paths were added" if gained else "paths were removed"
