"""Ownership rules: "these fields belong to these managers".

- change: somebody who is no owner changed or removed a guarded value.
- share: an owner and another manager now claim one field.
- ghost: an owner dropped a field that only claims nobody stands behind keep alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.fields import ABSENT, FieldPath, FieldSet, Identity
from webhook.fields.fieldset import EMPTY
from webhook.policy.compiled import Action, Event, ManagerMatcher, OwnershipRule, Policy, any_claim
from webhook.policy.facts import MOVED, Facts, is_item_key

REPLICAS = FieldPath.parse(".spec.replicas")
"""Handed over to an autoscaler, replicas are no ghost, whoever claims them: gone, they would be one at once."""


def changes(policy: Policy, rules: tuple[OwnershipRule, ...], facts: Facts) -> Iterator[Event]:
    """A non-owner's writes. The first rule that guards a path decides about it, also when it finds nothing amiss."""
    decided = EMPTY
    for rule in rules:
        if rule.guard == "Claimed":
            lost, holders = _claimed(rule, facts, first=len(rules) > 1)
        else:
            lost, holders = facts.touched | _versions(facts), []
        if rule.on_change is Action.RESTORE and facts.overwritten:
            lost = lost | _overwritten(rule, facts)
        guarded = facts.select(lost, rule.fields, rule.except_)
        if decided:
            guarded = guarded - decided
        if not guarded:
            continue
        decided = decided | guarded if len(rules) > 1 else decided
        if facts.is_owner(rule.owners):
            continue
        owner = _holder(rule, facts, holders) or _names(rule.owners)
        action = _action(rule.on_change, facts)
        if action is Action.REASSIGN:
            yield from _returned(policy, rule, facts, guarded, owner)
        else:
            yield Event("change", policy, rule.name, action, facts.texts(guarded), owner, "", guarded)


def _returned(policy: Policy, rule: OwnershipRule, facts: Facts, guarded: FieldSet, owner: str) -> Iterator[Event]:
    """What goes back to the owners' claims that held it, as far as it is still there; the rest is only recorded.

    A claim is never given what it did not hold: its client's next apply would take that away.
    """
    owners = facts.claims_of(rule)
    lost, holders = EMPTY, []
    for change, paths in facts.losers:
        if change.identity in owners:
            taken = facts.select(paths, rule.fields, rule.except_)
            there = FieldSet.from_paths(path for path in taken if facts.after.at(path) is not ABSENT)
            if there:
                lost = lost | there
                holders.append(change.identity)
    rest = FieldSet.from_paths(path for path in guarded if not _is_about(path, lost)) if lost else guarded
    if lost:
        yield Event(
            "change", policy, rule.name, Action.REASSIGN, facts.texts(lost), owner, "", lost, tuple(sorted(holders))
        )
    if rest:
        yield Event("change", policy, rule.name, None, facts.texts(rest), owner, "", rest)


def _is_about(path: FieldPath, lost: FieldSet) -> bool:
    """Whether a path is lost itself, or is a part of an atomic value that is."""
    return path in lost or any(lost.is_leaf(path[:length]) for length in range(1, len(path)))


def _overwritten(rule: OwnershipRule, facts: Facts) -> FieldSet:
    """What another webhook changed of what is to be restored: of claimed paths, what owners hold."""
    if rule.guard == "Matching":
        return facts.overwritten
    found, claims = EMPTY, facts.change.new_claims
    for owner in facts.claims_of(rule):
        if (claim := claims.get(owner)) is not None:
            found = found | claim.held_of(facts.overwritten)
    return found


Losses = list[tuple[Identity, FieldSet]]
"""By an owner's claim, what was taken from it."""


def _holder(rule: OwnershipRule, facts: Facts, losses: Losses) -> str:
    """The first whose loss is the rule's business."""
    for identity, lost in losses:
        if len(losses) == 1 or facts.select(lost, rule.fields, rule.except_):
            return str(identity)
    return ""


def _claimed(rule: OwnershipRule, facts: Facts, *, first: bool) -> tuple[FieldSet, Losses]:
    """What owners' claims lost to the write, and what was written under an owner's name by another user.

    Where other rules follow, also what an owner wrote of its own: the rule guards it, and so decides about it.
    """
    owners = facts.claims_of(rule)
    if not owners:
        return EMPTY, []
    paths, losses = EMPTY, []
    for change, lost in facts.losers:
        if change.identity in owners:
            paths = paths | lost if paths else lost
            losses.append((change.identity, lost))
    identity = facts.change.requester.identity
    if identity is not None and identity in owners and (first or not facts.is_owner(rule.owners)):
        paths = paths | facts.under_own_name if paths else facts.under_own_name
        losses.append((identity, facts.under_own_name))
    return paths, losses


def _versions(facts: Facts) -> FieldSet:
    """What claims in another version lost: no value shows it, and it counts as a change."""
    found = EMPTY
    for change, lost in facts.losers:
        if "version" in facts.change.explained.get(change.identity, ()):
            found = found | lost
    return found


def shares(policy: Policy, rules: tuple[OwnershipRule, ...], facts: Facts) -> Iterator[Event]:
    """Fields that an owner and another manager claim, and did not both claim before."""
    change = facts.change
    for position, rule in enumerate(rules):
        owners = facts.claims_of(rule)
        shared = _shared(rule, owners, facts) if owners else {}
        for other, (paths, holders) in shared.items():
            found = facts.select(paths, rule.fields, rule.except_)
            for earlier in rules[:position]:
                found = found - _guarded(earlier, found, facts)
            if not found:
                continue
            action = rule.on_share
            if action is Action.DENY and (facts.is_owner(rule.owners) or change.requester.identity != other):
                action = None  # an owner's write is not refused for what others claim
            if action is Action.RELEASE and not is_leftover(rule, other):
                action = None
            owner = _join(sorted(holders))
            note = f"claimed by {owner} and {other}"
            action = _action(action, facts)
            yield Event("share", policy, rule.name, action, facts.texts(found), owner, note, found, (other,))


