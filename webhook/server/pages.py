"""The plain port: a few pages for probes and for Prometheus."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest


@dataclass(frozen=True, slots=True)
class Page:
    """One answer."""

    status: int
    kind: str
    body: bytes

    @classmethod
    def json(cls, status: int, body: Any) -> Page:
        return cls(status, "application/json", json.dumps(body).encode())


Pages = Mapping[str, Callable[[], Page]]
"""By path."""


def healthy() -> Page:
    return Page.json(200, {"status": "ok"})


def metrics_of(registry: CollectorRegistry) -> Page:
    return Page(200, CONTENT_TYPE_LATEST, generate_latest(registry))


class PagesServer(ThreadingHTTPServer):
    """Answers on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, pages: Pages) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.pages = pages

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A probe that hangs up is nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    server: PagesServer
    timeout = 10
    server_version = "fieldwarden"
    sys_version = ""

    def do_GET(self) -> None:
        make = self.server.pages.get(self.path.partition("?")[0])
        page = make() if make else Page.json(404, {"error": {"code": 404, "reason": "not-found", "message": _NO_PAGE}})
        self.send_response(page.status)
        self.send_header("Content-Type", page.kind)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        self.wfile.write(page.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base names it so)
        """Probes are not worth a line."""


_NO_PAGE = "no such page"
