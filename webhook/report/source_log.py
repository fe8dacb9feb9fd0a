"""Records from the server's log: a JSON object a line. Whatever else stands in such a file is passed over."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from webhook.report.asking import MORE, Unusable
from webhook.report.records import Record
from webhook.report.ticks import read_moment

STDIN = "-"
MAX_LINE = 1 << 20
_CUT = 256  # characters: the server's log shows no more of a path
_GZIP = b"\x1f\x8b"
_OUTCOMES = ("refused", "rewritten", "recorded")


class LogFile:
    """One file, plain or compressed by gzip; `-` is standard input. Lines may carry a prefix, as kubectl logs puts it."""

    def __init__(self, name: str) -> None:
        self.name = "standard input" if name == STDIN else name
        self._path = None if name == STDIN else Path(name)
        self._read = self._unreadable = self._cut = self._ended_early = 0

    def records(self, since: dt.datetime | None) -> Iterator[Record]:
        """One for each event of each line. A line that cannot be read is counted, and costs no other.

        Raises Unusable also where no line is the server's: nothing would be told of what it found.
        """
        try:
            with self._open() as file:
                for line in self._lines(file):
                    for record in self._of(line):
                        if since is None or record.last >= since:
                            yield record
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._ended_early = 1
        except OSError as error:
            raise Unusable(f"{self.name}: {error.strerror}") from None
        if not self._read and self._ended_early:
            raise Unusable(f"{self.name}: is damaged, and no line of the server's log stands before the damage")
        if not self._read and self._unreadable:
            raise Unusable(f"{self.name}: is no log of the server: none of {_lines(self._unreadable)} could be read")

    def notes(self) -> tuple[str, ...]:
        told = []
        if self._unreadable:
            told.append(f"{self.name}: {_lines(self._unreadable)} could not be read")
        if self._cut:
            told.append(f"{self.name}: {_lines(self._cut)} left out paths or events; the journal holds more")
        if self._ended_early:
            told.append(f"{self.name}: is damaged; what stands before the damage was read")
        return tuple(told)

    @contextlib.contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self._path is None:
            yield sys.stdin.buffer
            return
        with self._path.open("rb") as file:
            packed = file.peek(2)[:2] == _GZIP
            yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]  # both are binary files

    def _lines(self, file: IO[bytes]) -> Iterator[bytes]:
        while line := file.readline(MAX_LINE):
            if len(line) < MAX_LINE or line.endswith(b"\n"):
                yield line
                continue
            self._unreadable += 1
            while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass

    def _of(self, line: bytes) -> list[Record]:
        start = line.find(b"{")
        if start < 0:
            self._unreadable += bool(line.strip())
            return []
        try:
            told = json.loads(line[start:])
            if told.get("event") != "review" or not told.get("results"):
                self._note_other(told)
                return []
            found = [_record(told, item) for item in told["results"] if "more_results" not in item]
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            self._unreadable += 1
            return []
        cut = any("more_paths" in item or "more_results" in item for item in told["results"])
        self._cut += cut
        self._read += 1
        return found

    def _note_other(self, told: dict[str, Any]) -> None:
        """A line without results: the server's say what happened, and how grave that is."""
        is_ours = all(isinstance(told.get(key), str) for key in ("event", "level"))
        self._read += is_ours
        self._unreadable += not is_ours


def _record(line: dict[str, Any], item: dict[str, Any]) -> Record:
    """One event. Raises ValueError, TypeError or KeyError for what the server does not write."""
    at = read_moment(_text(line["time"]))
    action = item.get("action")
    outcome = _text(item["outcome"])
    if outcome not in _OUTCOMES:
        raise ValueError
    paths = {path if len(path) < _CUT else path + MORE for path in map(_text, item["paths"])}
    return Record(
        policy=_text(item["policy"]),
        rule=_text(item["rule"]),
        event=_text(item["event"]),
        resource=_text(line["resource"]),
        namespace=_text(line["namespace"] or ""),
        name=_text(line["name"] or ""),
        manager=_text(item.get("manager") or line["manager"] or ""),
        operation=_text(item.get("operation") or ""),  # the line's own is the request's: CREATE, UPDATE
        user=_text(line["user"]),
        dry_run=line["dry_run"] is True,
        outcome=outcome,
        mode=_text(item["mode"]),
        would=_text(item.get("would") or (action.lower() if action else "record")),
        owner=_text(item.get("owner") or ""),
        paths=tuple(sorted(paths | {MORE} if "more_paths" in item else paths)),
        count=1,
        first=at,
        last=at,
        days={f"{at:%Y-%m-%d}": 1},
    )


def _text(value: Any) -> str:
    """A text that can be printed and stored: half a surrogate pair cannot."""
    if not isinstance(value, str):
        raise TypeError
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _lines(number: int) -> str:
    return f"{number:,} line" if number == 1 else f"{number:,} lines"
