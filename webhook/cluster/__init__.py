"""All talk with Kubernetes. Nothing is imported from its client before somebody connects."""

from webhook.cluster.access import Unconfigured
from webhook.cluster.api import Api, Listing, WatchEvent
from webhook.cluster.errors import ApiError, Conflict, Denied, Gone, Invalid, Missing, Unreachable

__all__ = [
    "Api",
    "ApiError",
    "Conflict",
    "Denied",
    "Gone",
    "Invalid",
    "Listing",
    "Missing",
    "Unconfigured",
    "Unreachable",
    "WatchEvent",
]
