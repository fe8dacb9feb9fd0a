"""What the status of a FieldPolicy says: whether it is in force, why not, and what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from webhook.cluster.api import Object
from webhook.cluster.discovery import ANY, Discovery, places
from webhook.cluster.resource import problems_of
from webhook.cluster.settling import LeftOut
from webhook.policy import Policy

MAX_PROBLEMS = 20
MAX_TEXT = 1000


def status(
    resource: Object, policy: Policy | None, left_out: LeftOut | None, discovery: Discovery, now: str, *, strict: bool
) -> Object:
    """The status that a resource should have. `policy` is what is in force under its name; `now` is RFC 3339.

    Times stay as they are where nothing changed.
    """
    generation = int(resource.get("metadata", {}).get("generation", 0))
    before: Mapping[str, Any] = resource.get("status") or {}
    about, unserved = _resources(policy, discovery)
    is_ready = policy is not None and left_out is None
    if is_ready:
        reason, message = ("InForce", "") if not unserved else ("NotServed", _not_served(unserved))
    elif left_out is not None and left_out.earlier:
        reason, message = "EarlierVersionInForce", f"it stays in force as it last was good: {_said(left_out)}"
    else:
        reason, message = "NotInForce", _said(left_out) if left_out else "it has not been read yet"
    condition = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "reason": reason,
        "message": message[:MAX_TEXT],
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }
    made: Object = {
        "observedGeneration": generation,
        "conditions": [_since(condition, before.get("conditions") or ())],
        "matchedResources": about,
        "problems": _problems(resource, left_out, strict=strict),
    }
    if is_ready:
        loaded = before.get("lastLoadTime") if _was_ready(before, generation) else None
        made["lastLoadTime"] = loaded or now
    elif "lastLoadTime" in before:
        made["lastLoadTime"] = before["lastLoadTime"]
    return made


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
    return sorted(f"{resource}.{group}" if group else resource for group, resource in found)


def _not_served(unserved: Sequence[str]) -> str:
    return f"in force as soon as the API server serves {', '.join(unserved)}"


def _said(left_out: LeftOut) -> str:
    return "; ".join(left_out.problems)


def _since(condition: Object, before: Iterable[Mapping[str, Any]]) -> Object:
    for one in before:
        if (one.get("type"), one.get("status")) == (condition["type"], condition["status"]):
            return {**condition, "lastTransitionTime": one.get("lastTransitionTime", condition["lastTransitionTime"])}
    return condition


def _was_ready(before: Mapping[str, Any], generation: int) -> bool:
    return before.get("observedGeneration") == generation and any(
        (one.get("type"), one.get("status")) == ("Ready", "True") for one in before.get("conditions") or ()
    )


def _problems(resource: Object, left_out: LeftOut | None, *, strict: bool) -> list[Object]:
    """The linter's, by field; then those that only come with other policies."""
    found = [
        {"severity": one.problem.severity, "field": one.path, "message": one.words[:MAX_TEXT]}
        for one in problems_of(resource, strict=strict)
    ]
    if left_out is not None and not any(one["severity"] == "error" for one in found):
        found += [{"severity": "error", "field": "", "message": text[:MAX_TEXT]} for text in left_out.problems]
    return found[:MAX_PROBLEMS]
