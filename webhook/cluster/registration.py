"""What the API server is to ask about: webhook rules and matchConditions, from the policies alone.

Only what some policy can judge is sent. A write is asked about in the version that the policies' patterns speak
(`matchPolicy: Equivalent` has the API server convert it), in any version where a policy says `*`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.cluster.discovery import ANY, Discovery, matchers, places, written
from webhook.cluster.report_objects import FORMATS
from webhook.fields import FieldPath
from webhook.policy import Mode, Policy, PolicySet
from webhook.policy.compiled import OwnershipRule, RenameRule, Rule, rewrites
from webhook.policy.control_plane import ALL_USERS, GROUP
from webhook.policy.evaluate import needs_claims
from webhook.policy.rules_ownership import REPLICAS

Object = dict[str, Any]
Place = tuple[str, str]
"""A group and a plural name, either of which may be `*`."""

MAX_CONDITIONS = 64

NEVER: Mapping[str, frozenset[str]] = {
    "authentication.k8s.io": frozenset({ANY}),  # token reviews: questions, which store nothing
    "authorization.k8s.io": frozenset({ANY}),  # access reviews
    "coordination.k8s.io": frozenset({ANY}),  # leases: who leads, and which nodes live
    "events.k8s.io": frozenset({"events"}),
    "": frozenset({"events"}),
    **{form.group: frozenset({form.plural, form.cluster_plural}) for form in FORMATS.values()},
}
"""Never asked about, whatever a policy says: without them a cluster stands still, and nobody owns fields of them. Reports
are such too: of what is found in a report's write there would be a report, and so on."""

_CREATE, _UPDATE = "CREATE", "UPDATE"
_NO_CONTROL_PLANE, _NO_NODE, _NOTHING_BUSY = "not-the-control-plane", "not-a-node", "not-a-lease-event-report-or-review"
CONDITIONS = frozenset({_NO_CONTROL_PLANE, _NO_NODE, _NOTHING_BUSY})
"""Names of the conditions that are ours."""


@dataclass(frozen=True, slots=True)
class Rules:
    """`webhooks[].rules` of the two calls, and sentences about policies that cannot all be served as they are."""

    validating: list[Object]
    mutating: list[Object]
    doubts: tuple[str, ...] = ()


def rules(policies: PolicySet, discovery: Discovery, cap: Mode = Mode.ENFORCE) -> Rules:
    """The least that lets every policy judge, and rewrite, what it is about; the same for the same policies.

    `cap` is the server's mode: nothing is rewritten below Enforce. Ask anew when policies or custom resources change.
    """
    asked: dict[str, dict[Place, set[str]]] = {"validating": {}, "mutating": {}}
    doubts: list[str] = []
    for policy in policies.policies:
        wanted = {"validating": _judged(policy), "mutating": _rewritten(policy, cap)}
        for place in _places(policy):
            if _is_never(place):
                doubts.append(f"{policy.name}: writes of {written(place)} are never asked about")
                continue
            for call, parts in wanted.items():
                asked[call].setdefault(place, set()).update(parts)
    versions = {place: _version(place, policies, discovery, doubts) for place in sorted(asked["validating"])}
    return Rules(_written(asked["validating"], versions), _written(asked["mutating"], versions), tuple(doubts))


def conditions(policies: PolicySet) -> list[Object]:
    """`webhooks[].matchConditions` of both calls: the control plane is not asked about, unless a policy judges it.

    So a cluster heals while nobody answers. What is never asked about is left out where a `*` would mean it too.
    """
    found = []
    if all(policy.exempt.control_plane for policy in policies.policies):
        found.append(_condition(_NO_CONTROL_PLANE, _is_control_plane()))
        found.append(_condition(_NO_NODE, f"has(request.userInfo.groups) && {_text(GROUP)} in request.userInfo.groups"))
    meant = [place for matcher in matchers(policies) for place in places(matcher) if ANY in place]
    never = [text for group, resources in NEVER.items() for text in _is_of(group, resources, meant)]
    if never:
        found.append(_condition(_NOTHING_BUSY, " || ".join(never)))
    return found


# What of a resource a policy needs: CREATE and UPDATE of the resource itself, and updates of its subresources.

_ALL_BELOW, _SCALE = "/*", "/scale"


def _judged(policy: Policy) -> set[str]:
    """Ownership looks at updates only; names are given on the resource itself; creations below it are other kinds."""
    parts = {_UPDATE}
    if policy.others:
        parts.add(_CREATE)
    if any(not isinstance(rule, RenameRule) for rule in policy.rules):
        parts.add(_ALL_BELOW)
    return parts


