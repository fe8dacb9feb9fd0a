"""Claims: the entries of managedFields, by identity."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, Literal, NamedTuple

from webhook.fields import trie
from webhook.fields.errors import FieldsError, TooDeep
from webhook.fields.fieldset import FieldSet


class Identity(NamedTuple):
    """What makes a claim one claim for the server. `api_version` is "" for Apply: appliers have one claim."""

    manager: str
    operation: Literal["Apply", "Update"]
    subresource: str = ""
    api_version: str = ""

    def __str__(self) -> str:
        where = f", {self.subresource}" if self.subresource else ""
        return f"{self.manager} ({self.operation}{where})"


class Claim:
    """One managedFields entry. Its fields are read on first use: most claims of most writes are never looked into."""

    __slots__ = ("_fields", "api_version", "entry", "identity")

    def __init__(self, identity: Identity, api_version: str, entry: Mapping[str, Any]) -> None:
        self.identity = identity
        self.api_version = api_version
        self.entry = entry
        self._fields: FieldSet | None = None

    @property
    def fields(self) -> FieldSet:
        """The claimed paths; raises FieldsError where fieldsV1 cannot be read."""
        if self._fields is None:
            try:
                self._fields = FieldSet.of(trie.parse(self.tree))
            except (FieldsError, RecursionError) as error:
                raise self._unreadable(error) from None
        return self._fields

    @property
    def time(self) -> str | None:
        """RFC 3339, to the second; may be missing, and proves nothing."""
        return self.entry.get("time")

    @property
    def tree(self) -> dict[str, Any]:
        """fieldsV1 as it came."""
        return self.entry.get("fieldsV1") or {}

    def _find(self, path: tuple[str, ...]) -> trie.Node | None:
        return trie.find(self.tree, path) if self._fields is None else trie.lookup(self._fields.root, path)

    def holds(self, path: tuple[str, ...]) -> bool:
        """Whether the path is claimed; like the next two, without reading the whole claim.

        These raise FieldsError where fieldsV1 cannot be read on the way; of a step in two spellings they see one only.
        """
        node = self._find(path)
        return node is not None and bool(path) and trie.is_member(node)

    def holds_leaf(self, path: tuple[str, ...]) -> bool:
        """Whether the path is claimed, and nothing below it."""
        node = self._find(path)
        return node is not None and bool(path) and trie.is_leaf(node)

    def reaches(self, path: tuple[str, ...]) -> bool:
        """Whether the path or anything below it is claimed."""
        return self._find(path) is not None if path else bool(self.fields)

    def held_of(self, paths: FieldSet) -> FieldSet:
        """Those of some paths that are claimed."""
        try:
            return FieldSet.of(trie.held(paths.root, self.tree)[0])
        except (FieldsError, RecursionError) as error:
            raise self._unreadable(error) from None

    def values_with(self, other: Claim, paths: FieldSet) -> FieldSet:
        """Those of some paths that both claim, and not only as every second applier must: list keys, and the "." of maps
        and items."""
        try:
            return FieldSet.of(trie.values(paths.root, self.tree, other.tree))
        except (FieldsError, RecursionError) as error:
            raise self._unreadable(error) from None

    def moved_from(self, old: Claim) -> tuple[FieldSet, FieldSet]:
        """(gained, lost) since an earlier state of the claim; raises FieldsError where fieldsV1 cannot be read."""
        try:
            gained, lost = trie.exchanged(old.tree, self.tree)
        except (FieldsError, RecursionError) as error:
            raise self._unreadable(error) from None
        return FieldSet.of(gained), FieldSet.of(lost)

    def _unreadable(self, error: FieldsError | RecursionError) -> FieldsError:
        told = error if isinstance(error, FieldsError) else TooDeep()
        told.message = f"the claim of {self.identity}: {told.message}"
        return told

    def __repr__(self) -> str:
        return f"Claim({self.identity})"


class ManagedFields(Mapping[Identity, Claim]):
    """All claims on one object, in the order of the list.

    >>> entry = {"manager": "flux", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
    ...          "fieldsV1": {"f:data": {"f:a": {}}}}
    >>> [str(identity) for identity in ManagedFields.parse([entry])]
    ['flux (Apply)']
    """

    __slots__ = ("_claims",)

    def __init__(self, claims: dict[Identity, Claim]) -> None:
        self._claims = claims

    @classmethod
    def of(cls, obj: Mapping[str, Any] | None, like: ManagedFields | None = None) -> ManagedFields:
        """The claims on an object; see `parse`."""
        return cls.parse(entries_of(obj), like)

    @classmethod
    def parse(cls, entries: object, like: ManagedFields | None = None) -> ManagedFields:
        """Reads a managedFields list (None is an empty one); raises FieldsError with the place.

        Of two entries with one identity the last counts, as for the server. A claim of `like` whose entry
        is equal, and stands where it stood, is taken over with what was read of it.
        """
        if entries is None:
            return cls({})
        if not isinstance(entries, list):
            raise FieldsError(f"managedFields is a list, not {type(entries).__name__}")
        if like is not None:
            try:
                return cls._alike(entries, list(like._claims.values()))
            except RecursionError:  # too deep to be compared: whoever reads the claim is told so
                pass
        claims: dict[Identity, Claim] = {}
        for position, entry in enumerate(entries):
            identity, api_version = _identity(entry, position)
            claims[identity] = Claim(identity, api_version, entry)
        return cls(claims)

    @classmethod
    def _alike(cls, entries: list[Any], known: list[Claim]) -> ManagedFields:
        """Claims of which some are known, in one order: up to two may have gone between those that stayed."""
        claims: dict[Identity, Claim] = {}
        at, end = 0, len(known)
        for position, entry in enumerate(entries):
            if at < end and known[at].entry == entry:
                at += 1
                claim = known[at - 1]
            elif at + 1 < end and known[at + 1].entry == entry:
                at += 2
                claim = known[at - 1]
            elif at + 2 < end and known[at + 2].entry == entry:
                at += 3
                claim = known[at - 1]
            else:
                identity, api_version = _identity(entry, position)
                claim = Claim(identity, api_version, entry)
            claims[claim.identity] = claim
        return cls(claims)

    def __getitem__(self, identity: Identity) -> Claim:
        return self._claims[identity]

    def __iter__(self) -> Iterator[Identity]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    # What Mapping would do, without its detour: each is asked many times for each request.

    def __contains__(self, identity: object) -> bool:
        return identity in self._claims

    def get(self, identity: Any, default: Any = None) -> Any:
        return self._claims.get(identity, default)

    def items(self) -> ItemsView[Identity, Claim]:
        return self._claims.items()

    def values(self) -> ValuesView[Claim]:
        return self._claims.values()

    def claims(self) -> tuple[Claim, ...]:
        return tuple(self._claims.values())

    def fields_of(self, identity: Identity) -> FieldSet:
        """The paths that a claim holds; none where there is no such claim."""
        claim = self._claims.get(identity)
        return claim.fields if claim is not None else FieldSet()

    def holders(self, path: tuple[str, ...]) -> tuple[Identity, ...]:
        """Whose claims hold exactly this path."""
        return tuple(identity for identity, claim in self._claims.items() if claim.holds(path))


def entries_of(obj: Mapping[str, Any] | None) -> Any:
    """An object's managedFields as they stand; None where it has none."""
    metadata = obj.get("metadata") if obj is not None else None
    return metadata.get("managedFields") if isinstance(metadata, Mapping) else None


