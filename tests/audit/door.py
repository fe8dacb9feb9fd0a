"""Where kubectl, Helm and the Python client find the audited server: what they write goes through the mirror."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.audit.mirror import Mirror, Said, Wish
from webhook.sandbox import Sandbox
from webhook.sandbox.certificates import Authority
from webhook.sandbox.users import write_kubeconfig

_OURS = frozenset({"host", "connection", "authorization", "content-length", "accept-encoding", "transfer-encoding"})
_THEIRS = frozenset({"Content-Type", "Warning", "Location"})


class Door:
    """An HTTPS server on loopback, with a kubeconfig for each of the sandbox's people."""

    def __init__(self, sandbox: Sandbox, mirror: Mirror) -> None:
        self.folder = sandbox.folder / "door"
        self.folder.mkdir()
        authority = Authority.create("the door")
        pair = authority.issue(self.folder, "door")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.mirror = mirror
        self._server.names = {user.token: name for name, user in sandbox.users.items()}
        self._server.sandbox = sandbox
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        (self.folder / "ca.crt").write_bytes(authority.pem)
        url = f"https://127.0.0.1:{self._server.server_address[1]}"
        for name, user in sandbox.users.items():
            write_kubeconfig(self.kubeconfig(name), url, self.folder / "ca.crt", user)
        self._thread = threading.Thread(target=self._server.serve_forever, name="door", daemon=True)
        self._thread.start()

    def kubeconfig(self, user: str) -> Path:
        return self.folder / "people" / f"{user}.yaml"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # clients keep their connections open
    mirror: Mirror
    sandbox: Sandbox
    names: dict[str, str]  # of the people, by token

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks off is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        headers = [*self._kept().items(), ("Authorization", self.headers.get("Authorization", ""))]
        self._answer(self.server.mirror.read("GET", self.path, None, headers))

    def do_POST(self) -> None:
        user = self.server.sandbox.users[self.server.names[self.headers["Authorization"].removeprefix("Bearer ")]]
        size = self.headers.get("Content-Length")
        payload = self.rfile.read(int(size)) if size is not None else None
        asked = urlsplit(self.path)
        wish = Wish(self.command, asked.path, asked.query, payload, user, self._kept())
        self._answer(self.server.mirror.send(wish))

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 - http.server's names

    def _kept(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() not in _OURS}

    def _answer(self, said: Said) -> None:
        self.send_response(said.status)
        for name, value in said.headers:
            if name in _THEIRS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(said.raw)))
        self.end_headers()
        self.wfile.write(said.raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Silent."""
