"""The pods behind the webhook's Service, and the certificate that each of them shows."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from webhook.cluster.api import Api, Object

PORT = "https"
"""The name of the Service's port."""

PATIENCE = 3.0
"""Seconds for a pod to show its certificate."""

_TOGETHER = 8


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A pod that is called, or was until now. `ready`: new calls go to it."""

    name: str
    address: str
    port: int
    ready: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """An endpoint, and its certificate, PEM; None where it could not be asked."""

    endpoint: Endpoint
    certificate: bytes | None


def endpoints(api: Api, namespace: str, service: str) -> tuple[Endpoint, ...]:
    """Those that may be asked something now: ready ones, and those that are ending and still serve. Raises ApiError."""
    listed = api.list(
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
        selector=f"kubernetes.io/service-name={service}",
    )
    found: dict[str, Endpoint] = {}
    for item in listed.items:
        for one in _endpoints(item):
            found.setdefault(one.name, one)
    return tuple(found[name] for name in sorted(found))


class Pods:
    """How pods are asked. Nothing is told to them."""

    def look(self, found: Iterable[Endpoint]) -> tuple[Shown, ...]:
        """Ask all of them at once, each for as long as is patient."""
        with ThreadPoolExecutor(_TOGETHER) as pool:
            return tuple(pool.map(lambda one: Shown(one, certificate_of(one.address, one.port)), found))

    def trusts(self, one: Endpoint, bundle: bytes, name: str) -> bool:
        """Whether an API server that trusts this bundle, and calls by this name, would take the pod for ours."""
        return bool(_shown(one.address, one.port, _strict(bundle), name))


def certificate_of(address: str, port: int) -> bytes | None:
    """What a server shows, PEM, whoever signed it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    shown = _shown(address, port, context)
    return ssl.DER_cert_to_PEM_cert(shown).encode() if shown else None


def _strict(bundle: bytes) -> ssl.SSLContext:
    """Any certificate of the bundle may end a chain, as in Go."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=bundle.decode("ascii", "ignore"))
    return context


def _shown(address: str, port: int, context: ssl.SSLContext, name: str | None = None) -> bytes | None:
    try:
        with (
            socket.create_connection((address, port), timeout=PATIENCE) as connection,
            context.wrap_socket(connection, server_hostname=name) as wrapped,
        ):
            return wrapped.getpeercert(binary_form=True)
    except OSError:
        return None


def _endpoints(item: Object) -> Iterator[Endpoint]:
    ports = [port for port in item.get("ports") or () if port.get("name") == PORT and port.get("port")]
    for each in item.get("endpoints") or ():
        conditions = each.get("conditions") or {}
        ready = conditions.get("ready", True) is not False
        if not ports or not (ready or conditions.get("serving")):
            continue
        for address in (each.get("addresses") or ())[:1]:
            name = (each.get("targetRef") or {}).get("name") or address
            yield Endpoint(name, address, int(ports[0]["port"]), ready)
