"""From the workers to the journal's process: memory that they share, so that what a worker has put there outlives it.

Each worker has a ring of its own, which it fills from any of its threads and the journal's process empties. A message
is in the ring from the moment that its end is written; whoever is killed before that has put nothing there. The
places in a ring count up for ever, so that "taken up to here" can be noted in the journal in the same transaction as
what was taken: no message is written twice, or not at all, whoever is killed when.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import select
import struct
import threading
import time
import zlib
from dataclasses import dataclass
from typing import NamedTuple

RING = 4 << 20
"""Bytes of a worker's ring: some ten thousand events while the journal cannot be written."""

WAIT = 0.005
"""Seconds that an answer waits for the journal at most."""

_HEAD, _TAIL, _PUT, _TAKEN, _LOST = range(5)
_START = 64
_MESSAGE = struct.Struct("@IIII")  # length, check, the bell of the thread that waits, how many events
_TO_THE_END = 0xFFFFFFFF  # instead of a length: the rest of the ring is left free


class Bell:
    """Wakes one waiter in another process. Made before any fork; one may wait at a time."""

    __slots__ = ("_in", "_out", "_poll")

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # so many unheard rings are as good as one more
            os.write(self._in, b"\0")

    def wait(self, seconds: float) -> None:
        if self._poll.poll(max(0.0, seconds) * 1000):
            with contextlib.suppress(BlockingIOError):
                os.read(self._out, 4096)


@dataclass(frozen=True, slots=True)
class Taken:
    """Messages of one ring, up to a place in it; and the bells of those who wait for them."""

    ring: int
    upto: int
    messages: tuple[tuple[int, bytes], ...]  # each with the place that it ends at
    events: int  # in them
    bells: frozenset[int]


class Ring:
    """One worker's. `put` by the worker, `take` and `done` by the journal's process."""

    def __init__(self, number: int, size: int = RING) -> None:
        self.number = number
        self._size = size
        self._memory = mmap.mmap(-1, _START + size)
        # Written with one stroke each, so that no other process sees half a number; struct would put zeros there first.
        self._numbers = memoryview(self._memory)[:_START].cast("Q")

    def put(self, message: bytes, bell: int = 0, events: int = 1) -> int | None:
        """The place that it ends at; None where there is no room. For one thread at a time."""
        head, tail = self._read(_HEAD), self._read(_TAIL)
        need = _MESSAGE.size + _rounded(len(message))
        at = head % self._size
        rest = self._size - at
        skip = rest if need > rest else 0
        if head + skip + need - tail > self._size:
            self.lose(events)
            return None
        if skip:
            if rest >= _MESSAGE.size:
                _MESSAGE.pack_into(self._memory, _START + at, _TO_THE_END, _check(b"", head), 0, 0)
            at = 0
        check = _check(message, head + skip)
        _MESSAGE.pack_into(self._memory, _START + at, len(message), check, bell, events)
        begin = _START + at + _MESSAGE.size
        self._memory[begin : begin + len(message)] = message
        end = head + skip + need
        self._write(_HEAD, end)
        self._write(_PUT, self._read(_PUT) + events)
        return end

    def lose(self, events: int) -> None:
        """So many more are never written."""
        self._write(_LOST, self._read(_LOST) + events)

    def take(self, most: int) -> Taken | None:
        """What is there, at most so many; it stays there until `done`. None where nothing is."""
        tail, head = self._numbers[_TAIL], self._numbers[_HEAD]
        if tail == head:
            return None
        place = tail
        messages: list[tuple[int, bytes]] = []
        bells: set[int] = set()
        events = 0
        while place < head and len(messages) < most:
            found = self._at(place)
            if found is None:
                break
            message, bell, held, place = found
            if message is not None:
                messages.append((place, message))
                bells.add(bell)
                events += held
        return Taken(self.number, place, tuple(messages), events, frozenset(bells)) if place > tail else None

    def done(self, upto: int, events: int) -> None:
        """What was taken up to there is written."""
        self._write(_TAKEN, self._read(_TAKEN) + events)
        self._write(_TAIL, upto)

    def is_done(self, place: int) -> bool:
        return self._read(_TAIL) >= place

    def catch_up(self, upto: int) -> None:
        """What the journal has noted as taken is so, though whoever took it was killed before it could say so here."""
        place, events = self._read(_TAIL), 0
        if not place < upto <= self._read(_HEAD):
            return
        while place < upto and (found := self._at(place)):
            _, _, held, place = found
            events += held
        self.done(upto, events)

    def _at(self, place: int) -> tuple[bytes | None, int, int, int] | None:
        """The message, its bell, its events, and where the next one begins; None while it cannot be seen whole."""
        at = place % self._size
        rest = self._size - at
        if rest < _MESSAGE.size:
            return None, 0, 0, place + rest
        length, check, bell, events = _MESSAGE.unpack_from(self._memory, _START + at)
        if length == _TO_THE_END:
            return (None, 0, 0, place + rest) if check == _check(b"", place) else None
        begin = _START + at + _MESSAGE.size
        message = self._memory[begin : begin + length]
        if check != _check(message, place):
            return None
        return message, bell, events, place + _MESSAGE.size + _rounded(length)

    @property
    def waiting(self) -> int:
        """Events that are not written yet."""
        if self._read(_HEAD) == self._read(_TAIL):
            return 0
        return max(1, self._read(_PUT) - self._read(_TAKEN))

    @property
    def lost(self) -> int:
        return self._read(_LOST)

    def _read(self, field: int) -> int:
        return self._numbers[field]

    def _write(self, field: int, value: int) -> None:
        self._numbers[field] = value


