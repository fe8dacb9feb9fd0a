"""FieldSet: an immutable set of field paths, with the algebra that the server's fieldsV1 stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from webhook.fields import graft, trie
from webhook.fields.errors import TooDeep
from webhook.fields.path import FieldPath
from webhook.fields.steps import canonical_step


class FieldSet:
    """A set of field paths. A path is in the set or not; a parent is not in it because a child is.

    Operations raise FieldsError (TooDeep) on sets that nest more deeply than the recursion limit lets them be followed.

    >>> mine = FieldSet.from_fields_v1({"f:spec": {"f:replicas": {}, "f:selector": {}}})
    >>> theirs = FieldSet.from_paths([FieldPath.parse(".spec.replicas")])
    >>> [str(path) for path in mine - theirs]
    ['.spec.selector']
    """

    __slots__ = ("_paths", "_root")
    _paths: tuple[FieldPath, ...]
    _root: trie.Node

    def __init__(self) -> None:
        _set_root(self, trie.LEAF)

    @classmethod
    def of(cls, root: trie.Node) -> FieldSet:
        """A set from a canonical trie that nobody changes any more (for this room's own use)."""
        made = cls.__new__(cls)
        _set_root(made, root)
        return made

    @classmethod
    def from_fields_v1(cls, tree: dict[str, Any]) -> FieldSet:
        """Reads fieldsV1 JSON; raises FieldsError for an unknown kind of step or a value that is no object."""
        return _followed(lambda: trie.copied(trie.parse(tree)))

    @classmethod
    def from_paths(cls, paths: Iterable[tuple[str, ...]]) -> FieldSet:
        """Paths are tuples of steps in any spelling, or FieldPaths."""
        return cls.of(
            trie.build(
                path if isinstance(path, FieldPath) else tuple(canonical_step(step) for step in path) for path in paths
            )
        )

    def to_fields_v1(self) -> dict[str, Any]:
        """A new fieldsV1 dict, keys in the order in which the server writes them."""
        return trie.sorted_tree(self._root)

    @property
    def root(self) -> trie.Node:
        """The trie itself, to be read only."""
        return self._root

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """All paths, in the server's order, put together once."""
        try:
            return self._paths
        except AttributeError:
            found = tuple(self)
            _set_paths(self, found)
            return found

    def __or__(self, other: FieldSet) -> FieldSet:
        if not (self._root and other._root):
            return self if self._root else other
        try:
            return FieldSet.of(trie.union(self._root, other._root))
        except RecursionError:
            raise TooDeep from None

    def __and__(self, other: FieldSet) -> FieldSet:
        try:
            return FieldSet.of(trie.intersection(self._root, other._root))
        except RecursionError:
            raise TooDeep from None

    def __sub__(self, other: FieldSet) -> FieldSet:
        if not (self._root and other._root):
            return self
        try:
            return FieldSet.of(trie.difference(self._root, other._root))
        except RecursionError:
            raise TooDeep from None

    def recursive_difference(self, other: FieldSet) -> FieldSet:
        """Without what is in `other`, and without all that lies below what is in `other`.

        >>> labels = FieldSet.from_fields_v1({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}})
        >>> whole = FieldSet.from_fields_v1({"f:metadata": {"f:labels": {}}})
        >>> len(labels - whole), len(labels.recursive_difference(whole))
        (1, 0)
        """
        return _followed(lambda: trie.recursive_difference(self._root, other._root))

    def replaced(self, path: tuple[str, ...], other: FieldSet) -> FieldSet:
        """As another set at a path and below it, and elsewhere as it is.

        >>> mine = FieldSet.from_fields_v1({"f:spec": {"f:a": {}, "f:b": {}}})
        >>> [str(path) for path in mine.replaced(("f:spec", "f:a"), FieldSet())]
        ['.spec.b']
        """
        return FieldSet.of(graft.replaced(self._root, path, other._root))

    def leaves(self) -> FieldSet:
        """The members that have no member below them."""
        return _followed(lambda: trie.leaves(self._root))

    def has_prefix(self, path: tuple[str, ...]) -> bool:
        """Whether anything at the path or below it is in the set."""
        return trie.lookup(self._root, path) is not None if path else bool(self._root)

    def is_leaf(self, path: tuple[str, ...]) -> bool:
        """Whether the path is in the set and nothing below it is."""
        return bool(path) and trie.lookup(self._root, path) == trie.LEAF

    def __contains__(self, path: object) -> bool:
        if not path or not isinstance(path, tuple):
            return False
        node = self._root
        for step in path:
            below = node.get(step)
            if below is None:
                return False
            node = below
        return not node or "." in node

    def __iter__(self) -> Iterator[FieldPath]:
        return map(FieldPath, trie.iterate(self._root))

    def __len__(self) -> int:
        return trie.count(self._root)

    def __bool__(self) -> bool:
        return bool(self._root)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        try:
            return self._root == other._root
        except RecursionError:
            return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(map(str, self))})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a FieldSet never changes; make another with |, & or -")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a FieldSet never changes; make another with |, & or -")

    def __reduce__(self) -> tuple[Any, ...]:
        return FieldSet.from_paths, (list(self),)


def _followed(operation: Callable[[], trie.Node]) -> FieldSet:
    try:
        return FieldSet.of(operation())
    except RecursionError:
        raise TooDeep from None


_set_paths = FieldSet.__dict__["_paths"].__set__
_set_root = FieldSet.__dict__["_root"].__set__  # past __setattr__
EMPTY = FieldSet()
