"""Which fields have an owner: one manager writes them, nobody else does, or nobody who could not be made an exception.

Whoever is not an owner and touched a field counts against it, wherever that was: what a policy would have refused must
be known, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from webhook.fields import FieldPath, Pattern
from webhook.report.evidence import Evidence, Name, Once, Place, Written, is_machine, often, subject_of, subjects
from webhook.report.suggest_patterns import Steps, Touched, around, drawn_together, pattern_of

MAX_USERS = 10  # of an owner, or of an exception: more are not known by their names, but by a group
MAX_NAMESPACES = 20
MAX_OWNERS = 20  # of one resource's fields: each is weighed against all that was seen
MAX_FIELDS = 150  # of one owner, likewise: maps with more keys are taken as a whole
MIN_EVENTS = 3  # of an owner that is no machine: what was done once or twice is no habit
_OF_OWNERS = ("change", "share", "ghost")  # events about a path that their owner's claim holds
_PEOPLE = ("kubectl", "before-first-apply", "ancient-changes")


@dataclass(frozen=True, slots=True)
class Refused:
    """What a suggestion would have refused, where that was asked for."""

    user: str
    manager: str
    events: int
    what: str  # a resource, or "" for the name itself


@dataclass(slots=True)
class Owner:
    """Who might own fields of one resource: a name, its users, and where it was seen to hold which paths."""

    name: Name
    operations: set[str] = field(default_factory=set)
    held: dict[FieldPath, set[tuple[str, str]]] = field(default_factory=dict)  # by path: namespace and name
    events: int = 0

    @property
    def applies(self) -> bool:
        """Whether its claims guard its fields: those of an Update are pushed out by ten other writers."""
        return self.operations != {"Update"}

    def is_by(self, one: Written) -> bool:
        """Whether the write was the owner's. A write under no known name is known by its user."""
        record = one.record
        if record.user not in self.name.bearers:
            return False
        if not record.manager:
            return True
        fits = len(self.operations) > 1 or "" in self.operations or record.operation in self.operations
        return record.manager == self.name.manager and fits

    @property
    def namespaces(self) -> set[str]:
        return {namespace for objects in self.held.values() for namespace, _ in objects}

    def matcher(self) -> dict[str, Any]:
        told: dict[str, Any] = {"manager": self.name.manager}
        if len(self.operations) == 1 and (operation := next(iter(self.operations))):
            told["operation"] = operation
        return told | {"subjects": subjects(self.name.bearers)}


