"""Which gunicorn worker answers an API server fastest: the measurement behind docs/adr/0003.

An API server keeps its connections. A sync worker cannot, so that every call pays for a TLS handshake.
"""

from __future__ import annotations

import statistics

from bench.material import review
from bench.serving import folder_for, load, server

MODELS = {
    "sync": "bare:sync:1",
    "gthread, 8 threads": "bare:gthread:8",
    "ours, 8 threads": "bare:webhook.server.worker.Worker:8",
}
CALLS, ROUNDS = 2000, 3


def run() -> None:
    body = [review("cap-eviction")]
    print(f"A bare view by worker model, 2 workers, 8 connections, median of {ROUNDS} rounds:")
    with folder_for() as folder:
        for name, which in MODELS.items():
            with server(folder / which.replace(":", "-"), which) as port:
                fresh = "sync" in which
                load(port, body, CALLS // 10, fresh=fresh)
                rates = [CALLS / load(port, body, CALLS, fresh=fresh) for _ in range(ROUNDS)]
            print(f"  {name:20} {statistics.median(rates):7.0f}/s")
