"""A webhook that allows everything and remembers every AdmissionReview: what the API server really sends."""

from __future__ import annotations

import json
import ssl
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from webhook.sandbox.certificates import Authority
from webhook.sandbox.client import Object


class Captured(NamedTuple):
    """One call: `phase` is the path it went to, `validate` or `mutate`; `review` the body as sent."""

    phase: str
    review: Object


class Capture:
    """Listens on loopback. Use as a context manager.

    with Capture.start() as capture:
        sandbox.register_webhooks(capture.url, capture.ca_pem, rules)
        ...
        calls = capture.take()
    """

    def __init__(self) -> None:
        self._calls: list[Captured] = []
        self._lock = threading.Lock()
        authority = Authority.create("fieldwarden capture")
        self.ca_pem = authority.pem
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.keep = self._keep
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory(prefix="fieldwarden-capture-") as folder:
            pair = authority.issue(Path(folder), "capture")
            context.load_cert_chain(pair.certificate, pair.key)
        # Handshakes belong into the threads of the connections, not into the one that accepts.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="capture", daemon=True)

    @classmethod
    def start(cls) -> Self:
        capture = cls()
        capture._thread.start()
        return capture

    def take(self) -> list[Captured]:
        """The calls since the last `take`, in the order in which they came."""
        with self._lock:
            calls, self._calls = self._calls, []
        return calls

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _keep(self, call: Captured) -> None:
        with self._lock:
            self._calls.append(call)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # the API server keeps its connections open
    keep: Callable[[Captured], None]

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks off is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer in two packets would wait for the client's delayed acknowledgement
    server: _Server

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        phase = self.path.partition("?")[0].rpartition("/")[2]
        self.server.keep(Captured(phase, review))
        response = {"uid": review["request"]["uid"], "allowed": True}
        answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Silent."""
