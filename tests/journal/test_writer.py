"""The process that writes: exactly what was put down, whoever is killed, and whatever the disk does meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journal.strategies import START, result, send
from webhook.report.journal import Journal, JournalReader, Limits
from webhook.report.sightings import pack
from webhook.report.ticks import ticks
from webhook.server import journaling
from webhook.server.inbox import WAIT, Inbox, Sender
from webhook.server.journaling import Writer, write_journal
from webhook.server.settings import JournalAt

FEW = 300
"""Events of one writer's life."""


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **values: Any) -> None:
        self.lines.append((event, values))

    error = warning = info


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def line(number: int) -> bytes:
    return pack([result(number)], ticks(START))


def counts(path: Path) -> Counter[str]:
    return Counter({record.name: record.count for record in JournalReader(path).records()})


def eventually(look: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end
        time.sleep(0.005)


@contextlib.contextmanager
def writing(inbox: Inbox, path: Path, log: Log | None = None) -> Iterator[Writer]:
    """In a thread of this process."""
    writer = Writer(inbox, JournalAt(path, Limits()), lambda: True, log or Log())
    thread = threading.Thread(target=writer.run)
    thread.start()
    try:
        yield writer
    finally:
        inbox.board.close()
        inbox.door.ring()
        thread.join(60)
        writer.close()


def fork(run: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        run()
    finally:
        os._exit(0)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_what_was_answered_is_in_the_journal_before(file: Path) -> None:
    inbox = Inbox(1, 1)
    with writing(inbox, file):
        sender = Sender(inbox, 0)
        assert send(sender, line(0), wait=60)
        assert counts(file) == {"web-0": 1}


def test_writers_that_are_killed_at_any_moment_write_each_event_once(file: Path) -> None:
    inbox = Inbox(2, 1)
    log = Log()
    senders = [Sender(inbox, ring) for ring in range(2)]
    sent = Counter[str]()
    for life in range(25):
        writer = fork(lambda: write_journal(inbox, JournalAt(file, Limits(max_records=100)), lambda: True, log))
        end, most = time.monotonic() + 0.02 + life * 0.004, sum(sent.values()) + FEW
        while time.monotonic() < end:
            if sum(sent.values()) == most:  # however late the writers begin, all of it has room
                time.sleep(0.001)
                continue
            number = sum(sent.values()) % 5
            send(senders[number % 2], line(number))
            sent[f"web-{number}"] += 1
        kill(writer)
    with writing(inbox, file):
        eventually(lambda: not inbox.waiting)
    assert inbox.lost == 0
    assert counts(file) == sent
    assert list(file.parent.glob("*damaged*")) == []


def test_workers_that_are_killed_at_any_moment_lose_nothing_that_was_answered(file: Path) -> None:
    inbox = Inbox(2, 1)
    answered = Counter[str]()
    with writing(inbox, file):
        for life in range(20):
            out, into = os.pipe()

            def work(ring: int = life % 2, life: int = life, into: int = into) -> None:
                sender = Sender(inbox, ring)
                while True:
                    send(sender, line(life))
                    os.write(into, b".")

            worker = fork(work)
            os.close(into)
            with os.fdopen(out, "rb") as told:
                first = told.read(1 + 5 * life)
                kill(worker)
                answered[f"web-{life}"] = len(first + told.read())
        eventually(lambda: not inbox.waiting)
    found = counts(file)
    assert all(found[name] in (count, count + 1) for name, count in answered.items())
    assert inbox.lost == 0


def test_while_another_process_holds_the_journal_answers_go_and_are_written_later(file: Path) -> None:
    inbox = Inbox(1, 1)
    log = Log()
    with writing(inbox, file, log):
        sender = Sender(inbox, 0)
        assert send(sender, line(0), wait=60)
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            times = []
            for number in range(200):
                begin = time.perf_counter()
                send(sender, line(number))
                times.append(time.perf_counter() - begin)
            eventually(lambda: inbox.board.text == "the journal cannot be written: another process holds it")
            assert inbox.board.failing
            other.execute("ROLLBACK")
        eventually(lambda: not inbox.waiting and not inbox.board.failing)
    assert statistics.median(times) < WAIT, "most do not wait at all"
    assert (sum(counts(file).values()), inbox.lost, inbox.board.text) == (201, 0, "")
    assert [event for event, _ in log.lines] == ["the journal cannot be written", "the journal is written again"]


def test_a_disk_that_takes_its_time_holds_no_answer_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, go = threading.Event(), threading.Event()
    note = Journal.note

    def stuck(self: Journal, lines: Any) -> None:
        slow.set()
        go.wait(60)
        note(self, lines)

    monkeypatch.setattr(Journal, "note", stuck)
    inbox = Inbox(1, 1)
    with writing(inbox, file):
        sender = Sender(inbox, 0)
        times = []
        for number in range(300):
            begin = time.perf_counter()
            send(sender, line(number))
            times.append(time.perf_counter() - begin)
        assert slow.wait(60)
        assert inbox.waiting == 300
        go.set()
        eventually(lambda: not inbox.waiting)
    assert statistics.median(times) < WAIT, "most do not wait at all"
    assert sum(counts(file).values()) == 300


def test_only_what_finds_no_room_is_lost_and_it_is_counted(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = True
    note = Journal.note

    def refuse(self: Journal, lines: Any) -> None:
        if full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        note(self, lines)

    monkeypatch.setattr(Journal, "note", refuse)
    inbox = Inbox(1, 1, 16384)
    with writing(inbox, file):
        sender = Sender(inbox, 0)
        for number in range(200):
            send(sender, line(number))
        eventually(lambda: inbox.board.text == "the journal cannot be written: the disk is full")
        lost = inbox.lost
        full = False
        eventually(lambda: not inbox.waiting)
    assert 0 < lost < 200
    assert sum(counts(file).values()) == 200 - lost


def test_a_commit_that_was_said_to_have_failed_is_not_written_twice(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Journal.note
    liar = iter([True])

    def lie(self: Journal, lines: Any) -> None:
        note(self, lines)
        if next(liar, False):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error

    monkeypatch.setattr(Journal, "note", lie)
    inbox = Inbox(1, 1)
    with writing(inbox, file):
        send(Sender(inbox, 0), line(0))
        eventually(lambda: not inbox.waiting)
    assert counts(file) == {"web-0": 1}


def test_a_journal_that_turns_out_to_be_damaged_is_put_aside(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Journal.open(file)
    for number in range(200):
        before.record([result(number)], START)
    while before.settle():
        pass
    before.close()
    note, found = Journal.note, []

    def notice(self: Journal, lines: Any) -> None:
        """As when a page is read again from the disk."""
        if not found:
            found.append(1)
            with file.open("r+b") as damaged:
                damaged.seek(4096)
                damaged.write(b"\xee" * 4096 * 20)
            error = sqlite3.DatabaseError("database disk image is malformed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        note(self, lines)

    monkeypatch.setattr(Journal, "note", notice)
    inbox = Inbox(1, 1)
    with writing(inbox, file):
        send(Sender(inbox, 0), line(1))
        eventually(lambda: "a new journal has begun" in inbox.board.text)
        eventually(lambda: not inbox.waiting)
    assert counts(file) == {"web-1": 1}
    assert len(list(file.parent.glob("*damaged*[0-9a-f]"))) == 1


def test_a_journal_that_is_overwritten_is_left_and_another_begun(file: Path) -> None:
    inbox = Inbox(1, 1)
    with writing(inbox, file):
        sender = Sender(inbox, 0)
        assert send(sender, line(0), wait=60)
        with file.open("r+b") as damaged:
            damaged.write(b"\xee" * 4096)
        eventually(lambda: "journal.db is not a journal and is left alone" in inbox.board.text)
        send(sender, line(1), wait=60)
    assert counts(file.with_name("journal.db.schema1")) == {"web-1": 1}


def test_where_both_files_are_somebody_elses_it_is_said_until_one_goes(file: Path) -> None:
    beside = file.with_name("journal.db.schema1")
    file.write_bytes(b"not a journal")
    beside.write_bytes(b"nor this")
    inbox = Inbox(1, 1)
    with writing(inbox, file):
        send(Sender(inbox, 0), line(0))
        told = "journal.db is not a journal, journal.db.schema1 is not a journal, and both are left alone"
        eventually(lambda: inbox.board.text == f"the journal cannot be written: {told}")
        assert beside.read_bytes() == b"nor this"
        beside.unlink()
        eventually(lambda: not inbox.waiting)
    assert counts(beside) == {"web-0": 1}


def test_a_journal_that_is_taken_away_begins_anew(file: Path) -> None:
    inbox = Inbox(1, 1)
    with writing(inbox, file):
        sender = Sender(inbox, 0)
        assert send(sender, line(0), wait=60)
        for path in file.parent.glob("journal.db*"):
            path.unlink()
        eventually(file.exists)
        send(sender, line(1), wait=60)
    assert counts(file) == {"web-1": 1}


def test_a_folder_that_is_not_there_yet_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "later" / "journal.db"
    inbox = Inbox(1, 1)
    with writing(inbox, path):
        send(Sender(inbox, 0), line(0))
        eventually(lambda: inbox.board.text == "the journal cannot be written: No such file or directory")
        path.parent.mkdir()
        eventually(lambda: not inbox.waiting)
    assert counts(path) == {"web-0": 1}


def test_the_end_does_not_wait_for_a_disk_for_ever(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journaling, "LAST_WORDS", 0.2)
    inbox = Inbox(1, 1)
    log = Log()
    writer = Writer(inbox, JournalAt(file.parent / "none" / "journal.db", Limits()), lambda: False, log)
    send(Sender(inbox, 0), line(0))
    begin = time.monotonic()
    writer.run()
    assert time.monotonic() - begin < 5
    assert inbox.waiting == 1
