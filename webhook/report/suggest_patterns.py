"""Patterns for paths: any item of each list, whole maps, and one above many, as far as nobody else is meant with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from webhook.fields import FieldPath, Pattern
from webhook.report.evidence import Written

MAX_PATTERNS = 20  # of one rule, where fewer can be had
Steps = tuple[str, ...]

_MAPS = (("f:metadata", "f:labels"), ("f:metadata", "f:annotations"), ("f:data",), ("f:binaryData",))


def pattern_of(steps: Iterable[str]) -> str:
    """The text of a path's pattern.

    >>> pattern_of(FieldPath.parse('.spec.containers[name="app"].image'))
    '.spec.containers[*].image'
    """
    return "".join("[*]" if step[:2] in ("k:", "v:", "i:") else str(FieldPath((step,))) for step in steps)


class Touched:
    """What was written, by path: a pattern is compared with each path once."""

    def __init__(self, written: Iterable[Written]) -> None:
        self._by_path: dict[FieldPath, list[Written]] = {}
        self._always: list[Written] = []  # it is not known what else they touched
        for one in written:
            if one.more:
                self._always.append(one)
            for path in one.paths:
                self._by_path.setdefault(path, []).append(one)

    def by(self, pattern: Pattern) -> list[Written]:
        found = {id(one): one for one in self._always}
        for path, written in self._by_path.items():
            if pattern.touches(path):
                found.update((id(one), one) for one in written)
        return list(found.values())


def drawn_together(paths: Iterable[Steps], may: Callable[[Pattern], bool]) -> list[str]:
    """Patterns that mean all of the paths: whole maps, and where there are too many, what lies above, if that `may` be."""
    found = {_whole(path, may) for path in paths}
    refused: set[Steps] = set()
    while len(set(map(pattern_of, found))) > MAX_PATTERNS:
        above = {steps[:-1] for steps in found if len(steps) > _least(steps)} - refused
        if not above:
            break
        deepest = max(map(len, above))
        for parent in [steps for steps in above if len(steps) == deepest]:
            if may(Pattern.parse(pattern_of(parent))):
                found = {steps for steps in found if steps[:deepest] != parent} | {parent}
            else:
                refused.add(parent)
    texts = set(map(pattern_of, found))
    return sorted(text for text in texts if not any(_covers(other, text) for other in texts))


def _whole(path: Steps, may: Callable[[Pattern], bool]) -> Steps:
    whole = around(path)
    return whole if whole != path and may(Pattern.parse(pattern_of(whole))) else tuple(path)


def around(path: Steps) -> Steps:
    """The map of labels, annotations or data that a path leads into; else the path."""
    return next((steps for steps in _MAPS if path[: len(steps)] == steps), tuple(path))


def _least(steps: Steps) -> int:
    """All of `.metadata` is nobody's."""
    return 2 if steps[0] == "f:metadata" else 1


def _covers(wide: str, text: str) -> bool:
    return wide != text and text.startswith(wide) and text[len(wide)] in ".["
