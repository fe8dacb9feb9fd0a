"""What records prove about names and fields: which users stand behind a manager's name, and who writes which paths where.

Folded records that no longer tell users, names or resources apart prove nothing, and are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from webhook.fields import FieldPath, FieldsError
from webhook.policy import texts
from webhook.report.asking import MORE, is_cut
from webhook.report.flapping import claimant
from webhook.report.folding import ANY, is_folded
from webhook.report.records import Record

_ACCOUNT = "system:serviceaccount:"
_HASHED = re.compile(r"user-[0-9a-f]{16}")
_OPERATION = re.compile(r".* \((Apply|Update)(?:, [^()]*)?\)", re.DOTALL)


class Place(NamedTuple):
    """A resource as policies name it: without its subresources, which come with it."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


def place_of(resource: str) -> Place | None:
    """None where a folded record no longer tells, and for what is none.

    >>> place_of("deployments.apps/scale"), place_of("services/status")
    (Place(group='apps', resource='deployments'), Place(group='', resource='services'))
    """
    if resource in (ANY, ""):
        return None
    name, _, group = resource.partition("/")[0].partition(".")
    return Place(group, name) if _stands(texts.group_name, group) and _stands(texts.resource_name, name) else None


def subject_of(user: str) -> dict[str, str] | None:
    """As a policy names the user; None for a name that is hashed, cut or folded, or that would be read as a glob."""
    if not user or "*" in user or "?" in user or user.endswith(MORE) or _HASHED.fullmatch(user):
        return None
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
    if user.startswith(_ACCOUNT) and _stands(texts.service_account_glob, f"{namespace}/{name}"):
        return {"serviceAccount": f"{namespace}/{name}"}
    return {"user": user} if _stands(texts.user_glob, user) else None


def is_machine(user: str) -> bool:
    return user.startswith("system:")


@dataclass(slots=True)
class Once:
    """How many events were seen: what several rules say of one writer's writes of one object counts once."""

    events: int = 0
    _by_rule: dict[tuple[object, ...], dict[tuple[str, str, str], int]] = field(default_factory=dict)

    def add(self, record: Record) -> int:
        """By how many there are more."""
        thing = (record.resource, record.namespace, record.name, record.dry_run)
        counts = self._by_rule.setdefault((*thing, record.user, record.manager, record.operation), {})
        rule, before = (record.policy, record.rule, record.event), max(counts.values(), default=0)
        counts[rule] = counts.get(rule, 0) + record.count
        more = max(0, counts[rule] - before)
        self.events += more
        return more


@dataclass
class Name:
    """A manager's name, and the users seen behind it. It is asked once all records are weighed, and then very often."""

    manager: str
    users: dict[str, int] = field(default_factory=dict)  # how often each
    operations: dict[str, set[str]] = field(default_factory=dict)  # the users who wrote by each
    places: set[Place] = field(default_factory=set)

    @cached_property
    def events(self) -> int:
        return sum(self.users.values())

    @cached_property
    def bearers(self) -> set[str]:
        """The users who are taken to bear it rightly: where most of its events are by machines, these alone."""
        machines = {user for user in self.users if is_machine(user)}
        return machines if self.by_machines * 2 > self.events else set(self.users)

    def claims(self, operation: str) -> bool:
        """Whether a claim of the name, by an operation, is its bearers' doing, as far as anything tells who wrote so."""
        return not self.bearers.isdisjoint(self.operations.get(operation, self.bearers))

    @cached_property
    def is_telling(self) -> bool:
        """Whether a policy can name the manager and each of the users."""
        return can_be_named(self.manager) and all(subject_of(user) for user in self.users)

    @cached_property
    def by_machines(self) -> int:
        return sum(count for user, count in self.users.items() if is_machine(user))


def can_be_named(manager: str) -> bool:
    """Whether a policy can mean this manager and no other."""
    if not manager or re.search(r"[*?]", manager) or manager.endswith(MORE):
        return False
    return _stands(texts.manager_glob, manager)


def _stands(check: Callable[[str], str], text: str) -> bool:
    """Whether a text can stand in a policy."""
    try:
        return bool(check(text)) or not text
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Written:
    """A record about paths, read once: who touched what, and whose claim it was about."""

    record: Record
    place: Place
    paths: tuple[FieldPath, ...]
    more: bool  # and others, which the record does not hold
    owner: str  # a manager; "" for none
    owner_operation: str


@dataclass(slots=True)
class Evidence:
    """All that is proved."""

    names: dict[str, Name]
    written: list[Written]
    folded: Once = field(default_factory=Once)  # what no longer tells
    every: Once = field(default_factory=Once)

    def at(self, place: Place) -> list[Written]:
        return [one for one in self.written if one.place == place]

    @property
    def places(self) -> list[Place]:
        return sorted({one.place for one in self.written})


def weigh(records: Iterable[Record]) -> Evidence:
    found = Evidence({}, [])
    read: dict[str, FieldPath | None] = {}
    for record in records:
        more = found.every.add(record)
        place = place_of(record.resource)
        if place is None or is_folded(record):
            found.folded.add(record)
            continue
        if record.manager:
            name = found.names.setdefault(record.manager, Name(record.manager))
            name.users[record.user] = name.users.get(record.user, 0) + more
            name.operations.setdefault(record.operation, set()).add(record.user)
            name.places.add(place)
        if record.paths:
            found.written.append(_written(record, place, read))
    return found


def _written(record: Record, place: Place, read: dict[str, FieldPath | None]) -> Written:
    for text in record.paths:
        if text not in read:
            read[text] = _path(text)
    paths = tuple(path for text in record.paths if (path := read[text]) is not None)
    more = is_cut(record) or len(paths) < len(record.paths)
    operation = _OPERATION.fullmatch(record.owner)
    return Written(record, place, paths, more, claimant(record.owner), operation.group(1) if operation else "")


def _path(text: str) -> FieldPath | None:
    try:
        return FieldPath.parse(text)
    except (FieldsError, ValueError, RecursionError):
        return None


def subjects(users: Iterable[str]) -> list[dict[str, str]]:
    """In order; users that no policy can name are left out."""
    return [subject for user in sorted(users) if (subject := subject_of(user)) is not None]


def often(users: Mapping[str, int]) -> list[str]:
    """The most frequent first."""
    return sorted(users, key=lambda user: (-users[user], user))
