"""Integrity rules: "claims are not edited by hand"."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.fields.change import Migration
from webhook.policy.compiled import Event, IntegrityRule, Policy
from webhook.policy.facts import Facts


def integrity(policy: Policy, rule: IntegrityRule, facts: Facts) -> Iterator[Event]:
    """Claims that moved without a write that moves them: cleared, renamed, thinned, forged."""
    change = facts.change
    if not change.tampering or rule.allow.match(change.request.user):
        return
    if change.migration is not None and _known(rule, change.migration):
        return
    for item in change.tampering:
        paths = item.gained | item.lost
        verb = "its API version was altered" if item.version else _verb(bool(item.gained), bool(item.lost))
        note = f"the claim of {item.identity}: {verb} with no write that does so"
        yield Event("tamper", policy, rule.name, rule.on_tamper, facts.texts(paths), str(item.identity), note)


def _known(rule: IntegrityRule, migration: Migration) -> bool:
    """Every source either held the last-applied annotation, as kubectl's does, or is named by the rule."""
    return all(any(glob.matches(source.manager) for glob in rule.migrates) for source in migration.unproven)


def _verb(gained: bool, lost: bool) -> str:
    if gained and lost:
        return "paths were added and removed"
    return "paths were added" if gained else "paths were removed"
