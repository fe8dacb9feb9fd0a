"""What can go wrong between us and the API server. No text here quotes an object's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """`status` is the HTTP status, 0 when there was no answer; `str()` is a sentence for a log."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Unreachable(ApiError):
    """No answer, or one that says to try again later: 429 and 5xx."""


class Denied(ApiError):
    """401, 403: who we are is not known, or may not do this."""


class Missing(ApiError):
    """404: there is no such object, or no such kind."""


class Conflict(ApiError):
    """409: somebody else changed or owns it, or it exists already."""


class Gone(ApiError):
    """410: what is asked for is too old to be told; list again."""


class Invalid(ApiError):
    """Any other 4xx: asking again would not help."""


_KINDS: Mapping[int, type[ApiError]] = {
    401: Denied,
    403: Denied,
    404: Missing,
    409: Conflict,
    410: Gone,
    429: Unreachable,
}


def error_of(status: int, body: Any, what: str) -> ApiError:
    """The error for an answer with this status; `what` names the request.

    >>> error_of(410, {"message": "too old resource version"}, "watch /api/v1/namespaces")
    Gone('watch /api/v1/namespaces: 410 too old resource version')
    """
    kind = _KINDS.get(status, Unreachable if status >= 500 else Invalid)
    message = body.get("message") if isinstance(body, Mapping) else None
    said = f" {message}" if isinstance(message, str) and message else ""
    return kind(f"{what}: {status}{said}", status)
