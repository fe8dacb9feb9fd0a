"""What a review shows about one update, asked in the server's terms by every hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from webhook.fields import ABSENT, ClaimChange, Comparison, FieldSet, Identity, ManagedFields, Request, trie, value_at
from webhook.fields.fieldset import EMPTY

LAST_APPLIED = ("f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration")


@dataclass(slots=True)
class Evidence:
    """Both objects, both lists of claims, and what differs between them."""

    request: Request
    old_claims: ManagedFields
    new_claims: ManagedFields
    comparison: Comparison
    changes: Mapping[Identity, ClaimChange]
    holdings: dict[Identity, FieldSet] = field(init=False)  # by claim: what it holds of what was written
    altered: tuple[Identity, ...] = field(init=False)  # Apply claims whose apiVersion changed

    def __post_init__(self) -> None:
        self.holdings = dict(self._holdings())
        self.altered = tuple(
            identity
            for identity, claim in self.new_claims.items()
            if identity in self.old_claims and self.old_claims[identity].api_version != claim.api_version
        )

    @property
    def values_unchanged(self) -> bool:
        return not self.comparison

    @property
    def untracked(self) -> bool:
        """The object has no claims: the server then follows no update (fact 13)."""
        return not self.old_claims and not self.new_claims

    def comparable(self, identity: Identity) -> bool:
        """Whether a claim speaks the version of the objects shown. (A Scale's claims speak the Scale's.)"""
        claim = self.new_claims.get(identity) or self.old_claims[identity]
        return claim.api_version == self.request.api_version

    def old_value(self, path: tuple[str, ...]) -> object:
        return value_at(self.request.old, path)

    def new_value(self, path: tuple[str, ...]) -> object:
        return value_at(self.request.new, path)

    def differs(self, path: tuple[str, ...]) -> bool:
        """Whether the value at a path was added, modified or removed. JSON tells true from 1, Python does not."""
        old, new = self.old_value(path), self.new_value(path)
        if old is ABSENT or new is ABSENT:
            return old is not new
        return old != new or isinstance(old, bool) != isinstance(new, bool)

    def _holdings(self) -> Iterator[tuple[Identity, FieldSet]]:
        written = self.comparison.written.root
        if not written:
            return
        exact: dict[Identity, trie.Node] = {}
        covered: dict[Identity, trie.Node] = {}
        for identity, claim in self.new_claims.items():
            if claim.api_version == self.request.api_version:
                itself, below = trie.held(written, claim.tree)
                if itself:
                    exact[identity] = itself
                if below:
                    covered[identity] = below
        by_any = EMPTY
        if covered:
            for node in exact.values():
                by_any = by_any | FieldSet.of(node)
        for identity in self.new_claims:
            holding = FieldSet.of(exact[identity]) if identity in exact else EMPTY
            if identity in covered:
                holding = holding | self._atomic(identity, FieldSet.of(covered[identity]) - by_any)
            if holding:
                yield identity, holding

    def _atomic(self, identity: Identity, paths: FieldSet) -> FieldSet:
        """Of what lies below a claim's leaves: what is part of an atomic value. A claimed empty map is none (fact 33)."""
        return FieldSet.from_paths(path for path in paths if not self._granular(identity, path))

    def _granular(self, identity: Identity, path: tuple[str, ...]) -> bool:
        claim, before = self.new_claims[identity], self.old_claims.get(identity)
        for length in range(1, len(path)):
            if claim.holds(path[:length]):
                was = self.old_value(path[:length])
                return was in ({}, []) and before is not None and before.holds(path[:length])
        return False

    def holds_at_or_above(self, identity: Identity | None, path: tuple[str, ...]) -> bool:
        """Whether the claim now holds the path, or a leaf above it that became the atomic value around it."""
        claim = self.new_claims.get(identity) if identity is not None else None
        if claim is None:
            return False
        node: trie.Node = claim.tree
        for position, step in enumerate(path):
            below = trie.child(node, step)
            if below is None:
                return False
            if not below:
                return position + 1 == len(path) or self.differs(path[: position + 1])
            node = below
        return trie.is_member(node)
