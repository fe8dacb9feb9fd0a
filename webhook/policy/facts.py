"""What rules ask of a change, worked out once for all policies and only when asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from webhook.fields import Change, ClaimChange, FieldPath, FieldSet, Identity, Pattern
from webhook.fields.fieldset import EMPTY
from webhook.policy.compiled import ManagerMatcher

MOVED = frozenset({"migration", "version", "ancient-changes"})
"""Explanations of claims that moved or were folded, and did not lose what they held to a write."""


@dataclass(eq=False)
class Facts:
    """A change, seen by rules. Paths are the parent's; for a Scale they are those that the policy gives."""

    change: Change
    _selected: dict[tuple[int, tuple[Pattern, ...], tuple[Pattern, ...]], FieldSet] = field(default_factory=dict)
    views: dict[str, Facts] = field(default_factory=dict)  # by the path at which replicas stand

    @cached_property
    def touched(self) -> FieldSet:
        """Values that the request wrote, removed or reordered."""
        change = self.change
        return (change.written - change.elsewhere) | change.removed | change.reordered

    @cached_property
    def tampered(self) -> dict[Identity, FieldSet]:
        return {item.identity: item.lost for item in self.change.tampering}

    @cached_property
    def losers(self) -> tuple[tuple[ClaimChange, FieldSet], ...]:
        """The claims that lost paths to this write, and those paths."""
        found = []
        for change in self.change.changes.values():
            if not change.lost or change.identity == self.change.requester.identity:
                continue
            reasons = self.change.explained.get(change.identity, ())
            if "migration" in reasons or "ancient-changes" in reasons or "another-webhook" in reasons:
                continue
            lost = change.lost - self.tampered.get(change.identity, EMPTY)
            if "schema" in reasons:
                lost = lost - change.lost.recursive_difference(change.gained)
            if lost:
                found.append((change, lost))
        return tuple(found)

    @cached_property
    def under_own_name(self) -> FieldSet:
        """What the requester's claim holds, or held, of what the request wrote or removed."""
        identity = self.change.requester.identity
        if identity is None:
            return EMPTY
        held = self.change.new_claims.fields_of(identity) | self.change.old_claims.fields_of(identity)
        own = self.change.changes.get(identity)
        return (self.touched & held) | (own.lost if own is not None else EMPTY)

    @cached_property
    def being_deleted(self) -> bool:
        old = self.change.request.old
        metadata = old.get("metadata") if old is not None else None
        return isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None

    @cached_property
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
        key = (id(paths), fields, except_)
        found = self._selected.get(key)
        if found is None:
            found = select(paths, fields, except_)
            self._selected[key] = found
        return found

    def claims_of(self, owners: tuple[ManagerMatcher, ...]) -> tuple[Identity, ...]:
        """The claims on the new object that are an owner's by name."""
        return tuple(
            identity for identity in self.change.new_claims if any(owner.matches_claim(identity) for owner in owners)
        )

    def is_owner(self, owners: tuple[ManagerMatcher, ...]) -> bool:
        """Whether the requester is an owner, by name and user."""
        change = self.change
        return any(owner.matches_requester(change.requester, change.request.user) for owner in owners)


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