def _guarded(rule: OwnershipRule, paths: FieldSet, facts: Facts) -> FieldSet:
    """Of some claimed paths, those that a rule guards, and so decides about."""
    found = facts.select(paths, rule.fields, rule.except_)
    if rule.guard == "Matching" or not found:
        return found
    claimed = EMPTY
    for owner in facts.claims_of(rule):
        if (claim := facts.change.new_claims.get(owner)) is not None:
            claimed = claimed | claim.held_of(found)
    return claimed


def _shared(
    rule: OwnershipRule, owners: frozenset[Identity], facts: Facts
) -> dict[Identity, tuple[FieldSet, set[Identity]]]:
    """By the claim of a non-owner: what it shares with owners, and with which."""
    claims = facts.change.new_claims
    if not facts.gainers and rule.on_share is not Action.RELEASE:
        return {}
    here = [owner for owner in owners if owner in claims]
    pairs: set[tuple[Identity, Identity]] = set()
    for change in facts.gainers:
        pairs.update(_pairs(change.identity, here, facts))
    me = facts.change.requester.identity
    standing = rule.on_share is Action.RELEASE and me is not None
    if standing and me is not None:  # what stood before was told of: it counts only where it can be released
        pairs.update(pair for pair in _pairs(me, here, facts) if is_leftover(rule, pair[1]))
    found: dict[Identity, tuple[FieldSet, set[Identity]]] = {}
    for owner, other in sorted(pairs):
        acts = standing and me in (owner, other) and is_leftover(rule, other)
        paths = facts.shared(owner, other, standing=acts)
        if paths:
            before, holders = found.get(other, (EMPTY, set()))
            found[other] = (before | paths if before else paths, holders | {owner})
    return found


def _pairs(one: Identity, owners: list[Identity], facts: Facts) -> Iterable[tuple[Identity, Identity]]:
    """An owner's claim with each claim that is none, where one of the two is given."""
    claims = facts.change.new_claims
    if one in owners:
        return [(one, other) for other in claims if other not in owners]
    return [(owner, one) for owner in owners] if one in claims else []


def ghosts(policy: Policy, rules: tuple[OwnershipRule, ...], facts: Facts) -> Iterator[Event]:
    """Fields that an owner's apply dropped, that are still there, and that only leftovers claim."""
    change = facts.change
    identity = change.requester.identity
    own = change.changes.get(identity) if identity is not None else None
    if own is None or identity is None or identity.operation != "Apply" or not own.lost:
        return
    if MOVED & set(change.explained.get(identity, ())):
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
        scaled = FieldPath.parse(policy.scale_path) if policy.scale_path is not None else REPLICAS
        found = FieldSet.from_paths(
            path for path in candidates.leaves() if path != scaled and _is_ghost(rule, facts, identity, path)
        )
        found = found | _ghost_items(rule, facts, identity, candidates, found)
        if found:
            keepers = {claim for path in found for claim in change.new_claims.holders(path)}
            note = f"kept alive by {_join(sorted(keepers))}"
            action, named = _action(rule.on_ghost, facts), facts.texts(found)
            yield Event("ghost", policy, rule.name, action, named, str(identity), note, found, tuple(sorted(keepers)))


def _is_ghost(rule: OwnershipRule, facts: Facts, me: Identity, path: FieldPath) -> bool:
    change = facts.change
    if facts.after.at(path) is ABSENT or is_item_key(path):
        return False
    reaching = [(identity, claim) for identity, claim in change.new_claims.items() if claim.reaches(path)]
    if not all(claim.holds_leaf(path) for _, claim in reaching):
        return False  # an empty map was dropped: what others put into it, or the owner itself, is no ghost
    keepers = [identity for identity, _ in reaching if identity != me]
    if not keepers or not all(is_leftover(rule, keeper) and not keeper.subresource for keeper in keepers):
        return False
    items = [path[: n + 1] for n, step in enumerate(path) if step[:2] in ("k:", "v:")]
    for item in items:
        for identity, claim in change.new_claims.items():
            if identity != me and not is_leftover(rule, identity) and _more_than_keys(claim.fields, item):
                return False
    return True


def _ghost_items(rule: OwnershipRule, facts: Facts, me: Identity, candidates: FieldSet, found: FieldSet) -> FieldSet:
    """The list items that were dropped whole, and of which leftovers alone keep what they never shared: half of an item."""
    claims = facts.change.new_claims
    return FieldSet.from_paths(
        path
        for path in candidates
        if path[-1][:2] == "k:"
        and not found.has_prefix(path)
        and facts.after.at(path) is not ABSENT
        and claims.holders(path)
        and all(
            is_leftover(rule, identity) and not identity.subresource
            for identity, claim in claims.items()
            if identity != me and claim.reaches(path)
        )
    )


def _more_than_keys(fields: FieldSet, item: tuple[str, ...]) -> bool:
    if not fields.has_prefix(item):
        return False
    return any(path[: len(item)] == item and not is_item_key(path) and len(path) > len(item) for path in fields)


def is_leftover(rule: OwnershipRule, identity: Identity) -> bool:
    """Whether nobody stands behind a claim any more."""
    return any_claim(rule.leftovers, identity)


def _action(action: Action | None, facts: Facts) -> Action | None:
    return None if facts.being_deleted else action


def _names(owners: tuple[ManagerMatcher, ...]) -> str:
    return " or ".join(map(str, owners))


def _join(identities: Iterable[Identity]) -> str:
    return ", ".join(map(str, identities))
