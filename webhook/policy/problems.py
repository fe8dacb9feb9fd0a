"""Problems of policy files: what is wrong, where, and what to do about it. The catalogue names every kind once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in one place. An error keeps a policy from loading, a warning never does.

    `other` names the policy beside which alone it is wrong. `text` and `caret` are there where a text in the file cannot be read: the text, and the offset of the fault in it.
    """

    severity: Severity
    file: str
    line: int
    column: int
    rule: str
    message: str
    advice: str = ""
    text: str | None = None
    caret: int | None = None
    other: str | None = None

    def __str__(self) -> str:
        advice = f" ({self.advice})" if self.advice else ""
        line = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}{advice} [{self.rule}]"
        if self.text is None or self.caret is None:
            return line
        return f"{line}\n  {self.text}\n  {' ' * self.caret}^"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem, as documented. `advice` is given wherever a problem brings none of its own."""

    rule: str
    severity: Severity
    meaning: str
    advice: str


def problem(
    rule: str,
    file: str,
    place: Place,
    message: str,
    *,
    advice: str | None = None,
    severity: Severity | None = None,
    text: str | None = None,
    caret: int | None = None,
) -> Problem:
    """A problem of a kind in the catalogue, which lends its severity and advice where none are given."""
    kind = CATALOGUE[rule]
    return Problem(
        severity=severity or kind.severity,
        file=file,
        line=place.line,
        column=place.column,
        rule=rule,
        message=message,
        advice=kind.advice if advice is None else advice,
        text=text,
        caret=caret,
    )


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each once, by place."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda p: (p.file, p.line, p.column, p.rule, p.message)))


_KINDS = (
    # the file
    Kind("unreadable-file", "error", "A file or folder cannot be read.", "check that it exists and may be read"),
    Kind("no-policies", "warning", "The paths given hold no policy at all.", "check the path, or the mount"),
    Kind("yaml-syntax", "error", "The text is not UTF-8, or not YAML.", "check indentation, quotes and colons"),
    Kind("yaml-limit", "error", "The file is larger, or nested deeper, than any policy needs.", "split it"),
    Kind("duplicate-key", "error", "A key stands twice in one mapping.", "keep one of the two"),
    Kind("wrong-kind", "error", "The document is not a FieldPolicy.", "keep other documents in files of their own"),
    # the shape
    Kind("unknown-key", "error", "A policy has no such key here.", "remove it"),
    Kind("missing-key", "error", "A key that is required is not there.", "add it"),
    Kind("wrong-type", "error", "The value is of another type than the key takes.", "see the reference of the key"),
    Kind("wrong-value", "error", "The value is none of those that the key takes.", "take one of those"),
    Kind("empty-value", "error", "A list or text is empty that may not be.", "give it a value, or remove the key"),
    Kind("rule-kind", "error", "A rule has none, or several, of ownership, writers, integrity, rename.", "one rule, one kind"),
    Kind("writers-shape", "error", "A writers rule has none of deny, allow and bind, or both deny and allow.", "list the names to deny, or the names to allow"),
    # the texts
    Kind("bad-name", "error", "A name is not one that Kubernetes or a report could carry.", "lower case letters, digits and dashes"),
    Kind("name-too-long", "error", "A manager's name is over 128 bytes: the API server refuses such.", "shorten it"),
    Kind("bad-glob", "error", "A glob holds what it can never match.", "only * and ? are special: any characters, one character"),
    Kind("bad-path", "error", "A path or pattern cannot be read.", "write paths as the API server prints them, such as .spec.replicas"),
    Kind("bad-resource", "error", "A group, version or resource is not one.", "take the plural from kubectl api-resources"),
    Kind("bad-selector", "error", "A label selector is not one that Kubernetes accepts.", "as in Kubernetes: matchLabels, matchExpressions"),
    Kind("bad-subject", "error", "A subject is not exactly one user, group or service account.", "write one entry for each"),
    # the sense
    Kind("duplicate-rule", "error", "Two rules of one policy have one name.", "give each rule its own name"),
    Kind("duplicate-policy", "error", "Two policies have one name.", "give each policy its own name"),
    Kind("unreachable-rule", "warning", "A rule can never decide: an earlier one, an exception or an exemption takes all it is about.", "put it first, or remove it"),
    Kind("unreachable-policy", "warning", "A policy exempts every namespace that it matches.", "change match.namespaces or exempt.namespaces"),
    Kind("owner-by-name", "warning", "In Enforce an owner is known by name alone, and names are free text. An error with `--strict`.", "add subjects: the user, group or serviceAccount behind the name"),
    Kind("update-owner-claimed", "warning", "An Update owner's fields are guarded by its claim, which ten writes by anyone make vanish.", "use guard: Matching, or let the owner use server-side apply"),
    Kind("string-data", "warning", "A rule guards `.stringData`, which the API server never stores.", "guard .data, with guard: Matching"),
    Kind("by-position", "warning", "A pattern names a list item by its position, by which no claim ever holds one.", 'name it by its keys, such as containers[name="app"], or mean all of them: containers[*]'),
    Kind("never-claimed", "warning", "A pattern names a field that no claim ever holds and that is never judged.", "remove it"),
    Kind("reassign-for-everyone", "error", "Reassign without `for.subjects` lets everyone change what the owner owns. A warning unless the mode is Enforce.", "add for.subjects: the people who may break the glass"),
    Kind("ghost-without-apply", "warning", "`onGhost` is set, but no owner applies, and only an apply leaves ghosts.", "add an owner with operation: Apply, or remove onGhost"),
    Kind("rename-apply", "error", "Apply claims are never renamed: it breaks their client.", "remove operation, or say Update"),
    Kind("rename-to-owner", "error", "Claims would be renamed to the name of an owner or of a bound writer.", "choose a name that nobody owns fields under"),
    Kind("subjects-unused", "warning", "`subjects` stand where only claims are looked at, and a claim carries no user.", "remove subjects"),
    Kind("selector-unguarded", "warning", "Whoever may change a label of `objectSelector` takes the object out of the policy.", "guard the label with an ownership rule for everyone"),
    Kind("selector-scale", "warning", "A policy with `objectSelector` does not match writes of `/scale`, which carry no labels.", "match by namespaces or managedBy, or guard replicas in another policy"),
    Kind("namespace-labels", "warning", "`namespaceSelector` asks for labels that only a cluster knows; policies read from files know a namespace's name alone.", "use namespaces, or the label kubernetes.io/metadata.name"),
    Kind("control-plane", "warning", "`controlPlane: false` judges the control plane too: a cluster may not heal while fieldwarden is down.", "leave the control plane exempt"),
    Kind("version-unused", "warning", "A version is named for any group or resource, where patterns are read against every version.", "name the group and resources, or remove version"),
    Kind("contradiction", "error", "Two policies guard one pattern for owners that have nobody in common, and both deny. A warning unless both are in Enforce.", "give both the same owner, or narrow one of them"),
)  # fmt: skip

CATALOGUE = {kind.rule: kind for kind in _KINDS}
STRICT = frozenset({"owner-by-name"})
"""The kinds of warning that `--strict` makes errors."""
