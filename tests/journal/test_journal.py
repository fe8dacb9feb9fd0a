"""The journal's file: the same counts as a plain fold, whoever writes; bounded; and never somebody else's."""

from __future__ import annotations

import contextlib
import datetime as dt
import multiprocessing
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.strategies import START, result, sightings
from webhook.report.folding import fold, key_of, seen
from webhook.report.journal import Journal, JournalReader, Limits, Line, NotAJournal, read
from webhook.report.records import Record
from webhook.report.sightings import pack
from webhook.report.ticks import ticks


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def by_key(records: Iterable[Record]) -> dict[str, Record]:
    found = list(records)
    keyed = {key_of(record): record for record in found}
    assert len(keyed) == len(found)
    return keyed


def total(path: Path) -> int:
    return sum(record.count for record in JournalReader(path).records())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), sightings, st.sampled_from(["", "settle", "tidy", "reopen"])), max_size=12)
)
def test_any_sequence_by_any_writers_counts_as_a_plain_fold(steps: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        writers = [Journal.open(path) for _ in range(3)]
        for who, (found, at), then in steps:
            writers[who].record(found, at)
            if then == "settle":
                writers[who].settle(2)
            elif then == "tidy":
                writers[who].tidy(START)
            elif then == "reopen":
                writers[who].reopen()
        expected = fold(seen(one, at) for _, (found, at), _ in steps for one in found)
        assert by_key(JournalReader(path).records()) == expected
        while writers[0].settle():
            pass
        assert by_key(JournalReader(path).records()) == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(sightings, st.booleans(), st.booleans()), max_size=14))
