"""What each action does to a draft. One function an action; none looks at modes, or at what other actions do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.admission.draft import Draft, item_prefixes, key_names
from webhook.admission.evidence import is_open
from webhook.fields import ABSENT, Change, FieldPath, FieldSet, Identity, value_at
from webhook.fields.fieldset import EMPTY
from webhook.fields.values import same
from webhook.policy.compiled import Event, OwnershipRule, RenameRule
from webhook.policy.rules_ownership import is_leftover

Steps = tuple[str, ...]


class CannotRewrite(Exception):
    """What a policy asks for cannot be done to this request; the text says why. It is then refused."""


def heal(draft: Draft) -> None:
    """Tamper Restore: all claims as they were. The request did nothing else, so nothing of it is left."""
    draft.claims_as_before()


def restore(draft: Draft, change: Change, paths: FieldSet) -> FieldSet:
    """Restore: values and claims at the paths as they were, list items whole and in place. What was restored.

    Raises CannotRewrite for what only a claim in another version shows: no value of the objects at hand stands there.
    """
    regions: dict[Steps, None] = {}
    hidden = False
    for path in paths.leaves():
        if path in change.reordered:
            draft.put_in_order(path, _names(change, path))
            draft.restored = draft.restored | FieldSet.from_paths([path])
            continue
        region = _region(draft, change, path)
        hidden = hidden or (_is_hidden(draft, region) and _in_another_version(change, path))
        regions[region] = None
    outer = [region for region in regions if not any(region[:length] in regions for length in range(1, len(region)))]
    _restore_at(draft, change, outer)
    for path in paths - paths.leaves():
        for identity in draft.identities():
            draft.membership_as_before(identity, path)
    done = FieldSet.from_paths(regions)
    _let_go(draft, change, done)
    draft.restored = draft.restored | done
    if not _wholly_restored(draft, change):
        if hidden:
            raise CannotRewrite("a claim on it is in another API version, which the objects at hand do not show")
        if _writes_another_version(change) and any(path[0] != "f:metadata" for path in done):
            raise CannotRewrite("the write was in another API version, and changed other fields too")
    return done


def _region(draft: Draft, change: Change, path: FieldPath) -> Steps:
    """What has to be restored whole for a path: the list item that came or went, or the one value that it is a part of."""
    for item in item_prefixes(path):
        if (draft.before.at(item) is ABSENT) != (draft.after.at(item) is ABSENT):
            return item
    claims = (*change.old_claims.claims(), *change.new_claims.claims())
    for length in range(2, len(path)):
        whole = path[:length]
        if _became_another_kind(draft.before.at(whole), draft.after.at(whole)):
            return whole
        if not is_open(whole) and any(claim.holds_leaf(whole) for claim in claims):
            parts = any(claim.reaches(whole) and not claim.holds_leaf(whole) for claim in claims)
            if not parts:
                return whole
    return path


def _became_another_kind(was: Any, now: Any) -> bool:
    """Whether a value with parts became one without, or the reverse."""
    return ABSENT not in (was, now) and isinstance(was, dict | list) != isinstance(now, dict | list)


def _restore_at(draft: Draft, change: Change, regions: list[Steps]) -> None:
    """Values and claims at some places as they were, and around them where that makes or removes what holds them."""
    draft.put_back([region for region in regions if not same(draft.before.at(region), draft.after.at(region))])
    foreign = [identity for identity in draft.identities() if not _speaks(change, identity)]
    everywhere = FieldSet.from_paths(regions)
    for identity in draft.identities():
        if identity not in foreign:
            draft.claim_as_before(identity, everywhere)
        elif there := [region for region in regions if _took_from(change, identity, region)]:
            draft.claim_as_before(identity, FieldSet.from_paths(there))
    for parent in {region[:length] for region in regions for length in range(1, len(region))}:
        was, now = draft.before.at(parent) is ABSENT, draft.after.at(parent) is ABSENT
        if was != now and now != (value_at(draft.values, parent) is ABSENT):
            for identity in draft.identities():
                draft.membership_as_before(identity, parent)


def _wholly_restored(draft: Draft, change: Change) -> bool:
    """Whether nothing is left of the request; then claims are as they were too, whatever the server folded for it.

    It drops them all where an object does not fit its schema, which it finds out only after the mutating calls.
    """
    differing = change.written | change.removed | change.reordered
    left = differing.recursive_difference(draft.restored)
    if not all(same(draft.before.at(path), value_at(draft.values, path)) for path in left):
        return False
    requester = change.requester.identity
    for identity, moved in change.changes.items():
        before = moved.old.fields if moved.old is not None else EMPTY
        # In another version the requester wrote what is restored, whatever that is called there.
        explained = _writes_another_version(change) if identity == requester else identity in change.explained
        if change.new_claims and not explained and draft.claim(identity) != before:
            return False
    draft.claims_as_before()
    return True


def _writes_another_version(change: Change) -> bool:
    """Whether the requester's claim moved and speaks another version than the objects at hand."""
    moved = change.changes.get(change.requester.identity) if change.requester.identity is not None else None
    return moved is not None and moved.new is not None and moved.new.api_version != change.request.api_version


def _is_hidden(draft: Draft, region: Steps) -> bool:
    return draft.before.at(region) is ABSENT and draft.after.at(region) is ABSENT


def _in_another_version(change: Change, path: FieldPath) -> bool:
    return any(
        "version" in reasons and (moved := change.changes.get(identity)) is not None and path in moved.lost
        for identity, reasons in change.explained.items()
    )


