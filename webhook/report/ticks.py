"""Times: as whole numbers, which compare and add without loss, and out of texts that anybody may have written."""

from __future__ import annotations

import datetime as dt

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TICK = dt.timedelta(microseconds=1)
_YEARS = range(2000, 3000)
"""In which anything can have been seen: far from the ends of the calendar, in every zone."""


def ticks(at: dt.datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // _TICK


def moment(ticked: int) -> dt.datetime:
    """
    >>> moment(ticks(dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC))).isoformat()
    '2026-01-02T03:04:05.000006+00:00'
    """
    return _EPOCH + ticked * _TICK


def read_moment(text: str) -> dt.datetime:
    """In UTC, which counts where no zone is given. Raises ValueError, also for years in which nothing was seen.

    >>> read_moment("2026-11-21T06:00+01:00").isoformat()
    '2026-11-21T05:00:00+00:00'
    """
    at = dt.datetime.fromisoformat(text)
    if at.year not in _YEARS:
        raise ValueError(f"{text!r} is in no year from {_YEARS.start} to {_YEARS.stop - 1}")
    return at.astimezone(dt.UTC) if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)


def read_day(text: str) -> str:
    """The day itself, if it is one and spelt as days are here: 2026-11-21. Raises ValueError."""
    if read_moment(text).date().isoformat() != text:
        raise ValueError(f"{text!r} is no day such as 2026-11-21")
    return text
