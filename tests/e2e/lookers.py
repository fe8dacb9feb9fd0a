"""Look at the certificate that each pod shows, all the time, with the eyes of API servers that are up to date and that lag."""

from __future__ import annotations

import base64
import re
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from tests.e2e.release import Release

_EVERY = 0.25  # seconds
_LAG = 2.0  # seconds by which an API server may be late
_PATIENCE = 5.0  # seconds


@dataclass
class Lookers:
    """For the webhook's pods as they are when the block begins."""

    release: Release
    leaves: dict[str, list[bytes]] = field(default_factory=dict)  # by pod, in the order of their appearance
    bundles: list[bytes] = field(default_factory=list)  # PEM, likewise
    distrusted: list[str] = field(default_factory=list)
    looks: int = 0
    _published: list[tuple[float, bytes]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _failure: str = ""

    def __enter__(self) -> Self:
        self._read_bundle()
        names = [pod["metadata"]["name"] for pod in self.release.pods("webhook")]
        self._threads = [threading.Thread(target=self._follow_bundle, daemon=True)]
        self._threads += [threading.Thread(target=self._look_at, args=(name,), daemon=True) for name in names]
        for name in names:
            self.leaves[name] = []
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _follow_bundle(self) -> None:
        """And have kubelet look at the Secret meanwhile, which it would do by itself once a minute or so."""
        while not self._stop.wait(_EVERY):
            self._read_bundle()
            if int(time.monotonic() / _EVERY) % 4 == 0:
                self.release.touch()

    def _read_bundle(self) -> None:
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/fieldwarden"
        (webhook,) = self.release.cluster.get(path)["webhooks"]
        bundle = base64.b64decode(webhook["clientConfig"]["caBundle"])
        self._published.append((time.monotonic(), bundle))
        if bundle not in self.bundles:
            self.bundles.append(bundle)

    def _trusted(self) -> list[bytes]:
        """What is published, and what was a moment ago."""
        late = time.monotonic() - _LAG
        earlier = [bundle for at, bundle in list(self._published) if at <= late]
        return list(dict.fromkeys([self._published[-1][1], *earlier[-1:]]))

    def _look_at(self, pod: str) -> None:
        while not self._stop.is_set():
            argv = ("kubectl", "port-forward", f"pod/{pod}", ":8443", "-n", self.release.namespace)
            with subprocess.Popen(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=self.release.cluster.environment(),
            ) as forward:
                try:
                    self._look_through(forward, pod)
                finally:
                    forward.terminate()

    def _look_through(self, forward: subprocess.Popen[str], pod: str) -> None:
        """Until it breaks, or for as long as is wanted."""
        assert forward.stdout
        port = re.search(r":(\d+) ->", forward.stdout.readline())
        while port and forward.poll() is None and not self._stop.wait(_EVERY):
            for bundle in self._trusted():
                with suppress(ConnectionError, TimeoutError, ssl.SSLEOFError):
                    self._look(pod, int(port[1]), bundle)

    def _look(self, pod: str, port: int, bundle: bytes) -> None:
        context = ssl.create_default_context(cadata=bundle.decode())
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        name = f"fieldwarden-webhook.{self.release.namespace}.svc"
        try:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as plain,
                context.wrap_socket(plain, server_hostname=name) as wrapped,
            ):
                shown = wrapped.getpeercert(binary_form=True)
        except ssl.SSLCertVerificationError as error:
            self.distrusted.append(f"{pod}: {error.verify_message}")
            return
        self.looks += 1
        if shown and shown not in self.leaves[pod]:
            self.leaves[pod].append(shown)
