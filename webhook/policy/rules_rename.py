"""Rename rules: "one name for people's tools"."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.policy.compiled import Action, Event, Policy, RenameRule
from webhook.policy.facts import Facts


def renames(policy: Policy, rule: RenameRule, facts: Facts) -> Iterator[Event]:
    """Update claims that carry a name which is to be another. Apply claims are never renamed."""
    for identity in facts.change.new_claims:
        if identity.operation != "Update" or identity.manager == rule.to:
            continue
        if any(glob.matches(identity.manager) for glob in rule.from_):
            note = f"to be called {rule.to}"
            yield Event("rename", policy, rule.name, Action.RENAME, owner=str(identity), note=note, claims=(identity,))
