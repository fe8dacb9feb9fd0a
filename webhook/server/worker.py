"""A gthread worker that drains without cutting a call and that idle connections cannot starve."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from gunicorn.workers import gthread

RECURSION = 12_000
"""JSON may nest deep; reviews are walked by recursion."""

STACK = 64 << 20
"""Bytes of address space for each thread's stack, for the same reason."""

COLLECT = (50_000, 20, 50)
"""A review is thousands of small objects that die with their last reference: looking for cycles among them, as often as
the interpreter does by itself, takes a seventh of the time and finds next to nothing."""

FIRST_BYTES = 0.05
"""Seconds that a thread waits for the first call on a new connection before the poller does."""

LINGER = 1.0
"""Seconds that an idle connection is kept at the very end, after the drain has told every client that talks to go."""


class Worker(gthread.ThreadWorker):  # type: ignore[misc]
    """What it adds to its base: the time when a call arrived, closing when asked, waiting outside of threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._call = threading.local()

    def init_process(self) -> None:
        sys.setrecursionlimit(RECURSION)
        gc.set_threshold(*COLLECT)
        threading.stack_size(STACK)
        super().init_process()

    def load_wsgi(self) -> None:
        inner: Callable[[dict[str, Any], Any], Iterable[bytes]] = self.app.wsgi()
        call = self._call

        def with_call(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            environ["fieldwarden.arrived"] = call.arrived
            environ["fieldwarden.close"] = call.conn.parser.mesg.force_close
            return inner(environ, start_response)

        self.wsgi = with_call

    def handle_quit(self, *_: Any) -> None:
        """Stop at once. The base would shut its pool down here, and wait forever for the lock that the main thread
        holds when the signal finds it handing work to the pool."""
        os._exit(0)

    def enqueue_req(self, conn: Any) -> None:
        conn.arrived = time.monotonic()
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """As the base does it, but a client that opens a connection for later does not hold a thread meanwhile."""
        self._call.conn = conn
        self._call.arrived = conn.arrived
        if not conn.initialized and not self._ready(conn):
            return gthread._DEFER
        return super().handle(conn)

    def _ready(self, conn: Any) -> bool:
        """Shake hands as soon as the client does; true when its first call is there, or when the base shall see why not."""
        if not conn.data_ready and not conn.wait_for_data(gthread.DEFAULT_WORKER_DATA_TIMEOUT):
            return False
        try:
            conn.sock.setblocking(True)
            conn.init()
        except OSError as error:  # TLS errors are such too
            self.log.debug("handshake failed: %s", type(error).__name__)
            conn.initialized = True
            conn.parser = iter(())  # nothing to read: the base closes the connection
            return True
        conn.data_ready = bool(conn.sock.pending()) if hasattr(conn.sock, "pending") else False
        return bool(conn.wait_for_data(FIRST_BYTES))

    def set_accept_enabled(self, enabled: bool) -> None:
        """When it stops for good, it takes what the kernel has accepted already, and then closes the port: a client that
        comes later is refused at once, and goes elsewhere, where it would wait in vain for an answer from here."""
        ending = not self.alive and self._accepting
        for listener in self.sockets if ending else ():
            before = -1
            while before != self.nr_conns:
                before = self.nr_conns
                self.accept(listener)
        super().set_accept_enabled(enabled)
        for listener in self.sockets if ending else ():
            listener.close()

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        if not self.alive:
            soon = time.monotonic() + LINGER
            for conn in (*self.keepalived_conns, *self.pending_conns):
                conn.timeout = min(conn.timeout, soon)
            timeout = min(timeout, LINGER / 4)
        super().wait_for_and_dispatch_events(timeout)
