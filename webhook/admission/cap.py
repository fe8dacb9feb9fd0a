"""Two oddities of the server's cap on Update claims, where ages are equal to the second and names decide.

`capManagersManager` in apimachinery sorts Update claims by time, then by name, and folds the first ones into a bucket.
"""

from __future__ import annotations

from webhook.admission.evidence import Evidence
from webhook.admission.explanations import is_bucket, over_cap
from webhook.fields import Identity


def swallowed(evidence: Evidence, me: Identity | None) -> tuple[Identity, ...]:
    """The buckets that the server lost: behind a claim of the same time and version, it folds a bucket into itself.

    A name sorts before `ancient-changes` when it starts with a capital, as OpenAPI-Generator and Mozilla do.
    """
    if not over_cap(evidence, me):
        return ()
    return tuple(
        change.identity
        for change in evidence.changes.values()
        if change.new is None
        and change.old is not None
        and is_bucket(change.identity)
        and any(
            claim.identity.operation == "Update"
            and claim.api_version == change.old.api_version
            and _sorted(claim.identity) < _sorted(change.identity)
            and claim.time in (None, change.old.time)
            for claim in evidence.new_claims.claims()
        )
    )


def folded_at_once(evidence: Evidence, me: Identity | None) -> Identity | None:
    """The bucket that took what was written: the writer's new claim was folded before anybody saw it.

    Where the bucket held the same before, no claim moves, and only the value tells.
    """
    if me in evidence.new_claims or not over_cap(evidence, me):
        return None
    buckets = (identity for identity in evidence.holdings if is_bucket(identity) and identity not in evidence.changes)
    return next(buckets, None)


def _sorted(identity: Identity) -> str:
    """What the server sorts by: the claim as JSON, of which the name comes first."""
    return f'{identity.manager}"'
