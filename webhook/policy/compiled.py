"""Policies as evaluation sees them: small, frozen, with every text compiled once at load."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from webhook.fields.change import Requester, User
from webhook.fields.claims import Identity
from webhook.fields.fieldset import EMPTY, FieldSet
from webhook.fields.pattern import Pattern, glob


class Mode(StrEnum):
    """How far a policy may go: record; record and tell; act."""

    AUDIT = "Audit"
    WARN = "Warn"
    ENFORCE = "Enforce"

    def capped(self, cap: Mode) -> Mode:
        """The milder of the two.

        >>> Mode.ENFORCE.capped(Mode.AUDIT)
        <Mode.AUDIT: 'Audit'>
        """
        if self is Mode.AUDIT or cap is Mode.AUDIT:
            return Mode.AUDIT
        return Mode.WARN if self is Mode.WARN or cap is Mode.WARN else Mode.ENFORCE


class Action(StrEnum):
    """What a rule wants done."""

    DENY = "Deny"
    RESTORE = "Restore"
    REASSIGN = "Reassign"
    RELEASE = "Release"
    PRUNE = "Prune"
    RENAME = "Rename"

    @property
    def rewrites(self) -> bool:
        return self is not Action.DENY


@dataclass(frozen=True, slots=True)
class Glob:
    """A name in which `*` stands for any characters, `?` for one; everything else is literal.

    >>> Glob.compile("kubectl-*").matches("kubectl-edit")
    True
    """

    text: str
    regex: re.Pattern[str] | None  # None: the text is literal, compared as it is

    @classmethod
    def compile(cls, text: str) -> Glob:
        if "*" not in text and "?" not in text:
            return cls(text, None)
        if "*" not in text:
            return cls(text, re.compile(_one_each(text), re.DOTALL))
        return cls(text, glob(map(_one_each, text.split("*"))))

    def matches(self, name: str) -> bool:
        return name == self.text if self.regex is None else self.regex.fullmatch(name) is not None


def _one_each(text: str) -> str:
    return "".join("." if char == "?" else re.escape(char) for char in text)


@dataclass(frozen=True, slots=True)
class Subject:
    """One user, group or service account (`ns/name`), by glob. Compared with facts, never with names."""

    kind: Literal["user", "group", "serviceAccount"]
    name: Glob  # a service account's is kept as `system:serviceaccount:ns:name`

    def matches(self, user: User) -> bool:
        if self.kind == "group":
            return any(self.name.matches(group) for group in user.groups)
        return self.name.matches(user.name)


@dataclass(frozen=True, slots=True)
class Subjects:
    """Any of several subjects; none at all matches nobody."""

    any_of: tuple[Subject, ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{subject.kind} {subject.name.text}" for subject in self.any_of)

    def __bool__(self) -> bool:
        return bool(self.any_of)

    def match(self, user: User) -> bool:
        return any(subject.matches(user) for subject in self.any_of)


@dataclass(frozen=True, slots=True)
class ManagerMatcher:
    """Which claims are meant: manager by glob, and operation, subresource, users where given."""

    manager: Glob
    operation: Literal["Apply", "Update"] | None = None
    subresource: str | None = None  # None: any
    subjects: Subjects = Subjects()

    def __str__(self) -> str:
        return f"{self.manager.text} ({self.operation})" if self.operation else self.manager.text

    def matches_claim(self, identity: Identity) -> bool:
        """By name alone: a claim carries no user."""
        return (
            (self.operation is None or identity.operation == self.operation)
            and (self.subresource is None or identity.subresource == self.subresource)
            and self.manager.matches(identity.manager)
        )

    def matches_requester(self, requester: Requester, user: User) -> bool:
        """By name and user; an unknown manager by user alone (and never where no users are given)."""
        if self.subjects and not self.subjects.match(user):
            return False
        if requester.identity is None:
            return bool(self.subjects)
        return self.matches_claim(requester.identity)


class Managers:
    """A list of matchers, asked by name: a long list costs no more than a short one once a name is known."""

    __slots__ = ("_by_name", "matchers")

    def __init__(self, matchers: tuple[ManagerMatcher, ...]) -> None:
        self.matchers = matchers
        self._by_name: dict[str, tuple[ManagerMatcher, ...]] = {}

    def named(self, manager: str) -> tuple[ManagerMatcher, ...]:
        """The matchers whose glob means a name."""
        found = self._by_name.get(manager)
        if found is None:
            found = tuple(matcher for matcher in self.matchers if matcher.manager.matches(manager))
            if len(self._by_name) >= _KNOWN_NAMES:  # names are free text: anybody may send new ones
                self._by_name.clear()
            self._by_name[manager] = found
        return found

    def mean_claim(self, identity: Identity) -> bool:
        """Whether any of them means a claim."""
        named = self.named(identity.manager)
        return bool(named) and any_claim(named, identity)

    def mean(self, requester: Requester, user: User) -> bool:
        """Whether any of them means a requester who is known by name."""
        identity = requester.identity
        return identity is not None and any(
            matcher.matches_requester(requester, user) for matcher in self.named(identity.manager)
        )


_KNOWN_NAMES = 1024


def any_claim(matchers: Iterable[ManagerMatcher], identity: Identity) -> bool:
    """Whether any of the matchers means a claim."""
    for matcher in matchers:  # noqa: SIM110 (twice as fast, and asked for each claim of each request)
        if matcher.matches_claim(identity):
            return True
    return False


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A Kubernetes label selector: every requirement holds."""

    requirements: tuple[tuple[str, Literal["In", "NotIn", "Exists", "DoesNotExist"], frozenset[str]], ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, operator, values in self.requirements:
            value = labels.get(key)
            if operator == "In" and (value is None or value not in values):
                return False
            if operator == "NotIn" and value is not None and value in values:
                return False
            if operator == "Exists" and value is None:
                return False
            if operator == "DoesNotExist" and value is not None:
                return False
        return True


@dataclass(frozen=True, slots=True)
class ResourceMatcher:
    """Groups and resources, `*` for any; `version` is the one that the policy's patterns speak (None: preferred)."""

    groups: frozenset[str]
    resources: frozenset[str]
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a policy is about. Empty tuples and None match everything."""

    resources: tuple[ResourceMatcher, ...]
    namespaces: tuple[Glob, ...] = ()
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    managed_by: tuple[ManagerMatcher, ...] = ()
    managers: Managers = field(init=False, repr=False, compare=False)  # managed_by, by name
    selects: bool = field(init=False, repr=False, compare=False)  # whether labels decide

    def __post_init__(self) -> None:
        object.__setattr__(self, "managers", Managers(self.managed_by))
        labels = self.object_selector is not None or self.namespace_selector is not None
        object.__setattr__(self, "selects", labels)


@dataclass(frozen=True, slots=True)
class Exempt:
    """Whose requests, and which namespaces, a policy leaves alone."""

    subjects: Subjects = Subjects()
    namespaces: tuple[Glob, ...] = ()
    control_plane: bool = True


@dataclass(frozen=True, slots=True)
class OwnershipRule:
    """Some fields belong to some managers."""

    name: str
    for_subjects: Subjects | None  # None: the rule is for everyone
    fields: tuple[Pattern, ...]
    except_: tuple[Pattern, ...]
    owners: tuple[ManagerMatcher, ...]
    guard: Literal["Claimed", "Matching"]
    on_change: Action | None  # Deny | Restore | Reassign | None: recorded
    on_share: Action | None  # Release | Deny | None: recorded
    on_ghost: Action | None  # Prune | None: recorded
    leftovers: tuple[ManagerMatcher, ...]
    owning: Managers = field(init=False, repr=False, compare=False)  # owners, by name

    def __post_init__(self) -> None:
        object.__setattr__(self, "owning", Managers(self.owners))


@dataclass(frozen=True, slots=True)
class Binding:
    """A manager's name that only these users may write under."""

    manager: ManagerMatcher


@dataclass(frozen=True, slots=True)
class WritersRule:
    """Which manager names may write at all, and who may use them. `allow` None: every name."""

    name: str
    for_subjects: Subjects | None
    deny: tuple[ManagerMatcher, ...]
    allow: tuple[ManagerMatcher, ...] | None
    bind: tuple[Binding, ...]
    allowed: Managers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", Managers(self.allow or ()))


@dataclass(frozen=True, slots=True)
class IntegrityRule:
    """Claims are not edited by hand, `allow` and known migrations apart."""

    name: str
    for_subjects: Subjects | None
    allow: Subjects
    migrates: tuple[Glob, ...]
    on_tamper: Action | None  # Deny | Restore | None: recorded


@dataclass(frozen=True, slots=True)
class RenameRule:
    """Update claims under one of these names are to carry another."""

    name: str
    for_subjects: Subjects | None
    from_: tuple[Glob, ...]
    to: str


Rule = OwnershipRule | WritersRule | IntegrityRule | RenameRule


@dataclass(frozen=True, slots=True)
class Policy:
    """One loaded FieldPolicy."""

    name: str
    description: str
    mode: Mode
    match: Match
    exempt: Exempt
    rules: tuple[Rule, ...]
    scale_path: str | None = None  # where replicas stand in a custom resource; None: .spec.replicas
    source: str = ""  # file or object it came from, for messages to the operator
    ownership: tuple[OwnershipRule, ...] = field(init=False, repr=False, compare=False)
    others: tuple[Rule, ...] = field(init=False, repr=False, compare=False)
    for_everyone: bool = field(init=False, repr=False, compare=False)  # no rule is for some users only
    rewrites: bool = field(init=False, repr=False, compare=False)  # some rule asks for more than a refusal

    def __post_init__(self) -> None:
        object.__setattr__(self, "ownership", tuple(rule for rule in self.rules if isinstance(rule, OwnershipRule)))
        object.__setattr__(self, "others", tuple(rule for rule in self.rules if not isinstance(rule, OwnershipRule)))
        object.__setattr__(self, "for_everyone", all(rule.for_subjects is None for rule in self.rules))
        object.__setattr__(self, "rewrites", any(map(rewrites, self.rules)))


def rewrites(rule: Rule) -> bool:
    """Whether any action of a rule changes what is stored."""
    match rule:
        case OwnershipRule():
            actions: tuple[Action | None, ...] = (rule.on_change, rule.on_share, rule.on_ghost)
        case IntegrityRule():
            actions = (rule.on_tamper,)
        case RenameRule():
            actions = (Action.RENAME,)
        case WritersRule():
            actions = ()
    return any(action is not None and action.rewrites for action in actions)


EventKind = Literal["change", "share", "ghost", "writer", "impersonation", "tamper", "rename"]


class Event(NamedTuple):
    """One thing that one rule found."""

    kind: EventKind
    policy: Policy
    rule: str
    action: Action | None  # None: to be recorded only
    paths: tuple[str, ...] = ()  # in the server's text form and order; empty where names alone are meant
    owner: str = ""  # whose fields or name it is about, as `kustomize-controller (Apply)`
    note: str = ""  # what was found, where the kind and the owner do not say it all
    fields: FieldSet = EMPTY  # the same paths
    claims: tuple[Identity, ...] = ()  # those that an action takes paths from, or gives them back to

    def found_by(self) -> Rule:
        """The rule itself."""
        return next(rule for rule in self.policy.rules if rule.name == self.rule)


@dataclass(frozen=True, slots=True)
class Verdict:
    """All events that the policies found, in the order of policies, rules and paths. Before modes."""

    events: tuple[Event, ...] = ()


def globs(texts: Iterable[str]) -> tuple[Glob, ...]:
    return tuple(Glob.compile(text) for text in texts)
