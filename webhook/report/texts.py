"""Names, times and effects as people read them. Names come from strangers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from webhook.fields import visible as visible  # for all that is shown here
from webhook.report.enforced import Effect
from webhook.report.folding import ANY

EFFECT_WORDS: dict[Effect, str] = {
    "fails": "would fail",
    "rewritten": "would be rewritten",
    "recorded": "only recorded",
}
UNKNOWN = "(unknown)"
CLUSTER = "(cluster)"
SEVERAL = "(several)"
ANY_WORDS = {"": UNKNOWN, ANY: SEVERAL}
"""For names that are not known, and for those that a coarser record no longer tells apart."""


def writer(user: str, manager: str, operation: str) -> str:
    """`kubectl-edit (Update) by developer@example.com`."""
    if manager == ANY == user:
        return SEVERAL
    name = ANY_WORDS.get(manager) or visible(manager)
    claim = f"{name} ({visible(operation)})" if operation not in ("", ANY) else name
    return f"{claim} by {visible(user)}"


def namespace(name: str) -> str:
    return {"": CLUSTER, ANY: SEVERAL}.get(name) or visible(name)


def moment(at: dt.datetime | None) -> str:
    """Minutes are enough; UTC."""
    return f"{at.astimezone(dt.UTC):%Y-%m-%d %H:%M}" if at is not None else ""


def stamp(at: dt.datetime | None) -> str | None:
    """For machines."""
    return f"{at.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}" if at is not None else None


def shortened(texts: Iterable[str], most: int) -> list[str]:
    """The first, and how many more."""
    every = sorted(texts)
    return [visible(text) for text in every[:most]] + ([f"and {len(every) - most} more"] if len(every) > most else [])


def events(number: int) -> str:
    """
    >>> events(1), events(1500)
    ('1 event', '1,500 events')
    """
    return f"{number:,} {'event' if number == 1 else 'events'}"
