"""Writes as an API server would carry them out, in memory: values, claims and their times."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.histories.shapes import Kind, Object
from tests.rewriting_laws import schema
from tests.rewriting_laws.schema import NOTHING, Paths
from webhook.fields import FieldPath, FieldSet, Identity, ManagedFields


class Entry(NamedTuple):
    """One claim. `time` is in seconds; 0 is none."""

    paths: Paths
    version: str
    time: int


Claims = Mapping[Identity, Entry]


@dataclass(frozen=True, slots=True)
class State:
    """An object between two writes. `manifests` is what each applier has in its Git."""

    kind: Kind
    values: Object
    claims: Claims = field(default_factory=dict)
    manifests: Mapping[str, Object] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return str(self.values["apiVersion"])

    def shown(self) -> Object:
        """The object as reviews show it."""
        shown = copy.deepcopy(self.values)
        if self.claims:
            shown["metadata"]["managedFields"] = entries_of(self.claims)
        return shown


def created(kind: Kind, values: Object, me: Identity, time: int) -> State:
    """A first write, by an apply or an update."""
    pieces = schema.flat(kind, values)
    is_apply = me.operation == "Apply"
    entry = Entry(pieces.applied if is_apply else pieces.all, str(values["apiVersion"]), time)
    return State(kind, values, {me: entry}, {me.manager: copy.deepcopy(values)} if is_apply else {})


def applied(state: State, manager: str, manifest: Object, time: int) -> State:
    """A forced apply: its claim is exactly what it applied, and what it alone had and dropped goes."""
    me = Identity(manager, "Apply")
    before = dict(state.claims)
    if not before:
        rest = schema.flat(state.kind, state.values).applied
        before = {Identity("before-first-apply", "Update", "", state.version): Entry(rest, state.version, time)}
    others = {name: entry for name, entry in before.items() if name != me}
    claim = schema.flat(state.kind, manifest).applied
    values = schema.merged(state.kind, copy.deepcopy(state.values), manifest)
    held = claim | frozenset(path for entry in others.values() for path in entry.paths)
    dropped = before.get(me, Entry(NOTHING, "", 0)).paths - claim
    for path in sorted(dropped, key=len, reverse=True):
        if not schema.reaches(held, path) and not schema.is_key(path):
            schema.remove(values, path, held)
    written, removed = schema.difference(state.kind, state.values, values)
    after = {name: _less(entry, written | removed) for name, entry in others.items()}
    after[me] = _moved(before.get(me), claim, state.version, time)
    manifests = {**state.manifests, manager: copy.deepcopy(manifest)}
    return replace(state, values=values, claims=_kept(after), manifests=manifests)


def updated(state: State, me: Identity, values: Object, time: int, claims: Claims | None = None) -> State:
    """An update takes what it writes from everybody. `claims` are those that its body brought, if any."""
    before = state.claims if claims is None else claims
    if not before:
        return replace(state, values=values, claims={})
    written, removed = schema.difference(state.kind, state.values, values)
    after = {name: _less(entry, written | removed) for name, entry in before.items() if name != me}
    mine = before.get(me)
    held = ((mine.paths if mine else NOTHING) - removed) | written
    after[me] = _moved(mine, held, state.version, time)
    return replace(state, values=values, claims=_kept(after))


def entries_of(claims: Claims) -> list[Object]:
    """managedFields, in the server's order."""
    return sorted((_entry(name, entry) for name, entry in claims.items()), key=order)


def claims_of(entries: Iterable[Object]) -> Claims:
    """What a server reads in entries that a client sent: of two with one identity the last, empty ones not at all."""
    found = {}
    for claim in ManagedFields.parse([entry for entry in entries if entry.get("operation")]).claims():
        time = int(claim.time[-3:-1]) if claim.time else 0
        found[claim.identity] = Entry(frozenset(map(tuple, claim.fields)), claim.api_version, time)
    return _kept(found)


def order(entry: Object) -> tuple[str, ...]:
    """The server's: Apply before Update, then by time (none is first), then by name."""
    return tuple(entry.get(key) or "" for key in ("operation", "time", "manager", "apiVersion", "subresource"))


def _entry(name: Identity, entry: Entry) -> Object:
    made = {
        "manager": name.manager,
        "operation": name.operation,
        "apiVersion": entry.version,
        "fieldsType": "FieldsV1",
        "fieldsV1": FieldSet.from_paths(map(FieldPath, entry.paths)).to_fields_v1(),
    }
    if entry.time:
        made["time"] = f"2024-01-01T00:00:{entry.time:02}Z"
    if name.subresource:
        made["subresource"] = name.subresource
    return made


def _less(entry: Entry, gone: Paths) -> Entry:
    return entry._replace(paths=entry.paths - gone)


def _kept(claims: Claims) -> Claims:
    return {name: entry for name, entry in claims.items() if entry.paths}


def _moved(before: Entry | None, held: Paths, version: str, time: int) -> Entry:
    """A claim's time is that of its last movement."""
    return before if before is not None and before.paths == held else Entry(held, version, time)
