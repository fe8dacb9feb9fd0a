"""The real server with a journal beside the same without one: for requests in which rules find something, and others."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from bench.material import review
from bench.serving import _answer, _connect, folder_for, load, server

ROUNDS = 15
CALLS = 400  # one after the other, in each round
CROWD = 2000  # over several connections at once
OBJECTS = 50

KINDS = {"with an event": "kubectl-label-overwrite", "without an event": "flux-reapply-noop"}


def run() -> None:
    print(f"Journal, 2 workers, the median of calls in {ROUNDS} rounds taken in turn:")
    with folder_for() as folder, server(folder / "off", "ours") as off, server(folder / "on", "journal") as on:
        for kind, name in KINDS.items():
            bodies = _of_many_objects(review(name))
            _one_by_one({"off": off, "on": on}, bodies, kind)
            _at_once({"off": off, "on": on}, bodies, kind)
        _tell_counts(folder / "on" / "journal.db")


def _one_by_one(ports: dict[str, int], bodies: list[bytes], kind: str) -> None:
    taken: dict[str, list[float]] = {which: [] for which in ports}
    for number in range(ROUNDS + 1):
        for which, port in ports.items():
            times = _latencies(port, bodies)
            if number:  # the first round only warms up
                taken[which] += times
    median = {which: statistics.median(times) * 1000 for which, times in taken.items()}
    slower = median["on"] / median["off"] - 1
    print(
        f"  {kind:16} one at a time: off {median['off']:.3f} ms, on {median['on']:.3f} ms: {slower:+.1%}   (to reach: 15%)"
    )


def _at_once(ports: dict[str, int], bodies: list[bytes], kind: str) -> None:
    rates: dict[str, list[float]] = {which: [] for which in ports}
    for number in range(6):
        for which, port in ports.items():
            rate = CROWD / load(port, bodies, CROWD)
            if number:
                rates[which].append(rate)
    median = {which: statistics.median(values) for which, values in rates.items()}
    ratio = median["on"] / median["off"]
    print(f"  {kind:16} 8 connections: off {median['off']:.0f}/s, on {median['on']:.0f}/s: {ratio:.2f}")


def _latencies(port: int, bodies: list[bytes]) -> list[float]:
    times = []
    with _connect(port) as connection:
        for number in range(CALLS):
            body = bodies[number % len(bodies)]
            begin = time.perf_counter()
            connection.sendall(_HEAD.format(len(body)).encode() + body)
            _answer(connection)
            times.append(time.perf_counter() - begin)
    return times[20:]


_HEAD = "POST /validate?timeout=30s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"


def _of_many_objects(body: bytes) -> list[bytes]:
    """The same review about so many objects, so that what is found is not folded into one record."""
    told = json.loads(body)
    made = []
    for number in range(OBJECTS):
        name = f"web-{number}"
        told["request"]["name"] = told["request"]["object"]["metadata"]["name"] = name
        told["request"]["oldObject"]["metadata"]["name"] = name
        made.append(json.dumps(told).encode())
    return made


def _tell_counts(path: Path) -> None:
    from webhook.report.journal import JournalReader

    found = list(JournalReader(path).records())
    print(f"  the journal holds {sum(record.count for record in found)} events in {len(found)} records")