def test_who_follows_the_changes_knows_what_is_there(steps: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal.open(Path(folder) / "journal.db", Limits(max_records=4, keep_days=1))
        known: dict[str, Record] = {}
        revision = 0
        for number, ((found, at), looks, later) in enumerate(steps):
            journal.record(found, at)
            journal.settle()
            while journal.tidy(START + dt.timedelta(days=2 * later)):
                pass
            if looks or number == len(steps) - 1:
                changes = journal.changed_since(revision)
                known = {} if changes.whole else known
                for key, _ in changes.gone:
                    known.pop(key, None)
                known |= dict(changes.records)
                revision = changes.revision
                assert known == by_key(journal.records())


def test_what_is_asked_for_is_found_settled_or_not(file: Path) -> None:
    journal = Journal.open(file)
    journal.record([result(1), result(2, namespace="bank")], START)
    journal.settle()
    journal.record([result(1), result(3, policy="other", dry_run=True)], START + dt.timedelta(hours=1))
    assert [r.count for r in journal.records(namespace="shop", policy="flux")] == [2]
    assert [r.name for r in journal.records(dry_run=True)] == ["web-3"]
    assert {r.name for r in journal.records(since=START + dt.timedelta(minutes=1))} == {"web-1", "web-3"}
    assert [r.name for r in read(file, since=START + dt.timedelta(days=1))] == []


def test_dry_runs_are_kept_apart_from_writes(file: Path) -> None:
    journal = Journal.open(file)
    for dry in (True, False, True):
        journal.record([result(dry_run=dry)], START)
    assert {record.dry_run: record.count for record in journal.records()} == {True: 2, False: 1}


def test_a_line_is_noted_with_how_far_its_source_is_taken(file: Path) -> None:
    journal = Journal.open(file)
    journal.note([Line("a/0", 10, pack([result()], ticks(START))), Line("a/1", 99, pack([result()], ticks(START)))])
    assert journal.taken() == {"a/0": 10, "a/1": 99}
    journal.settle()
    journal.note([Line("a/0", 20, pack([result()], ticks(START)))])
    assert Journal.open(file).taken() == {"a/0": 20, "a/1": 99}


def write_many(path: Path, who: int, times: int) -> None:
    journal = Journal.open(path)
    for number in range(times):
        journal.record([result(number % 7, user=f"user-{who}")], START)
        if number % 20 == 0:
            journal.settle()


def test_processes_that_begin_and_write_at_once_count_right(file: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=write_many, args=(file, who, 100)) for who in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    counts = {f"user-{who}": 0 for who in range(4)}
    for record in JournalReader(file).records():
        counts[record.user] += record.count
    assert set(counts.values()) == {100}
    assert list(file.parent.glob("*damaged*")) == []


def test_a_restart_goes_on_where_it_was(file: Path) -> None:
    first = Journal.open(file)
    first.record([result()], START)
    known = first.id
    first.close()
    second = Journal.open(file)
    second.record([result()], START)
    assert (second.id, total(file), second.notices) == (known, 2, ())


# Bounds


def test_beyond_the_limit_the_longest_not_seen_are_folded_and_totals_stay(file: Path) -> None:
    journal = Journal.open(file, Limits(max_records=300))
    for number in range(1000):
        journal.record([result(number, namespace=f"team-{number % 3}")], START + dt.timedelta(seconds=number))
    while journal.settle() or journal.tidy(START):
        pass
    records = list(journal.records())
    assert len(records) <= 300
    assert sum(record.count for record in records) == 1000
    assert all(sum(record.days.values()) == record.count for record in records)
    names = {record.name for record in records}
    assert {"*", "web-999"} <= names
    assert "web-0" not in names


def test_many_namespaces_are_folded_too(file: Path) -> None:
    journal = Journal.open(file, Limits(max_records=50))
    for number in range(400):
        journal.record([result(number, namespace=f"team-{number}", resource=f"kind{number % 90}")], START)
        journal.settle()
        while journal.tidy(START):
            pass
    records = list(journal.records())
    assert len(records) <= 50
    assert sum(record.count for record in records) == 400
    assert {"policy": "flux", "user": "*", "namespace": "*"}.items() <= {
        name: getattr(records[0], name) for name in ("policy", "user", "namespace")
    }.items()


def test_what_is_too_old_is_forgotten_by_day(file: Path) -> None:
    journal = Journal.open(file, Limits(keep_days=2))
    day = dt.timedelta(days=1)
    journal.record([result(1), result(2)], START)
    journal.record([result(2)], START + 3 * day)
    journal.settle()
    while journal.tidy(START + 4 * day):
        pass
    (left,) = journal.records()
    kept = (START + 3 * day).replace(hour=0)
    assert (left.name, left.count, left.days) == ("web-2", 1, {f"{kept:%Y-%m-%d}": 1})
    assert left.first == kept


def test_the_file_stays_small(file: Path) -> None:
    journal = Journal.open(file, Limits(max_bytes=400_000))
    for number in range(3000):
        paths = tuple(f".spec.a-rather-long-name-of-a-field-{n}" for n in range(20))
        journal.record([result(number, paths=paths)], START)
        if number % 20 == 19:
            while journal.settle() or journal.tidy(START):
                pass
    assert total(file) == 3000
    assert file.stat().st_size <= 600_000


def test_where_there_is_no_room_for_more_folding_makes_it(file: Path) -> None:
    journal = Journal.open(file, Limits(max_bytes=400_000))
    refused = 0
    for number in range(3000):
        try:
            journal.record([result(number, paths=(".spec." + "a" * 900,))], START)
        except sqlite3.OperationalError:
            refused += 1
            journal.make_room()
    assert 0 < refused < 100
    assert total(file) == 3000 - refused


# Trouble


def fill(connection: sqlite3.Connection) -> None:
    """No page more than there are."""
    connection.execute("PRAGMA max_page_count=1")


def test_a_full_file_refuses_and_goes_on_when_there_is_room(file: Path) -> None:
    journal = Journal.open(file)
    fill(journal._connection)
    written = 0
    with pytest.raises(sqlite3.OperationalError) as full:
        while True:
            journal.record([result(written)], START)
            written += 1
    assert full.value.sqlite_errorcode == sqlite3.SQLITE_FULL
    assert total(file) == written
    journal._connection.execute("PRAGMA max_page_count=100000")
    journal.record([result()], START)
    assert total(file) == written + 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 300 KB; where none may be mounted, a folder in which the file may not grow."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(place)], check=False)
    yield place
    if mounted.returncode == 0:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_on_a_full_disk_what_was_written_stays_readable(small_disk: Path) -> None:
    path, others = small_disk / "journal.db", small_disk / "others"
    others.write_bytes(b"x" * 150_000)
    journal = Journal.open(path, Limits(max_bytes=100_000))
    journal._connection.execute("PRAGMA wal_autocheckpoint=0")
    written = 0
    with pytest.raises(sqlite3.OperationalError):
        while True:
            journal.record([result(written)], START)
            written += 1
    assert total(path) == written > 0
    journal.close()
    others.unlink()
    again = Journal.open(path, Limits(max_bytes=100_000))
    assert (total(path), again.notices) == (written, ())
    while again.settle() or again.tidy(START):
        pass
    again.record([result()], START)
    assert total(path) == written + 1


def damage(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("how", ["pages", "short", "tables"])
def test_a_damaged_journal_is_put_aside_and_a_new_one_begins(file: Path, how: str) -> None:
    journal = Journal.open(file)
    for number in range(200):
        journal.record([result(number)], START)
    journal.settle()
    journal.settle()
    journal.close()
    if how == "pages":
        for page in range(1, 20):
            damage(file, page * 4096, b"\xee" * 2000)
    elif how == "short":
        with file.open("r+b") as whole:
            whole.truncate(4096 * 3 + 100)
    else:
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("DROP TABLE days")
    again = Journal.open(file)
    (aside,) = file.parent.glob("journal.db.damaged-*[0-9a-f]")
    assert again.notices == (f"journal.db is damaged: it is kept as {aside.name}, and a new journal has begun",)
    again.record([result()], START)
    assert total(file) == 1


@pytest.mark.parametrize("foreign", [b"host = example.com\n", b"SQLite format 3\0", b"\0" * 4096])
def test_a_foreign_file_is_left_alone(file: Path, foreign: bytes) -> None:
    file.write_bytes(foreign)
    journal = Journal.open(file)
    journal.record([result()], START)
    assert journal.path.name == "journal.db.schema1"
    assert journal.notices == ("journal.db is not a journal and is left alone: journal.db.schema1 is used instead",)
    assert file.read_bytes() == foreign
    assert total(journal.path) == 1


def test_another_programs_database_is_left_alone(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE records (id)")
    before = file.read_bytes()
    assert Journal.open(file).path != file
    assert file.read_bytes() == before


def test_a_journal_of_a_newer_schema_is_left_alone(file: Path) -> None:
    Journal.open(file).close()
    damage(file, 60, (99).to_bytes(4, "big"))
    before = file.read_bytes()
    journal = Journal.open(file)
    assert "of a newer fieldwarden and is left alone" in journal.notices[0]
    assert file.read_bytes() == before
    with pytest.raises(NotAJournal, match="newer"):
        next(read(file))


def make_foreign(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE records (id)")


def make_newer(path: Path) -> None:
    Journal.open(path).close()
    damage(path, 60, (99).to_bytes(4, "big"))


@pytest.mark.parametrize("other", [make_foreign, make_newer])
@pytest.mark.parametrize("first", [make_foreign, make_newer])
def test_the_file_that_is_used_instead_is_left_alone_as_well(
    file: Path, first: Callable[[Path], None], other: Callable[[Path], None]
) -> None:
    beside = file.with_name("journal.db.schema1")
    first(file)
    other(beside)
    before = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    with pytest.raises(FileExistsError, match=r"journal.db is .*, journal.db.schema1 is .*, and both are left alone"):
        Journal.open(file)
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == before


def test_an_empty_file_becomes_a_journal(file: Path) -> None:
    file.touch()
    Journal.open(file).record([result()], START)
    assert total(file) == 1


@pytest.mark.parametrize("content", [None, b"", b"no journal", b"SQLite format 3\0" + b"\1" * 200])
def test_a_reader_says_what_is_wrong_and_changes_nothing(file: Path, content: bytes | None) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(NotAJournal, match=str(file)):
        list(read(file))
    assert (file.read_bytes() if file.exists() else None) == content


def test_a_damaged_journal_is_not_read_and_not_put_aside(file: Path) -> None:
    Journal.open(file).close()
    with file.open("r+b") as whole:
        whole.truncate(4096 * 2)
    with pytest.raises(NotAJournal, match="damaged"):
        list(read(file))
    assert [path.name for path in file.parent.glob("*damaged*")] == []


def test_a_copy_in_a_folder_that_cannot_be_written_is_read(file: Path, tmp_path: Path) -> None:
    journal = Journal.open(file)
    journal.record([result()], START)
    journal.close()
    place = tmp_path / "read-only"
    place.mkdir()
    shutil.copy(file, place)
    place.chmod(0o500)
    assert total(place / file.name) == 1


def test_the_file_is_for_its_owner_alone(file: Path) -> None:
    Journal.open(file).record([result()], START)
    assert {path.name: path.stat().st_mode & 0o077 for path in file.parent.iterdir()} == {
        "journal.db": 0,
        "journal.db-wal": 0,
        "journal.db-shm": 0,
    }


def test_another_process_that_holds_the_journal_is_waited_for_no_longer_than_told(file: Path) -> None:
    journal = Journal.open(file, busy=0.01)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as held:
            journal.record([result()], START)
        assert held.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
        other.execute("ROLLBACK")
    journal.record([result()], START)
    assert total(file) == 1
