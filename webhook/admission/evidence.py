"""What a review shows about one update, asked in the server's terms by every hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from webhook.fields import (
    ABSENT,
    ClaimChange,
    Comparison,
    FieldPath,
    FieldSet,
    Identity,
    ManagedFields,
    Request,
    trie,
)
from webhook.fields.fieldset import EMPTY
from webhook.fields.lookup import Values
from webhook.fields.values import NEVER_CLAIMED, NEVER_CLAIMED_METADATA, same

LAST_APPLIED = ("f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration")


def is_open(path: tuple[str, ...]) -> bool:
    """Whether schemas let the parts of a path be claimed one by one: spec, status, data, metadata and its fields."""
    return path in (("f:spec",), ("f:status",), ("f:data",)) or (path[0] == "f:metadata" and len(path) <= 2)


def _is_compared(path: tuple[str, ...]) -> bool:
    """Whether a path's value is among those that a comparison of objects looks at."""
    if path[0] == "f:metadata":
        return len(path) > 1 and path[1][2:] not in NEVER_CLAIMED_METADATA
    return path[0] != "f:status" and path[0][2:] not in NEVER_CLAIMED


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
    _old: Values = field(init=False, repr=False)
    _new: Values = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._old, self._new = Values(self.request.old), Values(self.request.new)
        self.holdings = dict(self._holdings())
        self.altered = tuple(
            identity
            for identity, claim in self.new_claims.items()
            if (before := self.old_claims.get(identity)) is not None and before.api_version != claim.api_version
        )

    @property
    def values_unchanged(self) -> bool:
        return not self.comparison

    @property
    def untracked(self) -> bool:
        """The object has no claims: the server then follows no update."""
        return not self.old_claims and not self.new_claims

    def is_annotated(self, me: Identity) -> bool:
        """Whether the server itself writes the last-applied annotation anew: at an apply by kubectl, where there is one."""
        return me[:2] == ("kubectl", "Apply") and self.old_value(LAST_APPLIED) is not ABSENT

    def comparable(self, identity: Identity) -> bool:
        """Whether a claim speaks the version of the objects shown. (A Scale's claims speak the Scale's.)"""
        claim = self.new_claims.get(identity) or self.old_claims[identity]
        return claim.api_version == self.request.api_version

    def shows(self, identity: Identity, path: tuple[str, ...]) -> bool:
        """Whether the objects shown tell of a claimed path: in the claim's version, or where all versions are alike.

        No conversion may change the metadata, but for labels and annotations; labels it leaves alone in practice.
        """
        if self.comparable(identity):
            return True
        return path[0] == "f:metadata" and path[1:2] != ("f:annotations",)

    def old_value(self, path: tuple[str, ...]) -> object:
        return self._old.at(path)

    def new_value(self, path: tuple[str, ...]) -> object:
        return self._new.at(path)

    def absent(self, path: tuple[str, ...]) -> bool:
        """Whether neither object has the path."""
        return self.new_value(path) is ABSENT and self.old_value(path) is ABSENT

    def differs(self, path: tuple[str, ...]) -> bool:
        """Whether the value at a path was added, modified or removed. JSON tells true from 1, Python does not."""
        if _is_compared(path):
            written, removed, reordered = self.comparison
            if not (
                (written and trie.meets(written.root, path))
                or (removed and trie.meets(removed.root, path))
                or (reordered and trie.meets(reordered.root, path))
            ):
                return False  # nothing differs at, above or below it
        if path in self.comparison.written or path in self.comparison.removed:
            return True
        old, new = self.old_value(path), self.new_value(path)
        if old is ABSENT or new is ABSENT:
            return old is not new
        return not same(old, new)

    def held_by(self, identity: Identity | None) -> FieldSet:
        """What a claim holds of what was written."""
        return self.holdings.get(identity, EMPTY) if identity is not None else EMPTY

    def _holdings(self) -> Iterator[tuple[Identity, FieldSet]]:
        written = self.comparison.written.root
        if not written:
            return
        exact: dict[Identity, trie.Node] = {}
        covered: dict[Identity, trie.Node] = {}
        version, spine = self.request.api_version, trie.spine(written)
        for identity, claim in self.new_claims.items():
            if claim.api_version == version and trie.passes(claim.tree, spine):
                itself, below = trie.held(written, claim.tree)
                if itself:
                    exact[identity] = itself
                if below:
                    covered[identity] = below
        atomic: dict[Identity, list[FieldPath]] = {}
        if covered:
            by_any = EMPTY
            for node in exact.values():
                by_any = by_any | FieldSet.of(node)
            atomic = self._atomic({name: FieldSet.of(node) - by_any for name, node in covered.items()})
        for identity in {**exact, **atomic}:
            holding = FieldSet.of(exact.get(identity, trie.LEAF))
            if identity in atomic:
                holding = holding | FieldSet.from_paths(atomic[identity])
            if holding:
                yield identity, holding

    def _atomic(self, covered: Mapping[Identity, FieldSet]) -> dict[Identity, list[FieldPath]]:
        """Of what lies below a claim's leaves: what is part of an atomic value, which the deepest leaf is.

        A claimed empty map is none, and a leaf above another claim's leaf cannot be one.
        """
        deepest: dict[FieldPath, int] = {}
        found: list[tuple[Identity, FieldPath, int]] = []
        for identity, paths in covered.items():
            claim = self.new_claims[identity]
            for path in paths:
                depth = next((n for n in range(1, len(path)) if claim.holds_leaf(path[:n])), 0)
                if depth and self.may_be_atomic(path[:depth]) and not self._was_empty(identity, path[:depth]):
                    deepest[path] = max(depth, deepest.get(path, 0))
                    found.append((identity, path, depth))
        held: dict[Identity, list[FieldPath]] = {}
        for identity, path, depth in found:
            if depth == deepest[path]:
                held.setdefault(identity, []).append(path)
        return held

    def _was_empty(self, identity: Identity, leaf: tuple[str, ...]) -> bool:
        before = self.old_claims.get(identity)
        return before is not None and self.old_value(leaf) in ({}, []) and before.holds(leaf)

    def may_be_atomic(self, path: tuple[str, ...]) -> bool:
        """Whether a map or list can be one value for the server: nobody claims a part of it."""
        return not is_open(path) and not any(
            claim.reaches(path) and not claim.holds_leaf(path)
            for claims in (self.old_claims, self.new_claims)
            for claim in claims.claims()
            if claim.api_version == self.request.api_version
        )

    def wrote(self, path: tuple[str, ...]) -> bool:
        """Whether the server counts a path as added or modified: a map or list with parts is so only when atomic."""
        if path in self.comparison.written:
            return True
        if not self.differs(path):
            return False
        old, new = self.old_value(path), self.new_value(path)
        both = any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, list))
        return not both or self.may_be_atomic(path)

    def came(self, path: tuple[str, ...]) -> bool:
        """Whether the path is new: the server takes it from whoever claimed it already."""
        return self.old_value(path) is ABSENT and self.new_value(path) is not ABSENT

    def reaches(self, identity: Identity, path: tuple[str, ...]) -> bool:
        """Whether a claim now holds the path or anything below it."""
        claim = self.new_claims.get(identity)
        return claim is not None and claim.reaches(path)

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
