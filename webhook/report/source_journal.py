"""Records from a journal file, which is left as it is: also one that a server is writing to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

from webhook.report.asking import Unusable
from webhook.report.records import Record


class JournalFile:
    """One file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def records(self, since: dt.datetime | None) -> Iterator[Record]:
        from webhook.report.journal import read
        from webhook.report.journal_file import NotAJournal

        try:
            yield from read(Path(self.name), since=since)
        except NotAJournal as error:
            raise Unusable(str(error)) from None
        except OSError as error:
            raise Unusable(f"{self.name}: {error.strerror}") from None

    def notes(self) -> tuple[str, ...]:
        return ()
