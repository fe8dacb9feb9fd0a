"""A creation: the creator has one claim; every other one came in the body."""

from __future__ import annotations

from webhook.fields import ABSENT, Change, FieldSet, Identity, ManagedFields, Request, Requester, Tampering, value_at
from webhook.fields.fieldset import EMPTY


def understand_creation(request: Request, claims: ManagedFields) -> Change:
    """Who created the object, and which claims are not the creator's: those are forged."""
    creator = _creator(request, claims)
    forged = tuple(
        Tampering(identity, claim.fields, EMPTY) for identity, claim in claims.items() if identity != creator
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


def _creator(request: Request, claims: ManagedFields) -> Identity | None:
    """The creator's claim holds what the object has: the server takes that from every claim in the body (fact 13)."""
    if request.field_manager is not None:
        applied = Identity(request.field_manager, "Apply", request.subresource)
        updated = Identity(request.field_manager, "Update", request.subresource, request.requested_version)
        alone = len(claims) == 1 and applied in claims  # an apply's body may carry no claims
        return applied if alone and _exists(request, claims[applied].fields) else updated
    sizes = {
        identity: _existing(request, claim.fields)
        for identity, claim in claims.items()
        if identity.operation == "Update" and identity.api_version == request.requested_version
    }
    creator = max(sizes, key=lambda identity: sizes[identity], default=None)
    return creator if creator is not None and sizes[creator] else None


def _exists(request: Request, fields: FieldSet) -> bool:
    """Whether a claim is on anything real. A Secret's stringData is real when applied, and gone when stored."""
    return bool(_existing(request, fields)) or fields.has_prefix(("f:stringData",))


def _existing(request: Request, fields: FieldSet) -> int:
    return sum(value_at(request.new, path) is not ABSENT for path in fields.leaves())
