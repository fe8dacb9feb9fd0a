"""Ownership rules: "these fields belong to these managers".

- change: somebody who is no owner changed or removed a guarded value.
- share: an owner and another manager now claim one field.
- ghost: an owner dropped a field that only claims nobody stands behind keep alive.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.fields import ABSENT, FieldPath, FieldSet, Identity, value_at
from webhook.fields.fieldset import EMPTY
from webhook.fields.steps import step_value
from webhook.policy.compiled import Action, Event, ManagerMatcher, OwnershipRule, Policy
from webhook.policy.facts import Facts


def changes(policy: Policy, rules: tuple[OwnershipRule, ...], facts: Facts) -> Iterator[Event]:
    """A non-owner's writes. The first rule that guards a path decides about it, also when it finds nothing amiss."""
    decided = EMPTY
    for rule in rules:
        lost, holder = _claimed(rule, facts) if rule.guard == "Claimed" else (facts.touched | _versions(facts), "")
        guarded = facts.select(lost, rule.fields, rule.except_)
        if decided:
            guarded = guarded - decided
        if not guarded:
            continue
        decided = decided | guarded if len(rules) > 1 else decided
        if facts.is_owner(rule.owners):
            continue
        yield Event(
            "change", policy, rule.name, _action(rule.on_change, facts), texts(guarded), holder or _names(rule.owners)
        )


def _claimed(rule: OwnershipRule, facts: Facts) -> tuple[FieldSet, str]:
    """What owners' claims lost to the write, and what was written under an owner's name by another user."""
    paths, holder = EMPTY, ""
    for change, lost in facts.losers:
        if any(owner.matches_claim(change.identity) for owner in rule.owners):
            paths = paths | lost if paths else lost
            holder = holder or str(change.identity)
    identity = facts.change.requester.identity
    if identity is not None and any(owner.matches_claim(identity) for owner in rule.owners):
        paths = paths | facts.under_own_name if paths else facts.under_own_name
        holder = holder or str(identity)
    return paths, holder


def _versions(facts: Facts) -> FieldSet:
    """What claims in another version lost: no value shows it, and it counts as a change (fact 31)."""
    found = EMPTY
    for change, lost in facts.losers:
        if "version" in facts.change.explained.get(change.identity, ()):
            found = found | lost
    return found


def shares(policy: Policy, rules: tuple[OwnershipRule, ...], facts: Facts) -> Iterator[Event]:
    """Fields that an owner and another manager claim, and did not both claim before."""
    change = facts.change
    decided = EMPTY
    for rule in rules:
        owners = facts.claims_of(rule.owners)
        if not owners:
            continue
        mine = facts.is_owner(rule.owners)
        for other in change.new_claims:
            if other in owners:
                continue
            shared = EMPTY
            for owner in owners:
                shared = shared | _shared(facts, owner, other, standing=rule.on_share is Action.RELEASE)
            found = facts.select(shared, rule.fields, rule.except_) - decided
            if not found:
                continue
            action = rule.on_share
            if action is Action.DENY and (mine or change.requester.identity != other):
                action = None  # an owner's write is not refused for what others claim
            if action is Action.RELEASE and not _is_leftover(rule, other):
                action = None
            who = f"{_join(owners)} and {other}"
            yield Event(
                "share", policy, rule.name, _action(action, facts), texts(found), _join(owners), f"claimed by {who}"
            )
        if len(rules) > 1:
            decided = decided | facts.select(facts.touched, rule.fields, rule.except_)


