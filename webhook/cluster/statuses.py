"""What the status of a FieldPolicy says: whether it is in force, why not, and what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.cluster.api import Object
from webhook.cluster.discovery import ANY, Discovery, places, written
from webhook.cluster.resource import FieldProblem
from webhook.cluster.settling import LeftOut
from webhook.policy import Mode, Policy


@dataclass(frozen=True, slots=True)
class About:
    """What became of a policy: what is in force under its name, why not all of it is, and why not all is sent."""

    policy: Policy | None
    left_out: LeftOut | None = None
    unsent: str = ""  # empty where all is registered
    problems: tuple[FieldProblem, ...] = ()  # the linter's, of the resource by itself
    cap: Mode = Mode.ENFORCE  # the release's

    @property
    def mode(self) -> Mode | None:
        """As which it acts."""
        return self.policy.mode.capped(self.cap) if self.policy is not None else None


MAX_PROBLEMS = 20
MAX_TEXT = 1000


def status(resource: Object, about: About, discovery: Discovery, now: str) -> Object:
    """The status that a resource should have. `now` is RFC 3339; times stay as they are where nothing changed."""
    generation = int(resource.get("metadata", {}).get("generation", 0))
    before: Mapping[str, Any] = resource.get("status") or {}
    named, unserved = _resources(about.policy, discovery)
    in_force = about.policy is not None and about.left_out is None
    state, reason, message = _ready(about, unserved)
    condition = {
        "type": "Ready",
        "status": state,
        "reason": reason,
        "message": message[:MAX_TEXT],
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }
    made: Object = {
        "observedGeneration": generation,
        "conditions": [_since(condition, before.get("conditions") or ())],
        "matchedResources": named,
        "mode": str(about.mode or ""),
        "problems": _problems(about),
    }
    loaded = before.get("lastLoadTime")
    if in_force and not (loaded and before.get("observedGeneration") == generation and _was_in_force(before)):
        loaded = now
    if loaded is not None:
        made["lastLoadTime"] = loaded
    return made


def _ready(about: About, unserved: Sequence[str]) -> tuple[str, str, str]:
    """Whether it is in force, a word for machines, and a sentence."""
    if about.left_out is not None and about.left_out.earlier:
        return "False", "EarlierVersionInForce", f"it stays in force as it last was good: {_said(about.left_out)}"
    if about.left_out is not None or about.policy is None:
        return "False", "NotInForce", _said(about.left_out) if about.left_out else "it has not been read yet"
    if about.unsent:
        return "False", "NotRegistered", about.unsent
    if unserved:
        return "True", "NotServed", f"in force as soon as the API server serves {', '.join(unserved)}"
    if about.mode is not about.policy.mode:
        return "True", "InForce", f"it acts as {about.mode}: the release's mode is {about.cap}"
    return "True", "InForce", ""


def differs(resource: Object, wanted: Object) -> bool:
    """Whether the status is to be written."""
    before = resource.get("status") or {}
    return any(before.get(key) != value for key, value in wanted.items())


def _resources(policy: Policy | None, discovery: Discovery) -> tuple[list[str], list[str]]:
    """What a policy is about, and what of it the API server does not serve."""
    if policy is None:
        return [], []
    named = {place for matcher in policy.match.resources for place in places(matcher)}
    unserved = {place for place in named if ANY not in place and not discovery.of(*place)}
    return _texts(named), _texts(unserved)


def _texts(found: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(map(written, found))


def _said(left_out: LeftOut) -> str:
    return "; ".join(left_out.problems)


def _since(condition: Object, before: Iterable[Mapping[str, Any]]) -> Object:
    for one in before:
        if (one.get("type"), one.get("status")) == (condition["type"], condition["status"]):
            return {**condition, "lastTransitionTime": one.get("lastTransitionTime", condition["lastTransitionTime"])}
    return condition


def _was_in_force(before: Mapping[str, Any]) -> bool:
    reasons = {one.get("reason") for one in before.get("conditions") or () if one.get("type") == "Ready"}
    return bool(reasons) and reasons.isdisjoint({"NotInForce", "EarlierVersionInForce"})


def _problems(about: About) -> list[Object]:
    """The linter's, by field; then those that only come with other policies."""
    found = [
        {"severity": one.problem.severity, "field": one.path, "message": one.words[:MAX_TEXT]} for one in about.problems
    ]
    if about.left_out is not None and not any(one["severity"] == "error" for one in found):
        found += [{"severity": "error", "field": "", "message": text[:MAX_TEXT]} for text in about.left_out.problems]
    return found[:MAX_PROBLEMS]