def _speaks(change: Change, identity: Identity) -> bool:
    """Whether a claim's paths mean what the objects' do: in another version only those of the metadata are sure to."""
    claim = change.new_claims.get(identity) or change.old_claims.get(identity)
    return claim is None or claim.api_version == change.request.api_version


def _took_from(change: Change, identity: Identity, region: Steps) -> bool:
    """Whether a place means the same to a claim in another version: in the metadata, or where this write took it there."""
    if region[0] == "f:metadata":
        return True
    moved = change.changes.get(identity)
    return identity != change.requester.identity and moved is not None and moved.lost.has_prefix(region)


def _names(change: Change, path: FieldPath) -> tuple[str, ...]:
    """The names of a keyed list's keys, as some claim shows them."""
    for claims in (change.old_claims, change.new_claims):
        for claim in claims.claims():
            if claim.reaches(path):
                for below in claim.fields:
                    if below[: len(path)] == path and below[len(path) :] and below[len(path)][:2] == "k:":
                        return key_names(below[len(path)])
    raise CannotRewrite("no claim shows what the items of the list are known by")


def prune(draft: Draft, change: Change, event: Event, rule: OwnershipRule) -> FieldSet:
    """Prune: a ghost's value, and the leftovers' claims on it. A list item that nobody else wants goes whole."""
    me = change.requester.identity
    own = change.changes.get(me) if me is not None else None
    dropped = own.lost if own is not None else EMPTY
    gone: dict[Steps, None] = {}
    for path in event.fields:
        wanted = (item for item in item_prefixes(path) if item in dropped and not _others_want(draft, rule, item))
        gone[next(wanted, path)] = None
    for region in gone:
        if value_at(draft.values, region) is not ABSENT:
            draft.remove(region)
        _give_up(draft, rule, region)
        for length in range(len(region) - 1, 1, -1):  # maps and lists that are empty by it
            parent = region[:length]
            if value_at(draft.values, parent) not in ({}, []) or _others_want(draft, rule, parent):
                break
            draft.remove(parent)
            _give_up(draft, rule, parent)
    return FieldSet.from_paths(gone)


def _others_want(draft: Draft, rule: OwnershipRule, path: Steps) -> bool:
    return any(not is_leftover(rule, identity) and draft.reaches(identity, path) for identity in draft.identities())


def _give_up(draft: Draft, rule: OwnershipRule, path: Steps) -> None:
    for identity in draft.identities():
        if is_leftover(rule, identity) and draft.reaches(identity, path):
            draft.hold(identity, draft.claim(identity).replaced(path, EMPTY))


def reassign(draft: Draft, change: Change, event: Event) -> FieldSet:
    """Reassign: the new value stays, and the path goes back to the owners' claims that held it before."""
    for identity in tuple(draft.identities()):
        held = draft.claim(identity)
        if identity in event.claims:
            before = change.old_claims.get(identity)
            draft.hold(identity, held | before.held_of(event.fields) if before is not None else held)
        elif (kept := held.recursive_difference(event.fields)) != held:
            draft.hold(identity, kept)
    _let_go(draft, change, event.fields)
    return event.fields


def _let_go(draft: Draft, change: Change, paths: FieldSet) -> None:
    """Takes from the requester's apply the items around some paths that it came to hold beside others.

    An item is kept by a claim on itself. If the requester kept it, and not what is in it, its owner could not drop it: the
    server would refuse the half that is left.
    """
    me = change.requester.identity
    if me is None or me.operation != "Apply":
        return  # an update never takes hold of an item that is there
    before = change.old_claims.get(me)
    others = [identity for identity in draft.identities() if identity != me]
    items = {item for path in paths for item in item_prefixes(path) if before is None or not before.holds(item)}
    if kept := _kept_by(draft, items, others):
        draft.hold(me, draft.claim(me) - kept)


def _kept_by(draft: Draft, items: Iterable[Steps], owners: list[Identity]) -> FieldSet:
    """Of list items: those that owners keep too, with their keys."""
    kept = [item for item in items if item[-1][:2] == "k:" and any(draft.holds(owner, item) for owner in owners)]
    keys = [(*item, f"f:{name}") for item in kept for name in key_names(item[-1])]
    return FieldSet.from_paths(map(FieldPath, (*kept, *keys))) if kept else EMPTY


def release(draft: Draft, event: Event, rule: OwnershipRule) -> FieldSet:
    """Release: shared paths out of the leftover's claim, and with them what keeps the items and maps around them alive."""
    (leftover,) = event.claims
    owners = [identity for identity in draft.identities() if rule.owning.mean_claim(identity)]
    kept = draft.claim(leftover) - event.fields
    if items := _kept_by(draft, {item for path in event.fields.paths for item in item_prefixes(path)}, owners):
        kept = kept - items
    stay: set[Steps] = set()  # until one more goes
    for path in event.fields.paths:
        for length in range(len(path) - 1, 1, -1):  # from the innermost out, as far as nothing else is left in them
            frame = path[:length]
            if frame[-1][:2] != "f:":
                continue
            if frame in stay:
                break
            if not kept.is_leaf(frame) or not any(draft.reaches(owner, frame) for owner in owners):
                stay.add(frame)
                break
            kept = kept - FieldSet.from_paths([FieldPath(frame)])
            stay.clear()
    draft.hold(leftover, kept)
    return event.fields


def rename(draft: Draft, event: Event, rule: RenameRule) -> FieldSet:
    """Rename: an Update claim under another name, merged with the one that is there."""
    (source,) = event.claims
    draft.move(source, source._replace(manager=rule.to))
    return EMPTY
