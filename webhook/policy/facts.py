"""What rules ask of a change, worked out once for all policies and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

from webhook.fields import (
    ABSENT,
    Change,
    ClaimChange,
    FieldPath,
    FieldSet,
    Identity,
    Pattern,
)
from webhook.fields.fieldset import EMPTY
from webhook.fields.lookup import Values
from webhook.fields.steps import step_value
from webhook.policy.compiled import ManagerMatcher, OwnershipRule

T = TypeVar("T")

MOVED = frozenset({"migration", "ancient-changes", "schema", "another-webhook"})
"""Explanations of claims that moved, were folded or respelt: nobody's write gave or took what they hold."""


RESPELT = MOVED - {"another-webhook"}
"""Of these, what leaves the paths claimed. Through `ephemeralcontainers` and `resize` the server takes claims on all that
a body holds, also on what it then does not store; that looks like another webhook's work, and the claims are gone."""


class lazy(Generic[T]):  # noqa: N801 (used as a decorator)
    """`functools.cached_property` without the lock that it takes in Python 3.11: facts belong to one thread."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work = work
        self.name = work.__name__
        self.__doc__ = work.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        found = instance.__dict__[self.name] = self.work(instance)
        return found


@dataclass(eq=False)
class Facts:
    """A change, seen by rules. Paths are the parent's; for a Scale they are those that the policy gives."""

    change: Change
    _known: dict[tuple[object, ...], tuple[object, Any]] = field(default_factory=dict)
    views: dict[str, Facts] = field(default_factory=dict)  # by the path at which replicas stand

    @lazy
    def touched(self) -> FieldSet:
        """Values that the request wrote, removed or reordered."""
        change = self.change
        return (change.written - change.elsewhere) | change.removed | change.reordered

    @lazy
    def tampered(self) -> dict[Identity, FieldSet]:
        return {item.identity: item.lost for item in self.change.tampering}

    @lazy
    def only_tampered(self) -> bool:
        """Whether the request did nothing but edit claims: no value changed, and no other claim moved."""
        change = self.change
        if change.request.old is None or change.written or change.removed or change.reordered:
            return False
        tampered = {item.identity: item for item in change.tampering}
        return all(
            (item := tampered.get(identity)) is not None and (item.gained, item.lost) == (moved.gained, moved.lost)
            for identity, moved in change.changes.items()
        )

    @lazy
    def overwritten(self) -> FieldSet:
        """Values that were there before, and that neither the requester nor the server changed: another webhook did."""
        change = self.change
        if not change.elsewhere or change.request.old is None:
            return EMPTY
        return FieldSet.from_paths(path for path in change.elsewhere if self.before.at(path) is not ABSENT)

    @lazy
    def before(self) -> Values:
        return Values(self.change.request.old)

    @lazy
    def after(self) -> Values:
        return Values(self.change.request.new)

    @lazy
    def losers(self) -> tuple[tuple[ClaimChange, FieldSet], ...]:
        """The claims that lost paths to this write, and those paths."""
        found = []
        for change in self.change.changes.values():
            if not change.lost or change.identity == self.change.requester.identity:
                continue
            reasons = self.change.explained.get(change.identity, ())
            if "schema" not in reasons and not RESPELT.isdisjoint(reasons):
                continue
            lost = change.lost.recursive_difference(change.gained) if reasons else change.lost
            if (tampered := self.tampered.get(change.identity)) is not None:
                lost = lost - tampered
            if empty := [path for path in lost.paths if self._was_an_empty_map(path)]:
                lost = lost - FieldSet.from_paths(empty)
            if lost:
                found.append((change, lost))
        return tuple(found)

    def _was_an_empty_map(self, path: FieldPath) -> bool:
        """Whether a path was claimed as an empty map, which is not stored: what is put into it is taken from nobody."""
        return isinstance(self.after.at(path), dict | list) and self.before.at(path) is ABSENT

    @lazy
    def under_own_name(self) -> FieldSet:
        """What the requester's claim holds, or held, of what the request wrote or removed."""
        identity = self.change.requester.identity
        if identity is None:
            return EMPTY
        found = EMPTY
        for claims in (self.change.new_claims, self.change.old_claims):
            if (claim := claims.get(identity)) is not None:
                found = found | claim.held_of(self.touched)
        own = self.change.changes.get(identity)
        return found | own.lost if own is not None and own.lost else found

    @lazy
    def being_deleted(self) -> bool:
        old = self.change.request.old
        metadata = old.get("metadata") if old is not None else None
        return isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None

    @lazy
    def only_status(self) -> bool:
        """Whether a write through `status` reached nothing but `.status`."""
        if self.change.request.subresource != "status":
            return False
        return all(path[0] == "f:status" for path in self._reached())

    def _reached(self) -> Iterable[FieldPath]:
        yield from self.touched
        for change in self.change.changes.values():
            yield from change.gained
            yield from change.lost

    def select(self, paths: FieldSet, fields: tuple[Pattern, ...], except_: tuple[Pattern, ...]) -> FieldSet:
        """The paths that a rule's patterns touch, its exceptions left out. Rules with the same patterns share the work."""
        if not paths:
            return EMPTY
        key = ("select", id(paths), id(fields), id(except_))
        found = self._known.get(key)
        if found is None:  # the key's objects are kept with the answer, so that no other object gets their ids
            found = self._known[key] = ((paths, fields, except_), select(paths, fields, except_))
        selected: FieldSet = found[1]
        return selected

    def texts(self, paths: FieldSet) -> tuple[str, ...]:
        """Paths in words, in the server's order."""
        found = self._known.get(("texts", id(paths)))
        if found is None:
            found = self._known["texts", id(paths)] = (paths, tuple(map(str, paths.paths)))
        words: tuple[str, ...] = found[1]
        return words

    def claims_of(self, rule: OwnershipRule) -> frozenset[Identity]:
        """The claims, old and new, and the requester's, that are an owner's by name."""
        key = ("claims", id(rule.owners))
        found = self._known.get(key)
        if found is None:
            named = frozenset(filter(rule.owning.mean_claim, self._identities))
            found = self._known[key] = (rule.owners, named)
        claims: frozenset[Identity] = found[1]
        return claims

    @lazy
    def _identities(self) -> frozenset[Identity]:
        requester = self.change.requester.identity
        named = {*self.change.new_claims, *self.change.old_claims}
        return frozenset(named if requester is None else named | {requester})

    @lazy
    def gainers(self) -> tuple[ClaimChange, ...]:
        """The claims that gained paths and did not only take over what moved."""
        explained = self.change.explained
        return tuple(
            change
            for change in self.change.changes.values()
            if change.gained and (not explained or MOVED.isdisjoint(explained.get(change.identity, ())))
        )

    def shared(self, owner: Identity, other: Identity, *, standing: bool) -> FieldSet:
        """The values that both claims hold and did not both hold before; with `standing`, all that both hold."""
        key = (owner, other, standing)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (None, self._shared(owner, other, standing=standing))
        paths: FieldSet = found[1]
        return paths

    def _shared(self, owner: Identity, other: Identity, *, standing: bool) -> FieldSet:
        change = self.change
        mine, theirs = change.new_claims[owner], change.new_claims[other]
        both = EMPTY
        if standing:
            both = theirs.fields
        else:
            for identity, claim in ((owner, theirs), (other, mine)):
                if identity in change.changes and (held := claim.held_of(change.changes[identity].gained)):
                    both = both | held
            old_mine, old_theirs = change.old_claims.get(owner), change.old_claims.get(other)
            if both and old_mine is not None and old_theirs is not None:
                both = both - old_theirs.held_of(old_mine.held_of(both))
        return mine.values_with(theirs, both) if both else both

    def _named(self, owner: ManagerMatcher) -> bool:
        request = self.change.request
        return (
            request.field_manager is not None
            and owner.manager.matches(request.field_manager)
            and bool(owner.subjects)
            and owner.subjects.match(request.user)
        )

    def is_owner(self, owners: tuple[ManagerMatcher, ...]) -> bool:
        """Whether the requester is an owner, by name and user.

        Where claims moved that no hypothesis explains, whether it was an apply is not sure either: then a bound owner is known
        by the name that the client gave, and the user.
        """
        found = self._known.get(("owner", id(owners)))
        if found is None:
            requester, user = self.change.requester, self.change.request.user
            found = self._known["owner", id(owners)] = (
                owners,
                any(o.matches_requester(requester, user) for o in owners)
                or bool(self.change.tampering and any(map(self._named, owners))),
            )
        return bool(found[1])


def select(paths: FieldSet, fields: tuple[Pattern, ...], except_: tuple[Pattern, ...]) -> FieldSet:
    found = EMPTY
    for pattern in fields:
        touched = pattern.touched(paths)
        if touched:
            found = found | touched
    for pattern in except_:
        if not found:
            break
        found = found - pattern.select(found)
    return found


def is_item_key(path: tuple[str, ...]) -> bool:
    """Whether a path is one of the fields that an item is known by, as `.ports[port=80].port`."""
    if len(path) < 2 or path[-2][:2] != "k:" or path[-1][:2] != "f:":
        return False
    return path[-1][2:] in step_value(path[-2])