def _identity(entry: Any, position: int) -> tuple[Identity, str]:
    if entry.__class__ is dict:
        get = entry.get
        manager, operation, subresource = get("manager", ""), get("operation"), get("subresource", "")
        version, tree = get("apiVersion"), get("fieldsV1")
        if (
            (operation == "Apply" or operation == "Update")
            and manager.__class__ is subresource.__class__ is version.__class__ is str
            and version
            and (tree is None or tree.__class__ is dict)
        ):
            return Identity(manager, operation, subresource, version if operation == "Update" else ""), version
    raise FieldsError(_fault(entry, f"managedFields[{position}]"))


def _fault(entry: Any, place: str) -> str:
    """What is wrong with an entry, in words."""
    if not isinstance(entry, dict):
        return f"{place} is an object, not {type(entry).__name__}"
    if entry.get("operation") not in ("Apply", "Update"):
        return f"{place}.operation is Apply or Update"
    if not isinstance(entry.get("manager", ""), str) or not isinstance(entry.get("subresource", ""), str):
        return f"{place}: manager and subresource are texts"
    if not isinstance(entry.get("apiVersion"), str) or not entry["apiVersion"]:
        return f"{place}.apiVersion is a text such as apps/v1"
    return f"{place}.fieldsV1 is an object"
