"""What the figures are taken on: captured reviews, and the shipped policies as if enforced."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from webhook.policy import Mode, Policy, PolicySet, load

ROOT = Path(__file__).parent.parent
REVIEWS = ROOT / "tests" / "reviews"


def review(name: str) -> bytes:
    return (REVIEWS / f"{name}.json").read_bytes()


def all_reviews() -> list[bytes]:
    return [path.read_bytes() for path in sorted(REVIEWS.glob("*.json")) if path.stem != "index"]


def shipped() -> tuple[Policy, ...]:
    """The shipped policies, in Enforce."""
    loaded = load([ROOT / "policies"])
    if loaded.policies is None:
        raise SystemExit("\n".join(map(str, loaded.problems)))
    return tuple(replace(policy, mode=Mode.ENFORCE) for policy in loaded.policies.policies)


def interleaved(candidates: dict[str, Callable[[], Callable[[], object]]], rounds: int) -> dict[str, float]:
    """The median time of each candidate in microseconds, taken in turn so that all see the same machine.

    A candidate prepares one call, untimed, and returns it: nothing that a call caches is there for the next.
    """
    times: dict[str, list[int]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, prepare in candidates.items():
            call = prepare()
            begin = time.perf_counter_ns()
            call()
            times[name].append(time.perf_counter_ns() - begin)
    return {name: statistics.median(taken) / 1000 for name, taken in times.items()}


def policy_set(policies: Iterable[Policy]) -> PolicySet:
    return PolicySet(tuple(policies))
