"""Sightings: what one review found, as it is first written down, before it is folded. JSON, bounded, made in little time.

line = pack(decision.results, ticks(now), decision.results[0].user)
records = fold_lines([line]).values()
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from webhook.report.folding import MAX_PATH, MAX_TEXT, ResultLike, first_paths, fold, seen
from webhook.report.records import MAX_PATHS, Record
from webhook.report.ticks import moment


class Sighting(NamedTuple):
    """One result as it was written down."""

    policy: str
    rule: str
    kind: str
    resource: str
    namespace: str
    name: str
    manager: str | None
    operation: str | None
    user: str
    dry_run: bool
    outcome: str
    mode: str
    would: str
    owner: str
    paths: Sequence[str]


def _dumps(told: Any) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode()


def pack(
    results: Sequence[ResultLike], at: int, user: str | None = None, dumps: Callable[[Any], bytes] = _dumps
) -> bytes:
    """What was found at a time in ticks. `user` stands for the results' own, where given."""
    return dumps(
        [
            at,
            [
                (
                    result.policy,
                    result.rule,
                    result.kind,
                    result.resource,
                    result.namespace,
                    result.name,
                    result.manager,
                    result.operation,
                    (result.user if user is None else user)[: MAX_TEXT + 1],
                    result.dry_run,
                    result.outcome,
                    result.mode,
                    result.would,
                    result.owner[: MAX_TEXT + 1],
                    _bounded(result.paths),
                )
                for result in results
            ],
        ]
    )


def _bounded(paths: Sequence[str]) -> Sequence[str]:
    """As many as are kept, and as long, but for the one more character that tells folding that there was more."""
    few = paths if len(paths) <= MAX_PATHS else first_paths(paths)
    return few if sum(map(len, few)) <= MAX_PATH else [path[: MAX_PATH + 1] for path in few]


def fold_lines(lines: Iterable[bytes]) -> dict[str, Record]:
    """What many lines say, folded, by key. Whatever is not such a line says nothing."""
    together: dict[tuple[Any, ...], _Times] = {}
    for line in lines:
        try:
            at, found = json.loads(line)
            told = [(at // _DAY, *values[:-1], tuple(values[-1])) for values in found]
            for one in told:
                together.setdefault(one, _Times()).add(at)
        except (ValueError, TypeError, IndexError):
            continue
    return fold(_records(together))


def _records(together: Mapping[tuple[Any, ...], _Times]) -> Iterator[Record]:
    for (_, *values), times in together.items():
        try:
            once = seen(Sighting(*values), moment(times.last))
            days = dict.fromkeys(once.days, times.count)
            yield replace(once, count=times.count, first=moment(times.first), days=days)
        except (ValueError, TypeError, OverflowError):
            continue


class _Times:
    """When the same was seen on one day, and how often."""

    __slots__ = ("count", "first", "last")

    def __init__(self) -> None:
        self.count = self.first = self.last = 0

    def add(self, at: int) -> None:
        self.first = min(self.first, at) if self.count else at
        self.last = max(self.last, at) if self.count else at
        self.count += 1


_DAY = 86_400_000_000
