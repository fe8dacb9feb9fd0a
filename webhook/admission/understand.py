"""The heart: what one write did to an object and to the claims on it.

The review does not say whether a write was an apply, nor always who made it. The server's rules leave two
possibilities, an apply and an update, and both are tried: each says which claim the request wrote under, and what of
the claims' movements it then cannot explain. What neither explains is tampering.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.admission.creation import understand_creation
from webhook.admission.evidence import Evidence
from webhook.admission.hypotheses import Outcome, best, named
from webhook.fields import Change, ClaimChange, FieldSet, Identity, ManagedFields, Request, Requester, compare
from webhook.fields.fieldset import EMPTY


class Understood:
    """What a write did, worked out when it is asked for, and what a review shows of it."""

    def __init__(self, evidence: Evidence | None, creation: Change | None = None) -> None:
        self.evidence = evidence  # None for a creation, which comes with its change
        self._change = creation

    @property
    def change(self) -> Change:
        """By the hypothesis that fits best."""
        if self._change is None:
            assert self.evidence is not None  # noqa: S101 (no creation)
            evidence = self.evidence
            nothing = not (evidence.changes or evidence.altered or evidence.comparison)
            self._change = _change_under(evidence, Outcome(Requester(named(evidence))) if nothing else best(evidence))
        return self._change


def understand(request: Request) -> Change:
    """What a write did. Raises FieldsError where managedFields cannot be read.

    The rules are the server's: `merge.Updater` of structured-merge-diff and `managedfields` of apimachinery.
    """
    return examine(request).change


def examine(request: Request, like: Change | None = None) -> Understood:
    """The same, with what the review shows. `like` is a change of the same old object, whose claims are read already."""
    if request.old is None:
        return Understood(None, understand_creation(request, ManagedFields.of(request.new)))
    return Understood(evidence_of(request, like))


def evidence_of(request: Request, like: Change | None = None) -> Evidence:
    """What the review of an update shows, before any hypothesis. Raises FieldsError."""
    old: Mapping[str, Any] = request.old if request.old is not None else {}
    known = like is not None and like.request.old is request.old
    old_claims = like.old_claims if like is not None and known else ManagedFields.of(old)
    standing = like.new_claims if like is not None and known else old_claims
    new_claims = ManagedFields.of(request.new, like=standing)
    status = request.subresource == "status" or _counts_status(request, old_claims, new_claims)
    comparison = compare(old, request.new, (new_claims, old_claims), status=status)
    return Evidence(request, old_claims, new_claims, comparison, claim_changes(old_claims, new_claims))


def _change_under(evidence: Evidence, outcome: Outcome) -> Change:
    """A change as one hypothesis has it."""
    comparison = evidence.comparison
    return Change(
        request=evidence.request,
        old_claims=evidence.old_claims,
        new_claims=evidence.new_claims,
        requester=outcome.requester,
        written=comparison.written,
        removed=comparison.removed,
        reordered=comparison.reordered,
        changes=evidence.changes,
        takeover=_takeover(evidence, outcome.requester),
        tampering=outcome.tampering,
        elsewhere=outcome.elsewhere,
        foreign=outcome.foreign,
        explained=outcome.explained,
        migration=outcome.migration,
    )


def claim_changes(old: ManagedFields, new: ManagedFields) -> dict[Identity, ClaimChange]:
    """The claims that gained or lost any path, in the order of the new list, then those that vanished."""
    changes: dict[Identity, ClaimChange] = {}
    for identity, claim in new.items():
        before = old.get(identity)
        if before is claim:
            continue
        gained, lost = (claim.fields, EMPTY) if before is None else claim.moved_from(before)
        if gained or lost:
            changes[identity] = ClaimChange(identity, before, claim, gained, lost)
    for identity, before in old.items():
        if identity not in new and before.fields:
            changes[identity] = ClaimChange(identity, before, None, EMPTY, before.fields)
    return changes


def _takeover(evidence: Evidence, requester: Requester) -> Mapping[Identity, FieldSet]:
    if requester.identity is None or requester.identity not in evidence.new_claims:
        return {}
    mine = evidence.new_claims[requester.identity]
    taken = (
        (change.identity, mine.held_of(change.lost))
        for change in evidence.changes.values()
        if change.lost and change.identity != requester.identity
    )
    return {identity: paths for identity, paths in taken if paths}


def _counts_status(request: Request, *claims: ManagedFields) -> bool:
    """Whether a claim of the main resource holds `.status`, which differs: then it is a field like others there."""
    if request.old is None or request.old.get("status") == request.new.get("status"):
        return False
    return any(
        "f:status" in claim.tree and not claim.identity.subresource for managed in claims for claim in managed.claims()
    )
