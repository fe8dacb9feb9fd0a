"""A creation: the creator has one claim; every other one came in the body."""

from __future__ import annotations

from webhook.fields import (
    ABSENT,
    Change,
    Claim,
    FieldPath,
    FieldSet,
    Identity,
    ManagedFields,
    Request,
    Requester,
    Tampering,
    value_at,
)
from webhook.fields.fieldset import EMPTY
from webhook.fields.values import NEVER_CLAIMED, NEVER_CLAIMED_METADATA


def understand_creation(request: Request, claims: ManagedFields) -> Change:
    """Who created the object, and which claims are not the creator's: those are forged."""
    creator = _creator(request, claims)
    forged = tuple(
        Tampering(identity, _forged(claim, mine=identity == creator), EMPTY)
        for identity, claim in claims.items()
        if identity != creator or _forged(claim, mine=True)
    )
    return Change(
        request=request,
        old_claims=ManagedFields({}),
        new_claims=claims,
        requester=Requester(creator),
        written=EMPTY,
        removed=EMPTY,
        reordered=EMPTY,
        changes={},
        takeover={},
        tampering=forged,
    )


def _forged(claim: Claim, *, mine: bool) -> FieldSet:
    """What of a claim came in the body: all of it, or of the creator's what the server never puts into a claim."""
    return FieldSet.from_paths(path for path in claim.fields if _never_claimed(path)) if mine else claim.fields


def _creator(request: Request, claims: ManagedFields) -> Identity | None:
    """The creator's claim holds what the object has: the server takes that from every claim in the body."""
    if request.field_manager is not None:
        applied = Identity(request.field_manager, "Apply", request.subresource)
        updated = Identity(request.field_manager, "Update", request.subresource, request.requested_version)
        alone = len(claims) == 1 and applied in claims  # an apply's body may carry no claims
        return applied if alone and _exists(request, claims[applied].fields) else updated
    candidates = {
        identity: _own(request, claims, identity)
        for identity in claims
        if identity.operation == "Update" and identity.api_version == request.requested_version
    }
    creator = max(candidates, key=lambda identity: candidates[identity], default=None)
    return creator if creator is not None and candidates[creator] else None


def _own(request: Request, claims: ManagedFields, identity: Identity) -> int:
    """How much of the object a claim holds as only a creator's can: values, that no other claim holds as a whole.

    A claim in the body keeps what the server does not count: fields that are never claimed, a map or list around what
    the creator claims, and parts of what is one value to the server.
    """
    others = [claim for name, claim in claims.items() if name != identity]
    return sum(
        value_at(request.new, path) is not ABSENT
        and not _never_claimed(path)
        and not any(claim.reaches(path) for claim in others)
        and not any(claim.holds_leaf(path[:length]) for claim in others for length in range(2, len(path)))
        for path in claims[identity].fields.leaves()
    )


def _never_claimed(path: FieldPath) -> bool:
    if path[0] == "f:metadata":
        return len(path) == 1 or path[1][2:] in NEVER_CLAIMED_METADATA
    return path[0][2:] in NEVER_CLAIMED


def _exists(request: Request, fields: FieldSet) -> bool:
    """Whether a claim is on anything real. A Secret's stringData is real when applied, and gone when stored."""
    return bool(_existing(request, fields)) or fields.has_prefix(("f:stringData",))


def _existing(request: Request, fields: FieldSet) -> int:
    return sum(value_at(request.new, path) is not ABSENT for path in fields.leaves())
