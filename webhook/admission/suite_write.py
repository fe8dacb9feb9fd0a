"""A write in the user's words to the AdmissionReview that an API server would have sent.

The claims are computed as simply as can be, and as docs/suites.md says: for the cases of a suite, not for proofs about
the server. Where that is too simple, a case takes a captured review, or a `new` that brings its own managedFields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.admission.suite_leaves import group_version, leaves
from webhook.admission.suite_model import Client, StandingClaim, Write
from webhook.fields import Comparison, FieldPath, FieldSet, Identity, ManagedFields, Pattern, compare, value_at
from webhook.fields.fieldset import EMPTY

SCALE_VERSION = "autoscaling/v1"
REPLICAS = FieldPath.parse(".spec.replicas")
UID = "00000000-0000-4000-8000-000000000000"


class WriteError(ValueError):
    """A write that no API server could have accepted; the text says why."""


def review_of_write(write: Write, *, shows_claims: bool = True) -> dict[str, Any]:
    """The AdmissionReview. `shows_claims` tells whether a Scale shows claims: only the mutating call's does.

    Raises WriteError for what cannot have happened.
    """
    old = _with_claims(write.old, write.claims) if write.old is not None else None
    new = _after(write, old)
    if write.client.subresource == "scale":
        if old is None:
            raise WriteError("a Scale is never created: add old")
        old, new = _scale(old, shows_claims=shows_claims), _scale(new, shows_claims=shows_claims)
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": _request(write, old, new)}


def _request(write: Write, old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    client, written = write.client, write.new
    group, version = group_version(written["apiVersion"])
    resource = {"group": group, "version": version, "resource": write.resource or plural(written["kind"])}
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    kind = scale if client.subresource == "scale" else {"group": group, "version": version, "kind": written["kind"]}
    options: dict[str, Any] = {"apiVersion": "meta.k8s.io/v1", "kind": f"{'Update' if old else 'Create'}Options"}
    if client.subresource != "scale" or client.operation == "Apply":
        options["fieldManager"] = client.manager
    if client.dry_run:
        options["dryRun"] = ["All"]
    return {
        "uid": UID,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        **({"subResource": client.subresource, "requestSubResource": client.subresource} if client.subresource else {}),
        "name": written["metadata"]["name"],
        "namespace": written["metadata"].get("namespace", ""),
        "operation": "UPDATE" if old is not None else "CREATE",
        "userInfo": {"username": client.user, "groups": _groups(client)},
        "object": new,
        "oldObject": old,
        "dryRun": client.dry_run,
        "options": options,
    }


def _groups(client: Client) -> list[str]:
    """The groups given, and those that the API server adds to everyone and to service accounts."""
    groups = list(client.groups)
    parts = client.user.split(":")
    if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"]:
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{parts[2]}"]
    return [*groups, "system:authenticated"]


def plural(kind: str) -> str:
    """The resource of a kind, as such names are usually made.

    >>> plural("Deployment"), plural("Ingress"), plural("NetworkPolicy"), plural("Gateway"), plural("Endpoints")
    ('deployments', 'ingresses', 'networkpolicies', 'gateways', 'endpoints')
    """
    name = kind.lower()
    if name == "endpoints":
        return name
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


def _with_claims(old: dict[str, Any], standing: Iterable[StandingClaim]) -> dict[str, Any]:
    """The old object with its claims: its own, or those that the case gives in short."""
    standing = tuple(standing)
    if not standing:
        return old
    if old["metadata"].get("managedFields"):
        raise WriteError("the old object has managedFields of its own: leave out claims")
    claims: dict[Identity, FieldSet] = {}
    for claim in standing:
        everything = leaves(old, status=claim.subresource == "status")
        version = old["apiVersion"] if claim.operation == "Update" else ""
        identity = Identity(claim.manager, claim.operation, claim.subresource, version)
        claims[identity] = claims.get(identity, EMPTY) | _selected(everything, claim.fields, "fields")
    return _claimed(old, claims)


def _selected(everything: FieldSet, patterns: tuple[Pattern, ...] | None, key: str) -> FieldSet:
    if patterns is None:
        return everything
    found = EMPTY
    for pattern in patterns:
        part = pattern.select(everything)
        if not part:
            raise WriteError(f"{key}: the object has nothing at {pattern.text}")
        found = found | part
    return found


def _after(write: Write, old: dict[str, Any] | None) -> dict[str, Any]:
    """The new object with the claims that the write leaves. One that brings its own keeps them."""
    new, client = write.new, write.client
    if "managedFields" in new["metadata"]:
        return new
    version = SCALE_VERSION if client.subresource == "scale" else new["apiVersion"]
    me = Identity(client.manager, client.operation, client.subresource, version if client.operation == "Update" else "")
    before = claims_of(old)
    applied = EMPTY
    if client.operation == "Apply":
        applied = _selected(leaves(new, before, status=client.subresource == "status"), write.applied, "applied")
    if old is None:
        return _claimed(new, {me: applied or leaves(new)})
    managed = ManagedFields.parse(old["metadata"].get("managedFields"))
    written = compare(old, new, (managed,), status=client.subresource == "status")
    if client.operation == "Apply":
        return _claimed(new, _after_apply(old, before, me, applied, written))
    return _claimed(new, _after_update(old, before, me, written))


def _after_apply(
    old: dict[str, Any], before: dict[Identity, FieldSet], me: Identity, applied: FieldSet, done: Comparison
) -> dict[Identity, FieldSet]:
    """The applier claims what it applied; others lose what it changed. What they claim, it cannot have removed."""
    if not before:
        rest = leaves(old).recursive_difference(done.written)
        before = {Identity("before-first-apply", "Update", "", old["apiVersion"]): rest}
    others = {identity: fields for identity, fields in before.items() if identity != me}
    for identity, fields in others.items():
        for path in done.removed & fields:
            raise WriteError(f"an apply by {me.manager} does not remove {path}, which {identity} claims")
    return {**{name: fields.recursive_difference(done.written) for name, fields in others.items()}, me: applied}


def _after_update(
    old: dict[str, Any], before: dict[Identity, FieldSet], me: Identity, done: Comparison
) -> dict[Identity, FieldSet]:
    """The writer gains what it wrote; all others lose that, and what went away. Without claims none appear."""
    if not before or (me.subresource == "scale" and not any(REPLICAS in fields for fields in before.values())):
        return before
    written = FieldSet.from_paths(_at_atomic(path, old, before.values()) for path in done.written)
    touched = written | FieldSet.from_paths(_at_atomic(path, old, before.values()) for path in done.removed)
    after = {name: fields if name == me else fields.recursive_difference(touched) for name, fields in before.items()}
    after[me] = after.get(me, EMPTY).recursive_difference(done.removed) | written
    return after


def _at_atomic(path: FieldPath, old: Mapping[str, Any], claims: Iterable[FieldSet]) -> FieldPath:
    """A path, or the filled map above it that is claimed as one value."""
    for length in range(1, len(path)):
        above = FieldPath(path[:length])
        if any(fields.is_leaf(above) for fields in claims) and value_at(old, above) not in ({}, None):
            return above
    return path


def claims_of(obj: Mapping[str, Any] | None) -> dict[Identity, FieldSet]:
    if obj is None:
        return {}
    return {
        claim.identity: claim.fields for claim in ManagedFields.parse(obj["metadata"].get("managedFields")).claims()
    }


def _claimed(obj: dict[str, Any], claims: Mapping[Identity, FieldSet]) -> dict[str, Any]:
    """An object with these claims, in the server's order; empty ones vanish, as on the server."""
    entries = [
        {
            "manager": identity.manager,
            "operation": identity.operation,
            "apiVersion": identity.api_version or obj["apiVersion"],
            "fieldsType": "FieldsV1",
            "fieldsV1": fields.to_fields_v1(),
            **({"subresource": identity.subresource} if identity.subresource else {}),
        }
        for identity, fields in sorted(claims.items(), key=_order)
        if fields
    ]
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def _order(claim: tuple[Identity, FieldSet]) -> tuple[str, ...]:
    """Applies first, then by name, as the server sorts entries without a time."""
    identity, _ = claim
    return identity.operation, identity.manager, identity.api_version, identity.subresource


def _scale(obj: dict[str, Any], *, shows_claims: bool) -> dict[str, Any]:
    """The Scale of an object: its replicas, and the claims on them."""
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace") if name in obj["metadata"]}
    replicas = (obj.get("spec") or {}).get("replicas")
    scale = {
        "apiVersion": SCALE_VERSION,
        "kind": "Scale",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas is not None else {},
    }
    if not shows_claims:
        return scale
    held = (identity for identity, fields in claims_of(obj).items() if REPLICAS in fields)
    return _claimed(
        scale,
        {
            identity._replace(api_version=SCALE_VERSION if identity.operation == "Update" else ""): FieldSet.from_paths(
                [REPLICAS]
            )
            for identity in held
        },
    )
