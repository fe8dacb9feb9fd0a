"""Field ownership: sets of field paths, patterns, claims, and what one write did. No policy, no I/O."""

from webhook.fields.change import (
    Change,
    ClaimChange,
    Explanation,
    Migration,
    Request,
    Requester,
    Resource,
    Tampering,
    User,
)
from webhook.fields.claims import Claim, Identity, ManagedFields
from webhook.fields.errors import FieldsError
from webhook.fields.fieldset import FieldSet
from webhook.fields.path import FieldPath
from webhook.fields.pattern import Pattern
from webhook.fields.shown import visible
from webhook.fields.values import ABSENT, Comparison, compare, value_at

__all__ = [
    "ABSENT",
    "Change",
    "Claim",
    "ClaimChange",
    "Comparison",
    "Explanation",
    "FieldPath",
    "FieldSet",
    "FieldsError",
    "Identity",
    "ManagedFields",
    "Migration",
    "Pattern",
    "Request",
    "Requester",
    "Resource",
    "Tampering",
    "User",
    "compare",
    "value_at",
    "visible",
]
