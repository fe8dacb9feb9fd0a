"""What moves claims without the requester's write accounting for it, each as narrow as the server's own rule."""

from __future__ import annotations

from webhook.admission.evidence import LAST_APPLIED, Evidence, is_open
from webhook.fields import ClaimChange, FieldPath, FieldSet, Identity, Migration
from webhook.fields.fieldset import EMPTY

MAX_UPDATE_CLAIMS = 10
ANCIENT = "ancient-changes"


BUILT_IN_GROUPS = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)


def is_built_in(group: str) -> bool:
    """Whether a group is the API server's own: a custom resource's has a dot."""
    return "." not in group or group in BUILT_IN_GROUPS


def schema_change(evidence: Evidence, change: ClaimChange) -> ClaimChange | None:
    """The part of a claim's movement that a changed schema makes: paths become one ancestor of theirs, or the reverse.

    The server does so at the next write by anybody (reconcileManagedFieldsWithSchemaChanges); no value changes there.
    """
    if change.old is None or change.new is None or not (change.gained and change.lost):
        return None
    if is_built_in(evidence.request.resource.group) and not evidence.request.subresource:
        return None  # there the schema is fixed, and the body may bring claims, as to a subresource it may not
    gained = _exchanged(evidence, change.gained, change.lost)
    lost = _exchanged(evidence, change.lost, change.gained)
    if not gained and not lost:
        return None
    return ClaimChange(
        change.identity,
        change.old,
        change.new,
        gained=gained | _below(change.gained, lost),
        lost=lost | _below(change.lost, gained),
    )


def _exchanged(evidence: Evidence, ancestors: FieldSet, descendants: FieldSet) -> FieldSet:
    """The paths of the first set that stand for paths of the second below them, with an unchanged container there.

    A schema is one for all claims: none may hold both what the container is as a whole and parts of it. And that of
    `.metadata` never changes.
    """
    return FieldSet.from_paths(
        path
        for path in ancestors.leaves()
        if descendants.has_prefix(path)
        and path not in descendants
        and isinstance(evidence.new_value(path), dict | list)
        and not evidence.differs(path)
        and not is_open(path)
        and _agreed(evidence, path)
    )


def _agreed(evidence: Evidence, path: FieldPath) -> bool:
    """Whether no claim is left that holds a part where others hold the whole, or the reverse."""
    holders = [
        claim
        for claim in evidence.new_claims.claims()
        if claim.api_version == evidence.request.api_version and claim.reaches(path)
    ]
    return len({claim.holds_leaf(path) for claim in holders}) < 2


def _below(paths: FieldSet, ancestors: FieldSet) -> FieldSet:
    return paths - paths.recursive_difference(ancestors) if ancestors else EMPTY


def given_up(evidence: Evidence) -> bool:
    """Whether the server may have dropped all claims: it does so where a claim's version does not know what is written.

    That is a custom resource whose versions differ in their fields and are converted by name alone.
    """
    return (
        not evidence.new_claims
        and bool(evidence.comparison.written)
        and not is_built_in(evidence.request.resource.group)
        and any(not evidence.comparable(identity) for identity in evidence.old_claims)
    )


ALLOCATED = frozenset({"clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"})
TEMPLATE_GENERATION = ("f:metadata", "f:annotations", "f:deprecated.daemonset.template.generation")


def put_back(evidence: Evidence, path: FieldPath) -> bool:
    """Whether the server keeps a value that a write left out: it does so after it has taken the claims on it.

    A Service's addresses and ports, once allocated, and the one annotation that a DaemonSet's generation is kept in.
    """
    resource = evidence.request.resource
    if (resource.group, resource.resource) == ("apps", "daemonsets"):
        return path == TEMPLATE_GENERATION
    if (resource.group, resource.resource) != ("", "services") or path[0] != "f:spec":
        return False
    if len(path) == 2:
        return path[1][2:] in ALLOCATED
    return path[1:2] == ("f:ports",) and path[-1] == "f:nodePort"


