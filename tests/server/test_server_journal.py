"""The journal of a real server: every event that was answered is in it, whoever is killed, and no value of a field."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import http.client
import json
import os
import signal
import sqlite3
import statistics
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from serving import PATIENCE, Server, eventually, policy, post, review, running

from webhook.report.journal import JournalReader, NotAJournal
from webhook.server.journaling import BUSY
from webhook.server.users import Hashed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def counts(file: Path) -> Counter[str]:
    """Events by the name of the object."""
    found: Counter[str] = Counter()
    with contextlib.suppress(NotAJournal):
        for record in JournalReader(file).records():
            found[record.name] += record.count
    return found


def written(server: Server) -> None:
    """Where there is much to do, an answer may come before that."""
    eventually(lambda: server.metric("fieldwarden_journal_waiting") == 0)


def is_settled(file: Path) -> bool:
    """What was found stands in a record: until more is found, there is nothing left to do."""
    with contextlib.suppress(NotAJournal):
        return bool(JournalReader(file).changed_since(0).records)
    return False


def about(name: str, **request: object) -> bytes:
    """A review in which one rule finds one thing, about an object of this name."""
    told = json.loads(review())
    told["request"] |= {"name": name, **request}
    return json.dumps(told).encode()


def test_what_is_found_is_in_the_journal(tmp_path: Path, policies: Path, file: Path) -> None:
    with running(tmp_path, policies, "--journal", str(file)) as server:
        eventually(file.exists)
        assert not server.post(about("one")).allowed
        written(server)
        (record,) = JournalReader(file).records()
        assert (record.policy, record.rule, record.event) == ("no-labels-by-hand", "who-writes", "writer")
        assert (record.resource, record.namespace, record.name) == ("deployments.apps", "default", "one")
        assert (record.manager, record.operation, record.user) == ("kubectl-label", "Update", "developer@example.com")
        assert (record.outcome, record.mode, record.would, record.count) == ("refused", "Enforce", "deny", 1)
        server.post(about("two", dryRun=True))
        written(server)
        assert [record.dry_run for record in JournalReader(file).records()] == [False, True]
        assert server.stop() == 0
    assert counts(file) == {"one": 1, "two": 1}


def test_without_an_event_nothing_is_written(tmp_path: Path, policies: Path, file: Path) -> None:
    with running(tmp_path, policies, "--journal", str(file)) as server:
        log = file.with_name("journal.db-wal")
        server.post(about("one"))
        eventually(lambda: is_settled(file))
        before = file.read_bytes(), log.read_bytes()
        for _ in range(20):
            assert server.post(review("flux-reapply-noop")).allowed
        assert (file.read_bytes(), log.read_bytes()) == before


def test_without_being_asked_a_server_keeps_no_journal(server: Server) -> None:
    server.post(review())
    metrics = server.get("/metrics")[1].splitlines()
    assert not [line for line in metrics if line.startswith("fieldwarden_journal")]
    assert not [path for path in server.log_file.parent.rglob("*") if "journal" in path.name]


def send_until(server: Server, stop: threading.Event, answered: Counter[str], sent: Counter[str]) -> None:
    connection = server.connect()
    number = 0
    while not stop.is_set():
        name = f"{threading.get_ident()}-{number % 5}"
        number += 1
        sent[name] += 1
        try:
            post(connection, about(name))
            answered[name] += 1
        except (OSError, ValueError, http.client.HTTPException):
            connection.close()
            connection = server.connect()
    connection.close()


def test_killed_workers_and_killed_writers_lose_no_event_that_was_answered(
    tmp_path: Path, policies: Path, file: Path
) -> None:
    with running(tmp_path, policies, "--journal", str(file), "--log-level", "warning") as server:
        stop, answered, sent = threading.Event(), Counter[str](), Counter[str]()
        clients = [threading.Thread(target=send_until, args=(server, stop, answered, sent)) for _ in range(3)]
        for client in clients:
            client.start()
        try:
            for _ in range(4):
                before = sum(answered.values())
                workers = set(server.workers())
                os.kill(min(workers), signal.SIGKILL)
                eventually(lambda: len(set(server.workers()) - workers) == 1)  # noqa: B023 - it is over by then
                eventually(lambda: sum(answered.values()) > before + 100)  # noqa: B023
                os.kill(writer_of(server), signal.SIGKILL)
        finally:
            stop.set()
            for client in clients:
                client.join(PATIENCE)
        eventually(lambda: server.metric("fieldwarden_journal_waiting") == 0)
        assert server.metric("fieldwarden_journal_lost_total") == 0
        assert server.stop() == 0
    found = counts(file)
    assert all(answered[name] <= found[name] <= sent[name] for name in sent)
    assert sum(found.values()) <= sum(answered.values()) + 4 * 3
    assert not list(file.parent.glob("*damaged*"))


def writer_of(server: Server) -> int:
    """The process that has the journal open, and is no worker."""
    found: list[int] = []

    def look() -> bool:
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        found[:] = [int(pid) for pid in children if "journal.db" in " ".join(open_files(int(pid)))]
        return bool(found)

    eventually(look)
    return found[0]


def open_files(pid: int) -> list[str]:
    names = []
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                names.append(str(link.readlink()))
    return names


def test_a_restart_goes_on_counting(tmp_path: Path, policies: Path, file: Path) -> None:
    for _ in range(2):
        with running(tmp_path, policies, "--journal", str(file)) as server:
            server.post(about("one"))
            server.stop()
        (tmp_path / "ports.json").unlink()
    assert counts(file) == {"one": 2}


def test_what_waits_when_the_server_is_told_to_stop_is_written(tmp_path: Path, policies: Path, file: Path) -> None:
    with running(tmp_path, policies, "--journal", str(file)) as server:
        eventually(file.exists)
        os.kill(writer_of(server), signal.SIGSTOP)
        stopped = writer_of(server)
        server.post(about("one"))
        assert server.metric("fieldwarden_journal_waiting") == 1
        os.kill(stopped, signal.SIGCONT)
        assert server.stop() == 0
    assert counts(file) == {"one": 1}


def test_while_the_journal_is_held_answers_come_as_fast_and_a_warning_says_why(
    tmp_path: Path, policies: Path, file: Path
) -> None:
    with running(tmp_path, policies, "--journal", str(file)) as server:
        server.post(about("one"))
        written(server)
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with contextlib.closing(server.connect()) as connection:
                post(connection, about("one"))
                assert statistics.median(seconds_of(connection, about("one")) for _ in range(100)) < BUSY / 2
            told = "the journal cannot be written: another process holds it"
            eventually(lambda: told in server.ready()["warnings"])
            assert server.get("/readyz")[0] == 200
            assert server.metric("fieldwarden_journal_failing") == 1
            other.execute("ROLLBACK")
        eventually(lambda: server.metric("fieldwarden_journal_waiting") == 0)
        eventually(lambda: server.ready()["warnings"] == [])
        assert counts(file) == {"one": 102}
        assert server.metric("fieldwarden_journal_lost_total") == 0


def test_a_journal_that_cannot_even_be_opened_is_late_from_the_beginning(
    tmp_path: Path, policies: Path, file: Path
) -> None:
    """As on a disk that does not answer."""
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with running(tmp_path, policies, "--journal", str(file)) as server:
            assert not server.post(about("one")).allowed
            eventually(lambda: server.ready()["warnings"] == ["the journal is late: 1 events wait to be written"])
            assert server.get("/readyz")[0] == 200
            fcntl.flock(folder, fcntl.LOCK_UN)
            eventually(lambda: server.ready()["warnings"] == [])
            written(server)
    finally:
        os.close(folder)
    assert counts(file) == {"one": 1}


def seconds_of(connection: http.client.HTTPSConnection, body: bytes) -> float:
    begin = time.perf_counter()
    assert post(connection, body).status == 200
    return time.perf_counter() - begin


SECRET = "correct-horse-battery-staple"


def test_values_of_secrets_are_nowhere(tmp_path: Path, policies: Path, file: Path) -> None:
    told = json.loads(review("secret-update"))
    encoded = base64.b64encode(SECRET.encode()).decode()
    for which in ("object", "oldObject"):
        told["request"][which]["data"] = {"password": encoded if which == "object" else "b2xk"}
        told["request"][which].setdefault("metadata", {}).setdefault("annotations", {})["note"] = SECRET
    (policies / "all.yaml").write_text(policy("nobody-writes", '"*"', "Audit"))
    with running(tmp_path, policies, "--journal", str(file), "--hash-users", *key_file(tmp_path)) as server:
        for path in ("/validate", "/mutate"):
            server.post(json.dumps(told).encode(), path)
        written(server)
        assert sum(counts(file).values()) > 0
        everything = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "tls"]
        content = b"".join(path.read_bytes() for path in everything)
        server.stop()
    content += file.read_bytes()
    assert told["request"]["name"].encode() in content
    for value in (SECRET.encode(), encoded.encode(), b"b2xk"):
        assert value not in content


def key_file(folder: Path) -> tuple[str, str]:
    key = folder / "key"
    key.write_text("a key of enough bytes\n")
    return "--hash-users-key-file", str(key)


def test_hashed_users_are_named_nowhere_but_to_themselves(tmp_path: Path, policies: Path, file: Path) -> None:
    user = "developer@example.com"
    hashed = Hashed(b"a key of enough bytes")(user)
    with running(tmp_path, policies, "--journal", str(file), "--hash-users", *key_file(tmp_path)) as server:
        reply = server.post(about("one"))
        response = reply.body["response"]
        assert user in response["status"]["message"]
        assert f"kubectl-label (Update) by {hashed} may not write here" in response["auditAnnotations"]["events"]
        assert user not in json.dumps(response["auditAnnotations"])
        written(server)
        assert [line["user"] for line in server.lines("review")] == [hashed]
        server.stop()
        assert [record.user for record in JournalReader(file).records()] == [hashed]
        assert user.encode() not in server.log_file.read_bytes() + file.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--hash-users"], "go together"),
        (["--hash-users", "--hash-users-key-file", "KEY"], "must have at least 16 bytes"),
        (["--hash-users", "--hash-users-key-file", "NONE"], "No such file"),
        (["--journal", "NONE/journal.db"], "there is no such folder"),
    ],
)
def test_a_server_that_cannot_keep_its_promise_does_not_start(
    tmp_path: Path, policies: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "short").write_text("short")
    places = {"KEY": str(tmp_path / "short"), "NONE": str(tmp_path / "none")}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    with pytest.raises(AssertionError, match=said), running(tmp_path, policies, *arguments):
        pass