def _rewritten(policy: Policy, cap: Mode) -> set[str]:
    """What the mutating call may do something about, or is alone in seeing: claims on replicas at `/scale`."""
    in_force = policy.mode.capped(cap) is Mode.ENFORCE
    parts = set()
    if in_force and policy.rewrites:
        parts.add(_UPDATE)
        if any(map(rewrites, policy.others)):
            parts.add(_CREATE)
    if policy.match.object_selector is None and any(_is_of_scale(policy, rule, in_force) for rule in policy.rules):
        parts.add(_SCALE)
    return parts


def _is_of_scale(policy: Policy, rule: Rule, in_force: bool) -> bool:
    if isinstance(rule, RenameRule):
        return False
    if isinstance(rule, OwnershipRule):
        replicas = REPLICAS if policy.scale_path is None else FieldPath.parse(policy.scale_path)
        if not any(pattern.touches(replicas) for pattern in rule.fields):
            return False
    return needs_claims(policy, rule) or (in_force and rewrites(rule))


def _places(policy: Policy) -> list[Place]:
    return sorted({place for matcher in policy.match.resources for place in places(matcher)})


def _is_never(place: Place) -> bool:
    group, resource = place
    return bool(NEVER.get(group, frozenset()) & {ANY, resource})


def _version(place: Place, policies: PolicySet, discovery: Discovery, doubts: list[str]) -> str:
    """The one version that patterns speak about a resource; `*` where that is not to be known."""
    if ANY in place:
        return ANY
    served = discovery.of(*place)
    spoken = [
        (matcher.version or (served[0] if served else ANY), policy.name)
        for policy in policies.policies
        for matcher in policy.match.resources
        if place in places(matcher)
    ]
    named = sorted({version for version, _ in spoken} - {ANY})
    usable = [version for version in served if version in named] if served else named
    for version in named:
        if served and version not in served:
            doubts.append(f"{_who(spoken, version)}: {written(place)} is not served in {version}")
    if len(named) > 1:
        said = ", ".join(f"{version} ({_who(spoken, version)})" for version in named)
        doubts.append(f"{written(place)} is asked about in {(usable or [ANY])[0]} alone, and policies speak {said}")
    return usable[0] if usable else ANY


def _who(spoken: Iterable[tuple[str, str]], version: str) -> str:
    return ", ".join(sorted({name for spoke, name in spoken if spoke == version}))


# Rules


def _written(asked: Mapping[Place, set[str]], versions: Mapping[Place, str]) -> list[Object]:
    """Rules for what is asked, less what another of them asks anyway."""
    grouped: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for place, parts in asked.items():
        needed = {part for part in parts if not any(_asks(asked, other, part) for other in _around(place, asked))}
        for operations, resources in _resources(place[1], needed):
            grouped.setdefault((place[0], versions[place], operations), []).extend(resources)
    return [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": list(operations),
            "resources": sorted(resources),
        }
        for (group, version, operations), resources in sorted(grouped.items())
    ]


def _around(place: Place, asked: Iterable[Place]) -> Iterator[Place]:
    """Other places that mean all of a place."""
    group, resource = place
    for other in asked:
        if other != place and other[0] in (ANY, group) and other[1] in (ANY, resource):
            yield other


def _asks(asked: Mapping[Place, set[str]], place: Place, part: str) -> bool:
    return part in asked[place]


def _resources(resource: str, parts: set[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Operations, and the resources and subresources that they are of."""
    below = [f"{resource}{part}" for part in (_ALL_BELOW, _SCALE) if part in parts]
    itself = tuple(part for part in (_CREATE, _UPDATE) if part in parts)
    if resource == ANY and _ALL_BELOW in parts:  # `*/*` means the resources themselves too
        itself = tuple(part for part in itself if part != _UPDATE)
    if below and _UPDATE in itself:
        yield (_UPDATE,), [resource, *below]
        itself = tuple(part for part in itself if part != _UPDATE)
    elif below:
        yield (_UPDATE,), below
    if itself:
        yield itself, [resource]


# Conditions


def _condition(name: str, exempt: str) -> Object:
    return {"name": name, "expression": f"!({exempt})"}


def _is_control_plane() -> str:
    names = ", ".join(map(_text, sorted(ALL_USERS)))
    return f"has(request.userInfo.username) && request.userInfo.username in [{names}]"


def _is_of(group: str, resources: frozenset[str], meant: Iterable[Place]) -> Iterator[str]:
    """Tests for a group's resources that are never asked about, where any of the places means them."""
    if not any(place[0] in (ANY, group) and (ANY in resources or place[1] in resources | {ANY}) for place in meant):
        return
    test = f"request.resource.group == {_text(group)}"
    if ANY not in resources:
        test += f" && request.resource.resource in [{', '.join(map(_text, sorted(resources)))}]"
    yield f"({test})"


def _text(text: str) -> str:
    """A CEL string."""
    return json.dumps(text)
