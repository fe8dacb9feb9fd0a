"""A journal in which something else stands than journals write: damaged as any other, and never the end of a process."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.strategies import START, result, send
from tests.journal.test_writer import Log, line
from webhook.cli import main
from webhook.report.journal import Journal, JournalReader, Limits, Line, NotAJournal, read
from webhook.report.sightings import pack
from webhook.report.ticks import ticks
from webhook.server import journaling
from webhook.server.inbox import Inbox, Sender
from webhook.server.journaling import Writer
from webhook.server.settings import JournalAt

COLUMNS = {
    "meta": "value",
    "records": "id key level revision policy rule event resource namespace name manager operation user dry_run "
    "outcome mode would owner paths count first last",
    "days": "record day count",
    "gone": "key into_key revision",
    "fresh": "id source upto line",
    "taken": "source upto at",
}
PLACES = [(table, column) for table, columns in COLUMNS.items() for column in columns.split()]
ODD: list[Any] = [
    *(None, "", "zzz", b"\xff", b"[]", 0, -1, 1.5, 1e300, float("inf"), 1 << 53, (1 << 63) - 1, -(1 << 63), 10**17),
    *("{", "null", "[1]", "[[]]", '["\\ud800"]', "[" * 5000, b"[" * 100_000, b"[1e17,[]]", "a b", "1 2,3"),
    *("2026-13-01", "20261121", "0001-01-01", "9999-12-31"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With something in each of its tables."""
    path = tmp_path_factory.mktemp("whole") / "journal.db"
    journal = Journal.open(path, Limits(max_records=9))
    for number in range(20):
        journal.note([Line("a/0", number, pack([result(number)], ticks(START)))])
        while journal.settle() or journal.tidy(START):
            pass
    journal.note([Line("a/1", 1, pack([result(19)], ticks(START)))])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert all(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in COLUMNS)
    journal.close()
    return path


@contextlib.contextmanager
def changed(whole: Path, statement: str, *given: Any) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        shutil.copy(whole, path)
        change(path, statement, *given)
        yield path


def change(path: Path, statement: str, *given: Any) -> None:
    impossible = contextlib.suppress(sqlite3.IntegrityError)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection, impossible:
        connection.execute(statement, given)


def is_read(path: Path, way: Callable[[], object]) -> bool:
    """It is, or it is said in a sentence."""
    try:
        way()
    except NotAJournal as error:
        assert str(error) == f"{path}: is damaged"
        return False
    return True


def all_is_read(path: Path) -> bool:
    """By whoever reads: for reports, and following the changes."""
    reader = JournalReader(path)
    ways = [
        lambda: list(read(path)),
        lambda: reader.changed_since(0),
        lambda: reader.changed_since(1),
        lambda: reader.id,
    ]
    return sum(is_read(path, way) for way in ways) == len(ways)


def written_on(path: Path, meanwhile: Callable[[], object] = lambda: None) -> str:
    """The process that writes goes on for a while, and is not stopped by anything; what it says in the end."""
    inbox = Inbox(1, 1)
    sender, log = Sender(inbox, 0), Log()
    writer = Writer(inbox, JournalAt(path, Limits(max_records=9)), lambda: True, log)
    for turn in range(50):
        if turn == 5:
            meanwhile()
        if turn < 30:
            send(sender, line(turn % 20), wait=0)
        writer._due = 0
        writer.step()
    writer.close()
    assert (inbox.waiting, inbox.lost, inbox.board.failing) == (0, 0, False)
    return inbox.board.text


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journaling, "SETTLE", 0.0)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(PLACES),
    st.sampled_from(ODD) | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats() | st.text() | st.binary(),
)
def test_whatever_stands_in_a_column_is_read_or_is_damage(whole: Path, place: tuple[str, str], odd: Any) -> None:
    table, column = place
    odd = odd.encode("utf-8", "replace").decode() if isinstance(odd, str) else odd
    with changed(whole, f"UPDATE OR IGNORE {table} SET {column} = ?", odd) as path:
        all_is_read(path)
        assert main(["report", str(path)]) in ((0, 1) if is_read(path, lambda: list(read(path))) else (2,))
        written_on(path)
        assert all_is_read(path)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(ODD))
def test_what_is_changed_while_it_is_written_ends_nobody(whole: Path, place: tuple[str, str], odd: Any) -> None:
    table, column = place
    with changed(whole, "SELECT 1") as path:
        written_on(path, lambda: change(path, f"UPDATE OR IGNORE {table} SET {column} = ?", odd))


BROKEN = {
    "meta emptied": "DELETE FROM meta",
    "meta without revision": "DELETE FROM meta WHERE name = 'revision'",
    "a text that is none": "UPDATE records SET name = CAST(x'ff' AS TEXT)",
    "paths that are none": "UPDATE records SET paths = '{'",
    "counts that are texts": "UPDATE records SET count = 'x'",
    "times that are texts": "UPDATE records SET first = 'zzz'",
    "a time beyond all calendars": "UPDATE records SET last = 9223372036854775807",
    "days that are none": "UPDATE days SET day = 'zzz'",
    "no number left": "UPDATE sqlite_sequence SET seq = 9223372036854775807",
    "a table gone": "DROP TABLE fresh",
    "a column gone": "ALTER TABLE records DROP COLUMN would",
}
READ = BROKEN.keys() - {"meta emptied", "meta without revision", "no number left"}
"""What a report needs."""


@pytest.mark.parametrize("statement", BROKEN.values(), ids=BROKEN.keys())
def test_an_unsound_journal_is_put_aside_and_a_new_one_begins(whole: Path, statement: str) -> None:
    with changed(whole, statement) as path:
        said = written_on(path)
        (aside,) = path.parent.glob("journal.db.damaged-*[0-9a-f]")
        assert said == f"journal.db is damaged: it is kept as {aside.name}, and a new journal has begun"
        assert all_is_read(path)


@pytest.mark.parametrize("statement", BROKEN.values(), ids=BROKEN.keys())
def test_a_journal_that_turns_unsound_while_it_is_written_is_put_aside(whole: Path, statement: str) -> None:
    with changed(whole, "SELECT 1") as path:
        said = written_on(path, lambda: change(path, statement))
        assert "journal.db is damaged: it is kept as journal.db.damaged-" in said
        assert all_is_read(path)


@pytest.mark.parametrize("statement", [text for name, text in BROKEN.items() if name in READ])
def test_a_report_of_an_unsound_journal_is_one_sentence(
    whole: Path, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with changed(whole, statement) as path:
        before = path.read_bytes()
        assert main(["report", str(path)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.splitlines()[-1]) == ("", f"Error: {path}: is damaged")
        assert path.read_bytes() == before


def test_what_no_answer_touches_is_found_too(whole: Path) -> None:
    """Readers would meet it."""
    statement = "UPDATE records SET user = x'00' WHERE id = (SELECT max(id) FROM records)"
    with changed(whole, statement) as path:
        inbox = Inbox(1, 1)
        writer = Writer(inbox, JournalAt(path, Limits()), lambda: True, Log())
        for _ in range(10):
            writer._due = 0
            writer.step()
        writer.close()
        assert "a new journal has begun" in inbox.board.text
