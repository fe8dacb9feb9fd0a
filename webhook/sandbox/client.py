"""Talk to the API server without a client library: one kept connection a thread, warnings and errors as they come."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from webhook.sandbox.errors import SandboxError

Object = dict[str, Any]
_TIMEOUT = 60  # seconds; above the API server's own limit for a webhook
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')


class Reply(NamedTuple):
    """An API server's answer: HTTP status, the decoded body (`{"text": ...}` when it is no JSON object), warnings."""

    status: int
    body: Object
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request. `content` is sent as it is when it is bytes, else as JSON."""

    method: str
    path: str  # absolute, without the query
    content: object = None
    content_type: str = "application/json"
    params: Mapping[str, str] | None = None
    token: str = ""
    user_agent: str = "fieldwarden-sandbox"


class Client:
    """Safe for threads: each has a connection of its own."""

    def __init__(self, url: str, ca_file: str, timeout: float = _TIMEOUT) -> None:
        self._timeout = timeout
        self._address = urlsplit(url)
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._mine = threading.local()
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    def send(self, call: Call) -> Reply:
        """The answer, whatever its status. Raises SandboxError when there is none."""
        target = call.path + (f"?{urlencode(call.params)}" if call.params else "")
        content = call.content
        payload = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        headers = {"Accept": "application/json", "User-Agent": call.user_agent}
        if call.token:
            headers["Authorization"] = f"Bearer {call.token}"
        if payload is not None:
            headers["Content-Type"] = call.content_type
        try:
            return _decode(self._exchange(call.method, target, payload, headers))
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise SandboxError(f"{call.method} {call.path}: no answer from the API server: {error!r}") from error

    def path_of(self, item: Object, token: str) -> str:
        """Where an object with apiVersion, kind and metadata lives; its plural is asked for once."""
        api_version, kind, meta = item["apiVersion"], item["kind"], item["metadata"]
        plural, namespaced = self._plural(api_version, kind, token)
        parts = [_root(api_version)]
        if namespaced:
            parts.append(f"namespaces/{quote(meta.get('namespace', 'default'), safe='')}")
        parts.append(plural)
        if name := meta.get("name"):
            parts.append(quote(name, safe=""))
        return "/".join(parts)

    def close(self) -> None:
        """Close this thread's connection; the next call opens another."""
        connection = getattr(self._mine, "connection", None)
        self._mine.connection = None
        if connection is not None:
            connection.close()

    def _exchange(
        self, method: str, target: str, payload: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = getattr(self._mine, "connection", None)
        if connection is not None:
            try:
                return _round_trip(connection, method, target, payload, headers)
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
                self.close()  # the server closed an idle connection before it saw the request
        connection = http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, context=self._tls, timeout=self._timeout
        )
        self._mine.connection = connection
        return _round_trip(connection, method, target, payload, headers)

    def _plural(self, api_version: str, kind: str, token: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._plurals:
            reply = self.send(Call("GET", _root(api_version), token=token))
            for resource in reply.body.get("resources", ()):
                if "/" not in resource["name"]:
                    self._plurals[api_version, resource["kind"]] = resource["name"], resource["namespaced"]
        try:
            return self._plurals[api_version, kind]
        except KeyError:
            raise SandboxError(f"The API server does not serve {kind} in {api_version}.") from None


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _round_trip(
    connection: http.client.HTTPSConnection, method: str, target: str, payload: bytes | None, headers: dict[str, str]
) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request(method, target, payload, headers)
    response = connection.getresponse()
    return response, response.read()


def _decode(answer: tuple[http.client.HTTPResponse, bytes]) -> Reply:
    response, content = answer
    warnings = [text for header in response.headers.get_all("Warning", ()) for text in _warnings(header)]
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"text": content.decode(errors="replace")}
    return Reply(response.status, body, warnings)


def _warnings(header: str) -> list[str]:
    """The texts of a Warning header.

    >>> _warnings('299 - "a \\\\"quoted\\\\" word"')
    ['a "quoted" word']
    """
    whole = header.encode("latin-1", "replace").decode(errors="replace")  # http.client reads headers as Latin-1
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(whole)]
