"""Times as whole numbers, which compare and add without loss."""

from __future__ import annotations

import datetime as dt

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TICK = dt.timedelta(microseconds=1)


def ticks(at: dt.datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // _TICK


def moment(ticked: int) -> dt.datetime:
    """
    >>> moment(ticks(dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC))).isoformat()
    '2026-01-02T03:04:05.000006+00:00'
    """
    return _EPOCH + ticked * _TICK
