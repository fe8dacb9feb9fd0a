"""One HTTP call before anybody looks into it: its deadline, its kind of content, its body."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from webhook.server.settings import MAX_BODY

PIECE = 1 << 20

DRAIN_BYTES = 64 << 20
DRAIN_SECONDS = 5.0
"""How much of a body that is too large is read, so that the client hears why, before the connection is closed."""

_DURATION = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Refusal(Exception):
    """A call that is answered without a review: HTTP status, a stable reason, a sentence."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


def duration(text: str) -> float | None:
    """Seconds in a duration as the API server writes it; None for what is none, or not above zero.

    >>> duration("10s"), duration("1m30s"), duration("500ms"), duration("soon"), duration("-1s"), duration("0s")
    (10.0, 90.0, 0.5, None, None, None)
    """
    parts = _DURATION.findall(text)
    if not parts or "".join(parts) != text:
        return None
    total = 0.0
    for part in parts:
        number = part.rstrip("nuµμmsh")
        total += float(number) * _UNITS[part[len(number) :]]
    return total if total > 0 else None


def timeout_of(query: str) -> str | None:
    """The `timeout` parameter of a query string. Most calls have no other.

    >>> timeout_of("timeout=10s"), timeout_of("a=b&timeout=1m"), timeout_of(""), timeout_of("timeouts=1s")
    ('10s', '1m', None, None)
    """
    if "timeout=" not in query:
        return None
    return dict(parse_qsl(query)).get("timeout")


class Deadline:
    """When the caller stops listening: its `timeout` parameter, counted from when the call arrived here."""

    __slots__ = ("_end",)

    def __init__(self, arrived: float, timeout: str | None) -> None:
        seconds = duration(timeout) if timeout else None
        self._end = arrived + seconds if seconds is not None else None

    def left(self) -> float | None:
        """Seconds, or None without a deadline."""
        return None if self._end is None else self._end - time.monotonic()

    def check(self) -> None:
        """Raises Refusal when nobody listens any more."""
        if self._end is not None and time.monotonic() >= self._end:
            raise Refusal(504, "timeout", "the time that the caller gave for this call has passed")


def check_content(environ: Mapping[str, Any]) -> None:
    """Raises Refusal unless the body is said to be plain JSON."""
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "unsupported-media-type", "the content type must be application/json")
    if environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise Refusal(415, "unsupported-media-type", "a body with a content encoding is not read")


def read_body(
    environ: Mapping[str, Any], deadline: Deadline, close: Callable[[], None], limit: int = MAX_BODY
) -> bytes:
    """The whole body. Raises Refusal when it is too large, ends early, or comes too late; `close` is called for these,
    since what follows on such a connection is not the next call."""
    source = environ["wsgi.input"]
    length = _length(environ)
    if length is not None and length > limit:
        _drain(source, length)
        close()
        raise _too_large(limit)
    pieces, total = [], 0
    try:
        while total != length and (piece := source.read(PIECE if length is None else min(PIECE, length - total))):
            pieces.append(piece)
            total += len(piece)
            if total > limit:
                _drain(source, DRAIN_BYTES)
                close()
                raise _too_large(limit)
            deadline.check()
    except Refusal:
        close()
        raise
    except OSError:
        close()
        raise Refusal(400, "incomplete-body", "the body ended or stalled before all of it was read") from None
    if length is not None and total < length:
        close()
        raise Refusal(400, "incomplete-body", "the body is shorter than its Content-Length")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _length(environ: Mapping[str, Any]) -> int | None:
    text = environ.get("CONTENT_LENGTH", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _too_large(limit: int) -> Refusal:
    return Refusal(413, "too-large", f"the body is larger than {limit >> 20} MiB")


def _drain(source: Any, length: int) -> None:
    end = time.monotonic() + DRAIN_SECONDS
    rest = min(length, DRAIN_BYTES)
    try:
        while rest > 0 and time.monotonic() < end and (piece := source.read(min(PIECE, rest))):
            rest -= len(piece)
    except OSError:
        return
