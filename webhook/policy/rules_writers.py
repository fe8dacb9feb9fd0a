"""Writers rules: "who may write at all, and who may call himself what"."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.policy.compiled import Action, Event, Policy, WritersRule
from webhook.policy.facts import Facts


def writers(policy: Policy, rule: WritersRule, facts: Facts) -> Iterator[Event]:
    """A denied or unlisted manager's write, and a name used by somebody whose name it is not.

    An unknown manager is no writer. A write of `.status` alone is judged only by matchers that name the subresource.
    """
    change = facts.change
    identity = change.requester.identity
    if identity is None:
        return
    user = change.request.user
    named = facts.only_status
    deny = rule.deny if not named else tuple(matcher for matcher in rule.deny if matcher.subresource)
    if deny and any(matcher.matches_requester(change.requester, user) for matcher in deny):
        yield Event("writer", policy, rule.name, Action.DENY, owner=str(identity), note="denied by name")
    elif rule.allow is not None and not named and not rule.allowed.mean(change.requester, user):
        yield Event(
            "writer", policy, rule.name, Action.DENY, owner=str(identity), note="not among the managers allowed"
        )
    for binding in rule.bind:
        if binding.manager.matches_claim(identity) and not binding.manager.subjects.match(user):
            note = f"only {binding.manager.subjects} may write as {binding.manager.manager.text}"
            yield Event("impersonation", policy, rule.name, Action.DENY, owner=str(identity), note=note)
