"""PolicySet: all loaded policies, immutable, indexed so that a request costs what matches it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from webhook.fields import Change, Request
from webhook.policy.compiled import Match, OwnershipRule, Policy, ResourceMatcher
from webhook.policy.control_plane import is_control_plane

_CACHED_PLACES = 4096


class NamespaceLabels(Protocol):
    """What the set asks of a cluster: a namespace's labels, or None where it is not known."""

    def __call__(self, namespace: str) -> Mapping[str, str] | None: ...


def only_names(namespace: str) -> Mapping[str, str]:
    """Without a cluster the one label that every namespace has is known."""
    return {"kubernetes.io/metadata.name": namespace}


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Swapped whole, never changed. `policies` are in the order of their names.

    Which policies are about a resource in a namespace is worked out once for each such place; only a policy's other
    conditions are tested for each request.
    """

    policies: tuple[Policy, ...] = ()
    namespace_labels: NamespaceLabels = only_names
    _places: dict[tuple[str, str, str], tuple[Policy, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Policies that name the same owners and fields share one tuple, by which evaluation shares its work."""
        ordered = sorted(self.policies, key=lambda policy: policy.name)
        object.__setattr__(self, "policies", tuple(_shared(ordered)))

    def rules_for(self, change: Change) -> tuple[Policy, ...]:
        """The policies that are about a change, in order."""
        request = change.request
        found = self.about(request)
        if not found:
            return ()
        control_plane = is_control_plane(request.user)
        managed: dict[int, bool] = {}
        return tuple(
            policy
            for policy in found
            if not (control_plane and policy.exempt.control_plane)
            and not (policy.exempt.subjects.any_of and policy.exempt.subjects.match(request.user))
            and (not policy.match.managed_by or _managed(policy, change, managed))
            and (not policy.match.selects or self._selected(policy.match, request))
        )

    def about(self, request: Request) -> tuple[Policy, ...]:
        """The policies for a resource in a namespace, before anything else of a request is looked at."""
        place = (request.resource.group, request.resource.resource, request.namespace)
        found = self._places.get(place)
        if found is None:
            found = tuple(policy for policy in self.policies if _about(policy, *place))
            if len(self._places) >= _CACHED_PLACES:
                self._places.clear()
            self._places[place] = found
        return found

    def _selected(self, match: Match, request: Request) -> bool:
        if match.object_selector is not None:
            if request.is_scale:  # a Scale does not carry its parent's labels
                return False
            objects = (obj for obj in (request.new, request.old) if obj is not None)
            if not any(match.object_selector.matches(_labels(obj)) for obj in objects):
                return False
        if match.namespace_selector is None or not request.namespace:
            return True
        labels = self.namespace_labels(request.namespace)
        return labels is None or match.namespace_selector.matches(labels)


def _shared(policies: Iterable[Policy]) -> Iterator[Policy]:
    known: dict[object, Any] = {}
    for policy in policies:
        rules = (
            replace(rule, **{name: known.setdefault(part, part) for name in _PARTS if (part := getattr(rule, name))})
            if isinstance(rule, OwnershipRule)
            else rule
            for rule in policy.rules
        )
        managed_by = known.setdefault(policy.match.managed_by, policy.match.managed_by)
        yield replace(policy, rules=tuple(rules), match=replace(policy.match, managed_by=managed_by))


_PARTS = ("fields", "except_", "owners", "leftovers")


def _about(policy: Policy, group: str, resource: str, namespace: str) -> bool:
    match, exempt = policy.match, policy.exempt
    if not any(_covers(matcher, group, resource) for matcher in match.resources):
        return False
    if match.namespaces and not any(glob.matches(namespace) for glob in match.namespaces):
        return False
    return not (namespace and any(glob.matches(namespace) for glob in exempt.namespaces))


def _covers(matcher: ResourceMatcher, group: str, resource: str) -> bool:
    return (group in matcher.groups or "*" in matcher.groups) and (
        resource in matcher.resources or "*" in matcher.resources
    )


def _managed(policy: Policy, change: Change, known: dict[int, bool]) -> bool:
    """`managedBy`: the old object carries such a claim. A Scale shows those on replicas, and only when mutating."""
    managed_by = policy.match.managed_by
    found = known.get(id(managed_by))
    if found is None:
        found = known[id(managed_by)] = any(map(policy.match.managers.mean_claim, change.old_claims))
    return found


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels if isinstance(labels, Mapping) else {}
