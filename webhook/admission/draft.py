"""Draft: the object of a request while it is rewritten. Values and claims are changed in copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from webhook.fields import ABSENT, Claim, FieldSet, Identity, ManagedFields, Request, value_at
from webhook.fields.claims import entries_of
from webhook.fields.editing import Editor, in_order_of
from webhook.fields.fieldset import EMPTY
from webhook.fields.lookup import Values
from webhook.fields.steps import step_value

Steps = tuple[str, ...]
Entry = Mapping[str, Any]


class Draft:
    """What will be sent back instead of the request's object."""

    def __init__(self, request: Request, old_claims: ManagedFields, new_claims: ManagedFields) -> None:
        self.old: Mapping[str, Any] = request.old if request.old is not None else {}
        self.came: Mapping[str, Any] = request.new
        self._editor = Editor(request.new)
        self.restored = EMPTY  # the paths at and below which all is as it was
        self._request, self._old_claims, self._new_claims = request, old_claims, new_claims
        self._edited: dict[Identity, FieldSet] = {}
        self._times: dict[Identity, str] = {}
        self._as_before = False
        self.before, self.after = Values(self.old), Values(request.new)

    # Values

    @property
    def values(self) -> Mapping[str, Any]:
        """The object by now, its claims apart."""
        values: Mapping[str, Any] = self._editor.value
        return values

    def put_back(self, paths: Iterable[Steps]) -> None:
        """The values at paths as they were before the request, with the parents and the places in lists that they had."""
        items: dict[Steps, tuple[dict[str, Any], list[str]]] = {}  # by list: those that come back, those that go
        for path in paths:
            was = self.before.at(path)
            if path[-1][:2] in ("k:", "v:") and (was is ABSENT) != (self.after.at(path) is ABSENT):
                back, gone = items.setdefault(path[:-1], ({}, []))
                if was is ABSENT:
                    gone.append(path[-1])
                else:
                    back[path[-1]] = was
            elif was is not ABSENT:
                self._editor.put(path, was, self.old)
            else:
                self.remove(path)
                self._tidy(path)
        for place, (back, gone) in items.items():
            self._editor.put_items(place, back, gone, self.old)
            self._tidy((*place, ""))

    def _tidy(self, path: Steps) -> None:
        """Takes away the maps and lists around a path that came with what is gone."""
        for length in range(len(path) - 1, 0, -1):
            parent = path[:length]
            if value_at(self.values, parent) not in ({}, []) or self.before.at(parent) is not ABSENT:
                return
            self.remove(parent)

    def put_in_order(self, path: Steps, names: tuple[str, ...]) -> None:
        """The common items of a keyed list in the order that they had."""
        items, like = value_at(self.values, path), self.before.at(path)
        if isinstance(items, list) and isinstance(like, list):
            self._editor.put(path, in_order_of(items, like, names))

    def remove(self, path: Steps) -> None:
        self._editor.remove(path)

    # Claims

    def identities(self) -> Iterator[Identity]:
        """Of all claims, old, new and made."""
        yield from dict.fromkeys((*self._new_claims, *self._old_claims, *self._edited))

    def claim(self, identity: Identity) -> FieldSet:
        """What a claim holds by now."""
        edited = self._edited.get(identity)
        return self._new_claims.fields_of(identity) if edited is None else edited

    def reaches(self, identity: Identity, path: Steps) -> bool:
        """Whether a claim holds anything at a path or below it by now."""
        if identity in self._edited:
            return self._edited[identity].has_prefix(path)
        claim = self._new_claims.get(identity)
        return claim is not None and bool(claim.reaches(path))

    def holds(self, identity: Identity, path: Steps) -> bool:
        """Whether a claim holds a path itself by now."""
        if identity in self._edited:
            return path in self._edited[identity]
        claim = self._new_claims.get(identity)
        return claim is not None and bool(claim.holds(path))

    def hold(self, identity: Identity, paths: FieldSet) -> None:
        """Let a claim hold exactly these paths."""
        self._edited[identity] = paths

    def claim_as_before(self, identity: Identity, paths: FieldSet) -> None:
        """A claim as it was before the request, at some paths and below them."""
        before = self._old_claims.get(identity)
        now, held = self.claim(identity), before.fields if before is not None else EMPTY
        kept = now.recursive_difference(paths) | (held - held.recursive_difference(paths))
        if kept != now:
            self.hold(identity, kept)

    def membership_as_before(self, identity: Identity, path: Steps) -> None:
        """Whether a claim holds a path itself, as it was before the request."""
        before = self._old_claims.get(identity)
        held, now = before is not None and before.holds(path), path in self.claim(identity)
        if held != now:
            one = FieldSet.from_paths([path])
            self.hold(identity, self.claim(identity) | one if held else self.claim(identity) - one)

    def move(self, source: Identity, target: Identity) -> None:
        """One claim's paths into another, which is as recent as the later of the two."""
        self.hold(target, self.claim(target) | self.claim(source))
        self.hold(source, EMPTY)
        times = [self._times.get(identity) or _time(self._claim(identity)) for identity in (source, target)]
        self._times[target] = max(time or "" for time in times)

    def claims_as_before(self) -> None:
        """All of managedFields as it was before the request, to the letter."""
        self._as_before = True

    # Result

    @property
    def wholly_restored(self) -> bool:
        return self._as_before

    @property
    def touched(self) -> bool:
        """Whether anything was asked to be other than it came."""
        return self._as_before or bool(self._edited) or self.values is not self.came

    def rewritten(self) -> dict[str, Any]:
        """The object to store instead: shares with what came whatever is as it came."""
        metadata = self.values.get("metadata")
        entries = self._entries()
        if entries == (entries_of(self.values) or []) or not isinstance(metadata, dict):
            return dict(self.values)
        rest = {name: value for name, value in metadata.items() if name != "managedFields"}
        return {**self.values, "metadata": {**rest, **({"managedFields": entries} if entries else {})}}

    def _entries(self) -> list[Entry]:
        if self._as_before:
            return list(entries_of(self.old) or ())
        entries = {name: entry for name in self.identities() if (entry := self._entry(name)) is not None}
        if not self._edited:
            return list(entries.values())
        old = {identity: claim.entry for identity, claim in self._old_claims.items()}
        return list(old.values()) if entries == old else sorted(entries.values(), key=server_order)

    def _entry(self, identity: Identity) -> Entry | None:
        """As it stands in the request or stood before it, to the letter, wherever it holds the same as there."""
        new: Claim | None = self._new_claims.get(identity)
        old: Claim | None = self._old_claims.get(identity)
        edited = self._edited.get(identity)
        if edited is None:
            return new.entry if new is not None else None
        if not edited:
            return None
        time = self._times.get(identity)
        for claim in (old, new) if old is not new else (new,):
            same_version = claim is not None and (new is None or claim.api_version == new.api_version)
            if claim is not None and same_version and claim.fields == edited and time in (None, _time(claim)):
                return claim.entry
        like = new or old
        entry = dict(like.entry) if like is not None else self._made(identity)
        entry["fieldsV1"] = edited.to_fields_v1()
        if time:
            entry["time"] = time
        return entry

    def _made(self, identity: Identity) -> dict[str, Any]:
        request = self._request
        entry = {
            "manager": identity.manager,
            "operation": identity.operation,
            "apiVersion": identity.api_version or request.requested_version,
            "fieldsType": "FieldsV1",
        }
        return {**entry, "subresource": identity.subresource} if identity.subresource else entry

    def _claim(self, identity: Identity) -> Claim | None:
        found: Claim | None = self._new_claims.get(identity) or self._old_claims.get(identity)
        return found


def server_order(entry: Entry) -> tuple[str, str, str, str, str]:
    """The order in which the server lists claims (sortEncodedManagedFields in apimachinery): else it finds a change in
    every write that changes nothing.

    Times are RFC 3339 to the second in UTC, and sort as texts; none sorts first.
    """
    return (
        str(entry.get("operation", "")),
        str(entry.get("time") or ""),
        str(entry.get("manager", "")),
        str(entry.get("apiVersion", "")),
        str(entry.get("subresource", "")),
    )


def _time(claim: Claim | None) -> str | None:
    return claim.time if claim is not None else None


def item_prefixes(path: Steps) -> Iterable[Steps]:
    """The list items that a path leads through or to, the outermost first."""
    return (path[: at + 1] for at, step in enumerate(path) if step[:2] in ("k:", "v:"))


def key_names(step: str) -> tuple[str, ...]:
    return tuple(step_value(step))