_NAME_OF_NAMESPACE = ("f:metadata", "f:labels", "f:kubernetes.io/metadata.name")
_LABELLED_BY_TEMPLATE = (("batch", "jobs"), ("", "replicationcontrollers"))


def set_anew(evidence: Evidence, path: FieldPath) -> bool:
    """Whether the server sets something in the metadata that an apply dropped: defaults stand elsewhere but for these.

    A namespace's name as its label, a template's labels on an object that has none, a DaemonSet's generation.
    """
    resource = evidence.request.resource
    place = (resource.group, resource.resource)
    if place == ("", "namespaces"):
        return path == _NAME_OF_NAMESPACE
    if place == ("apps", "daemonsets"):
        return path == TEMPLATE_GENERATION
    if place in _LABELLED_BY_TEMPLATE and path[:2] == _NAME_OF_NAMESPACE[:2]:
        return evidence.new_value(path[:2]) == evidence.new_value(("f:spec", "f:template", *path[:2]))
    return False


def ancient_changes(evidence: Evidence, me: Identity | None) -> tuple[Identity, ...]:
    """The claims that the cap folded: with the requester's, the object had more than ten Update claims.

    Only updates fold; an apply can leave eleven, since before-first-apply is one. The oldest Update claims of one
    version become one bucket, which gains exactly what they held, less what this write took from everybody.
    """
    if not over_cap(evidence, me):
        return ()
    found: list[Identity] = []
    buckets = [change for change in evidence.changes.values() if change.new is not None and is_bucket(change.identity)]
    for bucket in buckets:
        folded = [
            change
            for change in evidence.changes.values()
            if change.new is None
            and change.identity.operation == "Update"
            and change.identity.api_version == bucket.identity.api_version
        ]
        if (folded or me not in evidence.new_claims) and _folds(evidence, bucket, folded, me):
            found += [bucket.identity, *(change.identity for change in folded)]
    return tuple(found)


def over_cap(evidence: Evidence, me: Identity | None) -> bool:
    """Whether an update under `me` would have left more Update claims than the server keeps."""
    updates = sum(identity.operation == "Update" for identity in evidence.old_claims)
    return updates + (me is None or me not in evidence.old_claims) > MAX_UPDATE_CLAIMS


def is_bucket(identity: Identity) -> bool:
    return identity.manager == ANCIENT and identity.operation == "Update" and not identity.subresource


def _folds(evidence: Evidence, bucket: ClaimChange, folded: list[ClaimChange], me: Identity | None) -> bool:
    """Whether the bucket gained what the others held. Within one second the new claim may be among the oldest."""
    held = bucket.old.fields if bucket.old is not None else EMPTY
    for change in folded:
        held = held | change.lost
    now = bucket.new.fields if bucket.new is not None else EMPTY
    if now - held and (me in evidence.new_claims or not all(map(evidence.wrote, now - held))):
        return False
    return all(evidence.differs(path) for path in held - now)


def migration(evidence: Evidence) -> Migration | None:
    """Whole Update claims that moved into the one Apply claim of `options.fieldManager`, with no value changed.

    kubectl does so when it applies server-side what it once applied client-side (the source then holds the
    last-applied annotation); Flux, Argo CD and Helm do so for names that they know, which a policy must name.
    """
    request = evidence.request
    if request.field_manager is None or not evidence.values_unchanged or evidence.altered:
        return None
    target = Identity(request.field_manager, "Apply", request.subresource)
    into = evidence.changes.get(target)
    sources = [change for change in evidence.changes.values() if change.identity != target]
    if not sources or (into is None and target not in evidence.new_claims) or (into is not None and into.lost):
        return None
    moved = EMPTY
    for change in sources:
        if change.new is not None or change.identity.operation != "Update":
            return None
        if change.identity.subresource != target.subresource:
            return None
        moved = moved | change.lost
    gained = into.gained if into is not None else EMPTY
    if moved - evidence.new_claims.fields_of(target) or gained - moved:
        return None
    unproven = tuple(change.identity for change in sources if LAST_APPLIED not in change.lost)
    return Migration(tuple(change.identity for change in sources), target, unproven)