@dataclass(slots=True)
class Rules:
    """What is suggested for one resource."""

    place: Place
    namespaces: list[str] | None
    rules: list[dict[str, Any]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # why, for people
    refused: list[Refused] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def leave_out(self, why: str) -> None:
        if why not in self.left_out:
            self.left_out.append(why)


def field_rules(evidence: Evidence, *, deny_seen: bool) -> Iterator[Rules]:
    """Resource by resource."""
    for place in evidence.places:
        written = evidence.at(place)
        every = _owners(written, evidence.names)
        owners = every[:MAX_OWNERS]
        namespaces = _namespaces(owners)
        here = [one for one in written if namespaces is None or one.record.namespace in namespaces]
        made = Rules(place, namespaces)
        if len(every) > MAX_OWNERS:
            made.leave_out(
                f"{place}: what {len(every) - MAX_OWNERS:,} managers hold who were seen less often than others"
            )
        for owner in owners:
            _suggest(owner, owners, here, made, deny_seen=deny_seen)
        yield made


def _owners(written: Iterable[Written], names: dict[str, Name]) -> list[Owner]:
    """Those who could be owners: applying machines first, then the busiest."""
    found: dict[str, Owner] = {}
    for one in written:
        record = one.record
        for manager, operation, events in _sides(one, names):
            if not _may_own(names[manager]):
                continue
            owner = found.setdefault(manager, Owner(names[manager]))
            owner.operations.add(operation)
            owner.events += events
            for path in one.paths:
                if path[0] != "f:status":
                    owner.held.setdefault(path, set()).add((record.namespace, record.name))
    owners = (owner for owner in found.values() if owner.held)
    return sorted(owners, key=_rank)


def _sides(one: Written, names: dict[str, Name]) -> Iterator[tuple[str, str, int]]:
    """The names that a record says hold its paths, by which operation, and how often they wrote so.

    What somebody else wrote under a name, and the claim that this left, is not the name's.
    """
    record = one.record
    writer, owner = names.get(record.manager), names.get(one.owner)
    is_borne = writer is not None and record.user in writer.bearers
    if record.event == "change" and is_borne:
        yield record.manager, record.operation, record.count
    is_own = owner is writer and not is_borne
    if record.event in _OF_OWNERS and owner is not None and not is_own and owner.claims(one.owner_operation):
        yield one.owner, one.owner_operation, 0


def _rank(owner: Owner) -> tuple[object, ...]:
    return not all(map(is_machine, owner.name.bearers)), not owner.applies, -owner.events, owner.name.manager


def _may_own(name: Name) -> bool:
    """Few users, all known; people's own tools own nothing, unless mostly machines use them."""
    if not name.is_telling or len(name.users) > MAX_USERS:
        return False
    machines = all(map(is_machine, name.bearers))
    return machines or (not name.manager.startswith(_PEOPLE) and name.events >= MIN_EVENTS)


def _namespaces(owners: Iterable[Owner]) -> list[str] | None:
    every = set().union(*(owner.namespaces for owner in owners))
    return None if "" in every or len(every) > MAX_NAMESPACES else sorted(every)


def _suggest(owner: Owner, owners: list[Owner], here: list[Written], made: Rules, *, deny_seen: bool) -> None:
    """Adds the rules of one owner: exceptions before the refusal."""
    others = Touched(one for one in here if not owner.is_by(one))
    found = _Fields()
    fields = _patterns_of(owner)
    if len(fields) > MAX_FIELDS:
        made.leave_out(f"{made.place}: {len(fields) - MAX_FIELDS:,} of the fields that {owner.name.manager} holds")
    for text, steps in fields[:MAX_FIELDS]:
        pattern = Pattern.parse(text)
        rivals = _rivals(owner, owners, pattern)
        if rivals and not (deny_seen and all(owners.index(owner) < owners.index(rival) for rival in rivals)):
            names = ", ".join(sorted({owner.name.manager, *(rival.name.manager for rival in rivals)}))
            made.leave_out(f"{made.place} {text}: held by {names}")
            continue
        against = others.by(pattern)
        if deny_seen:
            apart = [one for one in owners if one is not owner and one not in rivals]  # they hold it elsewhere
            lost = {id(one): one for one in against if not any(other.is_by(one) for other in apart)}
            against = [one for one in against if id(one) not in lost]
            found.lost |= lost
        if not found.add(text, steps, against, owner, owners):
            why = "too many others write it, or others whom no policy can name"
            made.leave_out(f"{made.place} {text}: {why if owner.applies else 'others write it too'}")
    if found.free or found.disputed:
        free = drawn_together(found.free, lambda wide: _is_alone(owner, owners, others, wide))
        made.rules += _rules(owner, found, free, made)
        made.refused += _refused(found.lost.values(), str(made.place))
        made.told.append(_why(owner, found))


def _patterns_of(owner: Owner) -> list[tuple[str, Steps]]:
    """What it holds, as patterns with the steps that they stand for."""
    paths: Iterable[Steps] = owner.held
    fields = {pattern_of(path): path for path in paths}
    if len(fields) > MAX_FIELDS:
        fields = {pattern_of(path): path for path in map(around, paths)}
    return sorted(fields.items())


def _rivals(owner: Owner, owners: Iterable[Owner], pattern: Pattern) -> list[Owner]:
    return [rival for rival in owners if rival is not owner and _meet(owner, rival, pattern)]


def _is_alone(owner: Owner, owners: Iterable[Owner], others: Touched, wide: Pattern) -> bool:
    """Whether an owner may have more than was seen of it: what it claims, where nobody else was seen at all."""
    return owner.applies and not others.by(wide) and not _rivals(owner, owners, wide)


@dataclass(slots=True)
class _Fields:
    """The patterns of one owner, and who else writes some of them."""

    free: list[Steps] = field(default_factory=list)
    disputed: list[str] = field(default_factory=list)
    excepted: set[str] = field(default_factory=set)
    lost: dict[int, Written] = field(default_factory=dict)

    def add(self, text: str, steps: Steps, against: list[Written], owner: Owner, owners: Iterable[Owner]) -> bool:
        """Whether a refusal, and exceptions for all who are against it, can be put into words."""
        if not against:
            self.free.append(steps)
            return True
        users = self.excepted | _users(against, owner, owners)
        if len(users) > MAX_USERS or not all(map(subject_of, users)) or not owner.applies:
            return False
        self.disputed.append(text)
        self.excepted = users
        return True


def _users(against: Iterable[Written], owner: Owner, owners: Iterable[Owner]) -> set[str]:
    """Who would have to be an exception. Whoever bears the name of a claim that lost a path will want it back."""
    known = {one.name.manager: one.name.bearers for one in owners if one is not owner}
    return {user for one in against for user in (one.record.user, *known.get(one.owner, ()))}


def _refused(lost: Iterable[Written], what: str) -> list[Refused]:
    counts: dict[tuple[str, str], Once] = {}
    for one in lost:
        key = (one.record.user, one.record.manager)
        counts.setdefault(key, Once()).add(one.record)
    return [Refused(user, manager, counts[user, manager].events, what) for user, manager in sorted(counts)]


def _meet(owner: Owner, rival: Owner, pattern: Pattern) -> bool:
    """Whether two owners hold one field of one object."""
    mine, theirs = (
        {place for path, objects in one.held.items() if pattern.touches(path) for place in objects}
        for one in (owner, rival)
    )
    return bool(mine & theirs)


def _rules(owner: Owner, found: _Fields, free: list[str], made: Rules) -> list[dict[str, Any]]:
    name = _rule_name(owner.name.manager, made)
    base = {"owners": [owner.matcher()]} | ({} if owner.applies else {"guard": "Matching"})
    rules: list[dict[str, Any]] = []
    if found.disputed:
        exception = {"subjects": subjects(found.excepted)}
        rules.append({"name": f"{name}-seen", "for": exception, "ownership": {"fields": found.disputed, **base}})
    fields = sorted(free + found.disputed)
    return [*rules, {"name": name, "ownership": {"fields": fields, **base, "onChange": "Deny"}}]


def _rule_name(manager: str, made: Rules) -> str:
    short = slug(manager, 50)
    taken = {rule["name"] for rule in made.rules}
    return next(
        name for number in range(1, 1000) if (name := short if number == 1 else f"{short}-{number}") not in taken
    )


def slug(text: str, longest: int) -> str:
    """A name that a rule or a policy can have.

    >>> slug("apiextensions.crossplane.io/composite", 20), slug("Ünï", 20), slug("…", 20)
    ('apiextensions-crossp', 'n', 'writer')
    """
    kept = "".join(char if char.isascii() and char.isalnum() else "-" for char in text.lower())
    return "-".join(part for part in kept.split("-") if part)[:longest].strip("-") or "writer"


def _why(owner: Owner, found: _Fields) -> str:
    who = ", ".join(user for user in often(owner.name.users) if user in owner.name.bearers)
    told = f"{owner.name.manager}: {who}"
    if found.disputed:
        told += (
            f"; {', '.join(sorted(found.excepted))} wrote {len(found.disputed)} of its fields too: excepted, for now"
        )
    return told
