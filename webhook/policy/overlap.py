"""Which globs, patterns, users and matches hold one another, or have something in common. For the linter alone.

`..._cover(a, b)` is True only when everything that b means is meant by a; `..._overlap(a, b)` is False only when
nothing can be meant by both. Where either cannot be known, the answer is the harmless one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from webhook.fields.path import Token, tokens
from webhook.fields.pattern import Pattern
from webhook.fields.steps import value_step
from webhook.policy.compiled import LabelSelector, ManagerMatcher, Match, Subject, Subjects

_WILD = {"*", "?"}


@lru_cache(maxsize=1024)
def _absorbing(glob: str, *, question: bool) -> re.Pattern[str]:
    parts = (".*" if c == "*" else "[^*]" if c == "?" and question else re.escape(c) for c in glob)
    return re.compile("".join(parts), re.DOTALL)


def globs_cover(a: str, b: str) -> bool:
    """Whether every name that glob b matches is matched by glob a.

    >>> globs_cover("kubectl-*", "kubectl-e*"), globs_cover("kubectl-?", "kubectl-*")
    (True, False)
    """
    return _absorbing(a, question=True).fullmatch(b) is not None


def globs_overlap(a: str, b: str) -> bool:
    """Whether some name is matched by both globs.

    >>> globs_overlap("kubectl-*", "*-edit"), globs_overlap("kubectl-*", "helm*")
    (True, False)
    """
    if a == b or not _WILD & set(a + b):
        return a == b
    row = _skip_stars(b, {0})
    for character in a:
        below: set[int] = set()
        if character == "*":
            below = set(range(min(row), len(b) + 1)) if row else set()
        else:
            for at in row:
                if at < len(b) and (b[at] == "*" or b[at] == "?" or character in ("?", b[at])):
                    below.add(at if b[at] == "*" else at + 1)
        row = _skip_stars(b, below)
    return len(b) in row


def _skip_stars(glob: str, at: set[int]) -> set[int]:
    out = set(at)
    for position in range(min(at, default=len(glob)), len(glob)):
        if position in out and glob[position] == "*":
            out.add(position + 1)
    return out


@lru_cache(maxsize=1024)
def steps(pattern: Pattern) -> tuple[Token, ...]:
    return tuple(tokens(pattern.text))


def patterns_cover(a: Pattern, b: Pattern) -> bool:
    """Whether every path that b selects is selected by a.

    >>> patterns_cover(Pattern.parse(".metadata.labels"), Pattern.parse(".metadata.labels.team"))
    True
    """
    above, below = steps(a), steps(b)
    return len(above) <= len(below) and all(_step_covers(x, y) for x, y in zip(above, below, strict=False))


def _step_covers(a: Token, b: Token) -> bool:
    if a.kind == "any":
        return True
    if a.kind != b.kind:
        return False
    if a.kind == "keys":
        return all(name in b.value and _value_covers(value, b.value[name]) for name, value in a.value.items())
    return _value_covers(a.value, b.value)


def _value_covers(a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return _absorbing(a, question=False).fullmatch(b) is not None
    return value_step(a) == value_step(b)


def all_covered(patterns: Sequence[Pattern], by: Sequence[Pattern]) -> bool:
    """Whether each pattern is covered by one of the others."""
    return all(any(patterns_cover(one, pattern) for one in by) for pattern in patterns)


def subjects_cover(a: Subjects, b: Subjects) -> bool:
    return all(any(_subject_covers(one, other) for one in a.any_of) for other in b.any_of)


def _subject_covers(a: Subject, b: Subject) -> bool:
    return (a.kind == "group") == (b.kind == "group") and globs_cover(a.name.text, b.name.text)


def _subjects_overlap(a: Subjects, b: Subjects) -> bool:
    if not a or not b:
        return True
    for one in a.any_of:
        for other in b.any_of:
            if "group" in (one.kind, other.kind) or globs_overlap(one.name.text, other.name.text):
                return True  # anyone may be in any group
    return False


def claims_cover(a: ManagerMatcher, b: ManagerMatcher) -> bool:
    """Whether a means every claim that b means. Claims are matched without users."""
    return (
        globs_cover(a.manager.text, b.manager.text)
        and a.operation in (None, b.operation)
        and a.subresource in (None, b.subresource)
    )


def managers_overlap(a: ManagerMatcher, b: ManagerMatcher) -> bool:
    """Whether one requester can be meant by both."""
    return (
        globs_overlap(a.manager.text, b.manager.text)
        and (a.operation is None or b.operation is None or a.operation == b.operation)
        and (a.subresource is None or b.subresource is None or a.subresource == b.subresource)
        and _subjects_overlap(a.subjects, b.subjects)
    )


def resources_overlap(a: Match, b: Match) -> bool:
    """Whether some resource is matched by both."""
    return any(
        _any_name(one.groups, other.groups) and _any_name(one.resources, other.resources)
        for one in a.resources
        for other in b.resources
    )


def _any_name(a: frozenset[str], b: frozenset[str]) -> bool:
    return "*" in a or "*" in b or bool(a & b)


def surely_meet(a: Match, b: Match) -> bool:
    """Whether some request is certain to be matched by both."""
    return (
        resources_overlap(a, b)
        and _namespaces_meet(a, b)
        and _selectors_meet(a.namespace_selector, b.namespace_selector)
        and _selectors_meet(a.object_selector, b.object_selector)
    )


def _namespaces_meet(a: Match, b: Match) -> bool:
    if not a.namespaces or not b.namespaces:
        return True
    return any(globs_overlap(one.text, other.text) for one in a.namespaces for other in b.namespaces)


def _selectors_meet(a: LabelSelector | None, b: LabelSelector | None) -> bool:
    return a is None or b is None or a == b
