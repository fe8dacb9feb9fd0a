"""Where records come from: journals and log files here; other rooms add kinds of their own.

source = open_source("journal.db", KINDS)
for record in source.records(since=monday): ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.report.asking import Source, Unusable
from webhook.report.source_journal import JournalFile
from webhook.report.source_log import STDIN, LogFile

_SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source: which texts name one, and how it is opened."""

    name: str
    means: Callable[[str], bool]
    open: Callable[[str], Source]


def open_source(text: str, kinds: Sequence[Kind]) -> Source:
    """The source that a text names, by the first kind that knows it. Raises Unusable."""
    for kind in kinds:
        if kind.means(text):
            return kind.open(text)
    raise Unusable(f"{text}: is not {' or '.join(kind.name for kind in kinds)}")


def _is_journal(text: str) -> bool:
    try:
        return text != STDIN and _head(text) == _SQLITE
    except OSError:
        return False


def _is_log(text: str) -> bool:
    if text != STDIN:
        try:
            _head(text)
        except OSError as error:
            raise Unusable(f"{text}: {error.strerror}") from None
    return True


def _head(text: str) -> bytes:
    with Path(text).open("rb") as file:
        return file.read(len(_SQLITE))


KINDS = (Kind("a journal file", _is_journal, JournalFile), Kind("a log file", _is_log, LogFile))
"""What can be read without a cluster, in the order in which they are tried."""