class Inbox:
    """All rings and bells, and what the journal's process says of itself. Made before any fork.

    Beside the rings there is one that holds nothing, for workers for which there is none: what they find is lost, and
    counted.
    """

    def __init__(self, rings: int, bells: int, size: int = RING) -> None:
        self.id = secrets.token_hex(8)
        self.none = rings
        self.rings = (*(Ring(number, size) for number in range(rings)), Ring(rings, _MESSAGE.size // 2))
        self.door = Bell()
        self.bells = (*(tuple(Bell() for _ in range(bells)) for _ in range(rings)), ())
        self.board = Board()

    @property
    def waiting(self) -> int:
        return sum(ring.waiting for ring in self.rings)

    @property
    def lost(self) -> int:
        return sum(ring.lost for ring in self.rings)

    def source(self, ring: int) -> str:
        """By what name the journal notes how far this ring was taken."""
        return f"{self.id}/{ring}"

    def take(self, most: int) -> tuple[Taken, ...]:
        return tuple(taken for ring in self.rings if (taken := ring.take(most)))

    def done(self, written: tuple[Taken, ...]) -> None:
        for taken in written:
            self.rings[taken.ring].done(taken.upto, taken.events)
            for bell in taken.bells:
                if bell < len(self.bells[taken.ring]):
                    self.bells[taken.ring][bell].ring()


class Sent(NamedTuple):
    """A message on its way: where it ends in the ring, if it found room, and the bell that tells when it is written."""

    end: int | None
    bell: int


class Sender:
    """One worker's end: puts messages into its ring, and waits a little for them to be written."""

    def __init__(self, inbox: Inbox, ring: int) -> None:
        self._ring, self._door, self._bells = inbox.rings[ring], inbox.door, inbox.bells[ring]
        self._free = list(range(len(self._bells)))
        self._lock = threading.Lock()
        self._late = 0

    def put(self, message: bytes, events: int = 1) -> Sent:
        """From here on it is kept, and the journal's process is about to write it."""
        bell = self._take_bell()
        with self._lock:
            end = self._ring.put(message, bell, events)
        self._door.ring()
        return Sent(end, bell)

    def wait(self, sent: Sent, seconds: float = WAIT) -> bool:
        """Whether it is written by the time this returns, which is soon either way. To be called once for each."""
        try:
            return sent.end is not None and self._wait(sent.end, sent.bell, seconds)
        finally:
            if sent.bell < len(self._bells):
                self._free.append(sent.bell)

    def lose(self, events: int) -> None:
        """They could not even be put down."""
        with self._lock:
            self._ring.lose(events)

    def _wait(self, place: int, bell: int, seconds: float) -> bool:
        """While the journal is late, nobody waits for it: it would only be later."""
        end = time.monotonic() + seconds
        while not self._ring.is_done(place):
            left = end - time.monotonic()
            if left <= 0 or not self._ring.is_done(self._late):
                self._late = max(self._late, place)
                return False
            if bell < len(self._bells):
                self._bells[bell].wait(left)
            else:  # more threads than bells
                time.sleep(min(left, 0.0005))
        return True

    def _take_bell(self) -> int:
        try:
            return self._free.pop()
        except IndexError:
            return len(self._bells)


class Board:
    """A page on which the journal's process says how it is."""

    _FLAGS, _LENGTH, _TEXT = 8, 12, 16
    _LONGEST = 1000

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._times = memoryview(self._page)[:8].cast("d")
        self.moved()  # so that one that does not even begin is missed

    def moved(self) -> None:
        """It has looked at its rings just now."""
        self._times[0] = time.monotonic()

    @property
    def silence(self) -> float:
        """Seconds since then; before, since the server began."""
        return time.monotonic() - self._times[0]

    def say(self, text: str) -> None:
        """What people should know; nothing where all is well."""
        said = text.encode("utf-8", "replace")[: self._LONGEST]
        self._page[self._TEXT : self._TEXT + len(said)] = said
        struct.pack_into("@I", self._page, self._LENGTH, len(said))

    @property
    def text(self) -> str:
        length = int(struct.unpack_from("@I", self._page, self._LENGTH)[0])
        return self._page[self._TEXT : self._TEXT + length].decode("utf-8", "replace")

    @property
    def failing(self) -> bool:
        """Whether the journal cannot be written."""
        return self._page[self._FLAGS + 1] != 0

    def fail(self, failing: bool) -> None:
        self._page[self._FLAGS + 1] = failing

    @property
    def closing(self) -> bool:
        return self._page[self._FLAGS] != 0

    def close(self) -> None:
        """No worker sends any more: what is there is to be written, and then no more."""
        self._page[self._FLAGS] = 1


def _check(message: bytes, place: int) -> int:
    """Of a message at its place: the last one there, of which a processor may still show a part, has another."""
    return zlib.crc32(message, place & 0xFFFFFFFF)


def _rounded(length: int) -> int:
    """So that every message begins where a number may stand."""
    return (length + 7) & ~7
