"""The real server over TLS beside a bare Flask view on the same gunicorn, and what a worker's memory does."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.material import ROOT, all_reviews, review

CONNECTIONS = 8
CLIENTS = 2  # processes, each with a share of the connections
WARM_UP = 400
CALLS = 4000
ROUNDS = 5


def throughput() -> None:
    print(f"Server over TLS, {CONNECTIONS} connections, 2 workers, median of {ROUNDS} rounds taken in turn:")
    with folder_for() as folder, server(folder / "ours", "ours") as ours, server(folder / "bare", "bare") as bare:
        for name in ("flux-reapply-noop", "cap-eviction", "kubectl-label-overwrite", "large-flux-apply"):
            calls = CALLS if name != "large-flux-apply" else CALLS // 4
            taken: dict[str, list[float]] = {"ours": [], "bare": []}
            for port in (ours, bare):
                load(port, [review(name)], WARM_UP)
            for _ in range(ROUNDS):
                for which, port in (("bare", bare), ("ours", ours)):
                    taken[which].append(calls / load(port, [review(name)], calls))
            rates = {which: statistics.median(values) for which, values in taken.items()}
            ratio = rates["ours"] / rates["bare"]
            print(
                f"  {name:26} bare {rates['bare']:7.0f}/s, fieldwarden {rates['ours']:7.0f}/s: {ratio:5.2f}   (to reach: 0.75)"
            )


def memory() -> None:
    reviews = all_reviews()
    with folder_for() as folder, server(folder / "ours", "ours", workers=1) as port:
        worker = _worker(folder / "ours")
        load(port, reviews, 5_000)
        first = _resident(worker)
        for done in range(10_000, 50_001, 5_000):
            load(port, reviews, 5_000)
            print(f"\r  {done:6} requests: {_resident(worker) - first:+.2f} MiB", end="", flush=True, file=sys.stderr)
        print(file=sys.stderr)
        growth = _resident(worker) - first
    print(
        f"Memory of a worker after 50,000 mixed requests: {growth:+.2f} MiB over {first:.1f} MiB after 5,000   (to reach: 5)"
    )


@contextmanager
def folder_for() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fieldwarden-bench-") as name:
        yield Path(name)


@contextmanager
def server(folder: Path, which: str, workers: int = 2) -> Iterator[int]:
    """A server of this kind in processes of its own; yields its port."""
    folder.mkdir(parents=True)
    ports = folder / "ports.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.servers", which, str(folder), str(workers)], stdout=log, stderr=log, env=env
        )
    try:
        end = time.monotonic() + 60
        while not ports.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the {which} server did not start:\n{(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)
        host, _, port = json.loads(ports.read_text())["listen"].rpartition(":")
        assert host == "127.0.0.1"
        (folder / "pid").write_text(str(process.pid))
        yield int(port)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def _worker(folder: Path) -> int:
    """The worker's process: the arbiter's child with the most memory."""
    arbiter = int((folder / "pid").read_text())
    children = Path(f"/proc/{arbiter}/task/{arbiter}/children").read_text().split()
    return max(map(int, children), key=_resident)


def _resident(pid: int) -> float:
    """MiB of memory that no other process shares, so that what was forked does not count."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) / 1024
    raise ValueError(pid)


def load(port: int, bodies: list[bytes], calls: int, *, fresh: bool = False) -> float:
    """Seconds for so many calls over all connections; `fresh` makes a connection for each call."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(CLIENTS + 1)
    share = calls // CLIENTS
    clients = [context.Process(target=_client, args=(port, bodies, share, n, barrier, fresh)) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    barrier.wait()
    begin = time.perf_counter()
    for client in clients:
        client.join()
    taken = time.perf_counter() - begin
    if any(client.exitcode for client in clients):
        raise SystemExit("a call was not answered with a review")
    return taken


def _client(port: int, bodies: list[bytes], calls: int, number: int, barrier: Any, fresh: bool) -> None:
    """One process with its share of the connections: a request on each, then the answers of each."""
    head = "POST /validate?timeout=30s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    requests = [head.format(len(body)).encode() + body for body in bodies]
    if fresh:
        barrier.wait()
        for done in range(calls):
            with _connect(port) as connection:
                connection.sendall(requests[(number + done) % len(requests)])
                _answer(connection)
        return
    connections = [_connect(port) for _ in range(CONNECTIONS // CLIENTS)]
    barrier.wait()
    sent = number
    for done in range(0, calls, len(connections)):
        batch = connections[: calls - done]
        for connection in batch:
            connection.sendall(requests[sent % len(requests)])
            sent += 1
        for connection in batch:
            _answer(connection)


def _connect(port: int) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return _CONTEXT.wrap_socket(plain)


_CONTEXT = ssl._create_unverified_context()


def _answer(connection: ssl.SSLSocket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(connection)
    head, _, rest = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(head.decode(errors="replace"))
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
    )
    while len(rest) < length:
        rest += _some(connection)


def _some(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise SystemExit("the connection was closed")
    return data
