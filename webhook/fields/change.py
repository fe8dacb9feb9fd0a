"""Change: what one request did to an object and to the claims on it (the vocabulary; admission works it out)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from webhook.fields.claims import Claim, Identity, ManagedFields
from webhook.fields.fieldset import FieldSet

Explanation = Literal[
    "before-first-apply", "ancient-changes", "last-applied", "migration", "version", "schema", "another-webhook"
]
"""Why a claim moved that the requester's write does not account for."""


@dataclass(frozen=True, slots=True)
class User:
    """The authenticated user. A fact, where a manager's name is only a claim."""

    name: str
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as `metav1.GroupVersionResource` names it; `group` is "" for the core group."""

    group: str
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def with_subresource(self, subresource: str = "") -> str:
        """As the command line of Kubernetes writes it.

        >>> Resource("apps", "v1", "deployments").with_subresource("scale")
        'deployments.apps/scale'
        """
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}/{subresource}" if subresource else name


@dataclass(frozen=True, slots=True)
class Request:
    """One write as the API server describes it. `old` is None for a creation."""

    operation: Literal["CREATE", "UPDATE"]
    resource: Resource
    kind: str
    subresource: str  # "" for the main resource
    namespace: str  # "" for a cluster-scoped object
    name: str
    user: User
    field_manager: str | None  # options.fieldManager: only there when the client named one
    dry_run: bool
    new: Mapping[str, Any]
    old: Mapping[str, Any] | None
    api_version: str  # of the objects shown, which the webhook may have asked to be converted
    requested_version: str  # of the object that the client sent: a new claim carries this one

    @property
    def is_scale(self) -> bool:
        return self.subresource == "scale"

    @property
    def is_outdated(self) -> bool:
        """Whether the object was made from another version than the stored one, so that it cannot be stored.

        The server checks that after the mutating webhooks (409) and, for a patch, starts again when it had read an
        old version from its cache: the same request then comes a second time.
        """
        made_from, stored = _version(self.new), _version(self.old or {})
        return made_from != 0 and stored != 0 and made_from != stored


def _version(item: Mapping[str, Any]) -> int:
    """The resourceVersion, as the server reads it; 0 where there is none."""
    text = item.get("metadata", {}).get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() else 0


class Requester(NamedTuple):
    """The claim that a request wrote under. `identity` is None where nothing tells."""

    identity: Identity | None

    @property
    def manager(self) -> str | None:
        return self.identity.manager if self.identity else None

    def __str__(self) -> str:
        return str(self.identity) if self.identity else "an unknown manager"


class ClaimChange(NamedTuple):
    """What happened to one claim: the paths that it gained and lost."""

    identity: Identity
    old: Claim | None
    new: Claim | None
    gained: FieldSet
    lost: FieldSet


class Tampering(NamedTuple):
    """Paths of one claim that moved and that no rule of the server explains."""

    identity: Identity
    gained: FieldSet
    lost: FieldSet
    version: bool = False  # the claim's apiVersion was altered


@dataclass(frozen=True, slots=True)
class Migration:
    """Whole Update claims that moved into one Apply claim, values unchanged."""

    sources: tuple[Identity, ...]
    target: Identity
    unproven: tuple[Identity, ...]  # sources without the last-applied annotation: only a policy can allow them


@dataclass(frozen=True, slots=True)
class Change:
    """What one request did. Pure data; every path is the parent object's own, also for a Scale."""

    request: Request
    old_claims: ManagedFields
    new_claims: ManagedFields
    requester: Requester
    written: FieldSet  # values added or modified: leaves, list items, atomic lists
    removed: FieldSet  # values that went away
    reordered: FieldSet  # keyed lists whose common items changed order
    changes: Mapping[Identity, ClaimChange]  # the claims that gained or lost anything
    takeover: Mapping[Identity, FieldSet]  # what the requester's claim took, by the claim that lost it
    tampering: tuple[Tampering, ...] = ()
    elsewhere: FieldSet = field(default_factory=FieldSet)  # written, and not by the requester: the server or a webhook
    foreign: FieldSet = field(default_factory=FieldSet)  # the part of it that other claims than the requester's hold
    explained: Mapping[Identity, tuple[Explanation, ...]] = field(default_factory=dict)
    migration: Migration | None = None  # one that only a policy's `integrity.migrates` can allow

    @property
    def no_op(self) -> bool:
        """Nothing written, removed, reordered, gained or lost: always allowed, never recorded."""
        return self.request.old is not None and not (
            self.changes or self.written or self.removed or self.reordered or self.tampering
        )
