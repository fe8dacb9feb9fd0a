"""TLS: one context from a key pair, read again when its files change, the last good one kept."""

from __future__ import annotations

import contextlib
import socket
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509

from webhook.server.files import Outcome, settled, signature
from webhook.server.settings import KeyPair, SettingsError

IO_TIMEOUT = 30.0
"""Seconds that a read or a write on a connection may stall; an API server gives up on a call after 30 at most."""


class TimedSocket(ssl.SSLSocket):
    """Blocking mode means "with a timeout" here, so that a client that has gone away cannot hold a thread forever."""

    def setblocking(self, flag: bool) -> None:
        self.settimeout(IO_TIMEOUT if flag else 0.0)


class TimedContext(ssl.SSLContext):
    """Puts the same timeout on the handshake."""

    sslsocket_class = TimedSocket

    def wrap_socket(self, sock: socket.socket, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        sock.settimeout(IO_TIMEOUT)
        return super().wrap_socket(sock, *args, **kwargs)


class CertificateKeeper:
    """Holds `context` for new connections and `expires` (seconds since the epoch) of its certificate.

    The first reading raises SettingsError; a later one that fails leaves both as they were and fills `failure`.
    """

    def __init__(self, pair: KeyPair, client_ca: Path | None = None) -> None:
        self.pair = pair
        self._client_ca = client_ca
        self._files = (pair.certificate, pair.key, *((client_ca,) if client_ca else ()))
        self._seen = signature(self._files)
        self.context, self.expires = _read(pair, client_ca)
        self.failure = ""

    def check(self) -> Outcome:
        if signature(self._files) == self._seen:
            return "same"
        self._seen = settled(self._files)  # a certificate and its key are two files
        try:
            self.context, self.expires = _read(self.pair, self._client_ca)
        except SettingsError as error:
            self.failure = str(error)
            return "failed"
        self.failure = ""
        return "loaded"


def _read(pair: KeyPair, client_ca: Path | None) -> tuple[ssl.SSLContext, float]:
    for file in (pair.certificate, pair.key, *((client_ca,) if client_ca else ())):
        try:
            file.open("rb").close()
        except OSError as error:
            raise SettingsError(f"{file}: {error.strerror or type(error).__name__}") from None
    context = TimedContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # API servers do not resume sessions. With OpenSSL 3.5, a ticket for a client that has hung up leaves an error behind
    # which the thread's next read, of another client, takes for its own.
    context.num_tickets = 0
    # One HTTP/2 connection would land on one worker with every call of an API server.
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(pair.certificate, pair.key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or "not a PEM certificate and an unencrypted PEM key"
        raise SettingsError(
            f"{pair.certificate} and {pair.key} are not a usable pair: {str(reason).replace('_', ' ').lower()}"
        ) from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (ssl.SSLError, OSError):
            raise SettingsError(f"{client_ca} holds no usable PEM certificate of an authority") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context, _expiry(pair.certificate)


def _no_password() -> str:
    raise ValueError("encrypted")  # without this, OpenSSL would ask on the terminal


def _expiry(certificate: Path) -> float:
    """Of the first certificate in the file, which is the server's own."""
    with contextlib.suppress(ValueError):
        first = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
        return first.not_valid_after_utc.timestamp()
    raise SettingsError(f"{certificate} holds no readable PEM certificate")
