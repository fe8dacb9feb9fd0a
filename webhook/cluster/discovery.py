"""Which versions the API server serves of the resources that policies name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.policy import PolicySet
from webhook.policy.compiled import ResourceMatcher

Get = Callable[[str], Mapping[str, Any] | None]
"""The document at a path of the API server; None where there is none."""

ANY = "*"


@dataclass(frozen=True, slots=True)
class Discovery:
    """By group and plural name: the versions served, the preferred one first."""

    versions: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def of(self, group: str, resource: str) -> tuple[str, ...]:
        """Empty where the resource is not served."""
        return self.versions.get((group, resource), ())


def discover(policies: PolicySet, get: Get) -> Discovery:
    """Asks for the groups of all resources that are named in full. What `get` raises passes through."""
    named = {place for matcher in matchers(policies) for place in places(matcher) if ANY not in place}
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for group in sorted({group for group, _ in named}):
        for version, resources in _served(group, get):
            for resource in resources:
                if (group, resource) in named:
                    found[group, resource] = (*found.get((group, resource), ()), version)
    return Discovery(found)


def matchers(policies: PolicySet) -> Iterator[ResourceMatcher]:
    return (matcher for policy in policies.policies for matcher in policy.match.resources)


def places(matcher: ResourceMatcher) -> Iterable[tuple[str, str]]:
    """The pairs of group and plural name that a matcher means, `*` among them."""
    return [(group, resource) for group in matcher.groups for resource in matcher.resources]


def written(place: tuple[str, str]) -> str:
    """
    >>> written(("apps", "deployments")), written(("", "pods"))
    ('deployments.apps', 'pods')
    """
    group, resource = place
    return f"{resource}.{group}" if group else resource


def _served(group: str, get: Get) -> Iterator[tuple[str, list[str]]]:
    """Each version of a group with its resources, in the order of preference."""
    for version in _versions(group, get):
        listed = get(f"/apis/{group}/{version}" if group else f"/api/{version}") or {}
        yield version, [str(item["name"]) for item in listed.get("resources") or ()]


def _versions(group: str, get: Get) -> list[str]:
    if not group:
        return ["v1"]
    found = get(f"/apis/{group}") or {}
    preferred = (found.get("preferredVersion") or {}).get("version")
    others = [str(item["version"]) for item in found.get("versions") or ()]
    return list(dict.fromkeys([str(preferred), *others] if preferred else others))