def _shared(facts: Facts, owner: Identity, other: Identity, *, standing: bool) -> FieldSet:
    """What both claims hold and did not both hold before; with `standing`, all that both hold when either writes."""
    change = facts.change
    gained = [
        (change.changes[a].gained, b)
        for a, b in ((owner, other), (other, owner))
        if a in change.changes and change.changes[a].gained
    ]
    writes = change.requester.identity in (owner, other)
    if not gained and not (standing and writes):
        return EMPTY
    moved = {*change.explained.get(owner, ()), *change.explained.get(other, ())}
    if moved & {"ancient-changes", "migration", "schema"}:
        return EMPTY
    if standing and writes:
        both = change.new_claims[owner].fields & change.new_claims[other].fields
    else:
        both = EMPTY
        for paths, b in gained:
            both = both | (paths & change.new_claims[b].fields)
    if not both:
        return EMPTY
    if not (standing and writes):
        both = both - (change.old_claims.fields_of(owner) & change.old_claims.fields_of(other))
    return values_only(both, change.new_claims[owner].fields, change.new_claims[other].fields)


def ghosts(policy: Policy, rules: tuple[OwnershipRule, ...], facts: Facts) -> Iterator[Event]:
    """Fields that an owner's apply dropped, that are still there, and that only leftovers claim."""
    change = facts.change
    identity = change.requester.identity
    own = change.changes.get(identity) if identity is not None else None
    if own is None or identity is None or identity.operation != "Apply" or not own.lost:
        return
    if MOVED_AWAY & set(change.explained.get(identity, ())):
        return
    decided = EMPTY
    for rule in rules:
        candidates = facts.select(own.lost, rule.fields, rule.except_) - decided
        if not candidates:
            continue
        if len(rules) > 1:
            decided = decided | candidates
        if not facts.is_owner(rule.owners):
            continue
        found = FieldSet.from_paths(path for path in candidates.leaves() if _is_ghost(rule, facts, identity, path))
        if found:
            keepers = {claim for path in found for claim in change.new_claims.holders(path)}
            note = f"kept alive by {_join(tuple(sorted(keepers)))}"
            yield Event("ghost", policy, rule.name, _action(rule.on_ghost, facts), texts(found), str(identity), note)


MOVED_AWAY = frozenset({"migration", "version", "ancient-changes"})


def _is_ghost(rule: OwnershipRule, facts: Facts, me: Identity, path: FieldPath) -> bool:
    change = facts.change
    if value_at(change.request.new, path) is ABSENT or _is_item_key(path):
        return False
    keepers = [identity for identity in change.new_claims.holders(path) if identity != me]
    if not keepers or not all(_is_leftover(rule, keeper) and not keeper.subresource for keeper in keepers):
        return False
    items = [path[: n + 1] for n, step in enumerate(path) if step[:2] in ("k:", "v:")]
    for item in items:
        for identity, claim in change.new_claims.items():
            if identity != me and not _is_leftover(rule, identity) and _more_than_keys(claim.fields, item):
                return False
    return True


def _more_than_keys(fields: FieldSet, item: tuple[str, ...]) -> bool:
    if not fields.has_prefix(item):
        return False
    return any(path[: len(item)] == item and not _is_item_key(path) and len(path) > len(item) for path in fields)


def _is_leftover(rule: OwnershipRule, identity: Identity) -> bool:
    return any(matcher.matches_claim(identity) for matcher in rule.leftovers)


def values_only(paths: FieldSet, one: FieldSet, other: FieldSet) -> FieldSet:
    """Without list keys and "." of maps and items: every second applier must share those."""
    return FieldSet.from_paths(
        path
        for path in paths
        if not _is_item_key(path) and path[-1][:2] != "k:" and (one.is_leaf(path) or other.is_leaf(path))
    )


def _is_item_key(path: tuple[str, ...]) -> bool:
    """Whether a path is one of the fields that an item is known by, as .ports[port=80].port."""
    if len(path) < 2 or path[-2][:2] != "k:" or path[-1][:2] != "f:":
        return False
    return path[-1][2:] in step_value(path[-2])


def _action(action: Action | None, facts: Facts) -> Action | None:
    return None if facts.being_deleted else action


def texts(paths: FieldSet) -> tuple[str, ...]:
    return tuple(map(str, paths))


def _names(owners: tuple[ManagerMatcher, ...]) -> str:
    return " or ".join(map(str, owners))


def _join(identities: tuple[Identity, ...]) -> str:
    return ", ".join(map(str, identities))
