"""The memory between workers and the journal's process: in order, whole, once, and never waited for."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.strategies import send
from webhook.server.inbox import WAIT, Bell, Inbox, Ring, Sender

messages = st.lists(st.binary(max_size=120), max_size=60)


@given(messages, st.lists(st.integers(1, 5), max_size=40))
def test_what_is_put_is_taken_in_order_and_once(many: list[bytes], looks: list[int]) -> None:
    ring = Ring(0, 1024)
    expected, found = [], []
    pace = iter(looks)
    for message in many:
        if ring.put(message) is not None:
            expected.append(message)
        if taken := ring.take(next(pace, 1)):
            found += [message for _, message in taken.messages]
            ring.done(taken.upto, taken.events)
    while taken := ring.take(3):
        found += [message for _, message in taken.messages]
        ring.done(taken.upto, taken.events)
    assert found == expected
    assert (ring.waiting, ring.lost) == (0, len(many) - len(expected))


@given(messages)
def test_what_is_taken_stays_until_it_is_done(many: list[bytes]) -> None:
    ring = Ring(0, 16384)
    for message in many:
        ring.put(message)
    assert ring.take(100) == ring.take(100)


@given(messages, st.integers(0, 60))
def test_a_successor_goes_on_where_the_journal_says(many: list[bytes], written: int) -> None:
    ring = Ring(0, 16384)
    places = [ring.put(message, events=2) for message in many]
    upto = places[written - 1] if 0 < written <= len(places) else 0
    ring.catch_up(upto)
    left = ring.take(100)
    assert [message for _, message in left.messages] if left else many[written if upto else 0 :] == []
    assert ring.waiting == 2 * (len(many) - (written if upto else 0))


def test_a_journal_that_knows_more_than_the_ring_holds_is_not_believed() -> None:
    ring = Ring(0, 1024)
    ring.put(b"one")
    ring.catch_up(10_000)
    assert ring.waiting == 1


def test_a_ring_that_is_full_counts_what_it_cannot_hold() -> None:
    ring = Ring(0, 1024)
    put = [ring.put(b"x" * 100, events=3) for _ in range(20)]
    assert ring.lost == 3 * put.count(None) > 0
    assert ring.waiting == 3 * (20 - put.count(None))


def test_a_message_that_is_seen_in_part_is_not_taken() -> None:
    ring = Ring(0, 1024)
    ring.put(b"a" * 40)
    ring.put(b"b" * 40)
    ring._memory[64 + 16 + 40 + 16 + 20] = 0
    taken = ring.take(10)
    assert taken and [message for _, message in taken.messages] == [b"a" * 40]


def test_a_killed_worker_leaves_what_it_put() -> None:
    inbox = Inbox(1, 1, 1 << 20)
    worker = os.fork()
    if not worker:
        sender = Sender(inbox, 0)
        while True:
            send(sender, b"message", wait=0)
    while inbox.waiting < 100:
        time.sleep(0.001)
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    (taken,) = inbox.take(10**9)
    assert {message for _, message in taken.messages} == {b"message"}
    assert taken.events == len(taken.messages) >= 100
    inbox.done((taken,))  # it may have been filled
    assert inbox.rings[0].put(b"next") is not None


def test_an_answer_waits_no_longer_than_it_may_and_later_ones_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the system counts: how long it takes over that says how busy the machine is."""
    asked: list[float] = []
    wait = Bell.wait

    def noted(self: Bell, seconds: float) -> None:
        asked.append(seconds)
        wait(self, seconds)

    monkeypatch.setattr(Bell, "wait", noted)
    inbox = Inbox(1, 1)
    sender = Sender(inbox, 0)
    begin = time.monotonic()
    assert not send(sender, b"nobody takes this")
    assert time.monotonic() - begin >= WAIT
    assert max(asked, default=0) <= WAIT
    asked.clear()
    for _ in range(100):
        assert not send(sender, b"nor this")
    assert asked == []


def test_who_is_answered_knows_that_it_is_written() -> None:
    inbox = Inbox(1, 2)
    stop = threading.Event()

    def take() -> None:
        while not stop.is_set():
            inbox.door.wait(0.1)
            inbox.done(inbox.take(10))

    threading.Thread(target=take).start()
    sender = Sender(inbox, 0)
    try:
        assert all(send(sender, b"x", wait=60) for _ in range(50))
        assert inbox.waiting == 0
    finally:
        stop.set()


def test_more_threads_than_bells_wait_too() -> None:
    inbox = Inbox(1, 1)
    sender = Sender(inbox, 0)
    sender._free.clear()
    threading.Timer(0.05, lambda: inbox.done(inbox.take(10))).start()
    assert send(sender, b"x", wait=60)


def test_a_worker_without_a_ring_loses_what_it_finds_and_it_is_counted() -> None:
    inbox = Inbox(1, 1)
    assert not send(Sender(inbox, inbox.none), b"message")
    assert (inbox.lost, inbox.waiting, inbox.take(10)) == (1, 0, ())
