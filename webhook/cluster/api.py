"""The API server in a dozen verbs: plain dicts in and out, errors by what they mean.

Of the client library only what logs in and connects is used; no model of it, so that no field is ever lost or added.
"""

from __future__ import annotations

import base64
import binascii
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from webhook import __version__
from webhook.cluster.access import configuration
from webhook.cluster.errors import Gone, Unreachable, error_of

Object = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

MANAGER = "fieldwarden"
"""Under which everything is applied, without force: what others own stays theirs."""

PAGE = 500
CONNECT = 5.0
ANSWER = 30.0
SILENCE = 100.0
"""Seconds: to connect, for an answer, and without a word in a watch, before it is given up. Bookmarks come every minute where
anything changes in the cluster, and more seldom where nothing does."""

_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a collection at one moment."""

    items: tuple[Object, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. A BOOKMARK's object has a resourceVersion and nothing else."""

    type: EventType
    object: Object

    @property
    def resource_version(self) -> str:
        return version_of(self.object)


def version_of(item: Mapping[str, Any]) -> str:
    """The resourceVersion of an object or a list.

    >>> version_of({"metadata": {"resourceVersion": "7"}})
    '7'
    """
    return str(item.get("metadata", {}).get("resourceVersion", ""))


def decoded(text: object) -> bytes:
    """Bytes as an object holds them, in Base64; nothing where it is none.

    >>> decoded("YQ=="), decoded("?a"), decoded(None)
    (b'a', b'', b'')
    """
    try:
        return base64.b64decode(text) if isinstance(text, str) else b""
    except binascii.Error:
        return b""


class Api:
    """One API server, as one user. Paths are absolute, such as /api/v1/namespaces. Safe for threads.

    Every method raises an ApiError: Unreachable, Denied, Missing, Conflict, Gone, Invalid.
    """

    def __init__(self, configuration: Any, *, agent: str = MANAGER) -> None:
        """`configuration` is the client library's; `agent` says which part of fieldwarden asks."""
        from kubernetes.client.rest import RESTClientObject

        configuration.socket_options = _keepalive()
        self._configuration = configuration
        self._agent = f"{agent}/{__version__}"
        self._pool = RESTClientObject(configuration).pool_manager

    @classmethod
    def connect(cls, kubeconfig: Path | None = None, *, agent: str = MANAGER) -> Api:
        """By this kubeconfig, KUBECONFIG, the pod's service account or ~/.kube/config. Raises Unconfigured."""
        return cls(configuration(kubeconfig), agent=agent)

    def list(self, path: str, *, selector: str = "") -> Listing:
        """All of a collection that has such labels, page by page."""
        items: list[Object] = []
        params = {"limit": str(PAGE)} | ({"labelSelector": selector} if selector else {})
        while True:
            page = self.request("GET", path, params=params)
            items += page.get("items") or ()
            more = page.get("metadata", {}).get("continue")
            if not more:
                return Listing(tuple(items), version_of(page))
            params["continue"] = more

    def watch(self, path: str, resource_version: str, timeout: float) -> Iterator[WatchEvent]:
        """What changes after that version, with bookmarks, once the server has agreed to tell it.

        Ends by itself after about `timeout` seconds, and when nothing more is heard; raises while it is read, too.
        """
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(timeout))),
        }
        what = f"watch {path}"
        answer = self._send("GET", path, None, _JSON, params, SILENCE)
        if answer.status != 200:
            with closing(answer):
                raise error_of(answer.status, _read(answer, what), what)
        return _events(answer, what)

    def get(self, path: str) -> Object:
        return self.request("GET", path)

    def create(self, path: str, item: Object) -> Object:
        """`path` is the collection's. Conflict: it exists."""
        return self.request("POST", path, item, params={"fieldManager": MANAGER})

    def replace(self, path: str, item: Object) -> Object:
        """Conflict: it is not as it was at the resourceVersion in the object."""
        return self.request("PUT", path, item, params={"fieldManager": MANAGER})

    def apply(self, path: str, item: Object) -> Object:
        """By server-side apply, never with force. Conflict: others own some of these fields."""
        return self.request(
            "PATCH", path, item, content_type=_APPLY, params={"fieldManager": MANAGER, "force": "false"}
        )

    def patch(self, path: str, change: Object) -> Object:
        """Merge into an object; a key with None goes away. Conflict: another resourceVersion than in `change`."""
        return self.request("PATCH", path, change, content_type=_MERGE, params={"fieldManager": MANAGER})

    def patch_status(self, path: str, status: Object) -> Object:
        """Merge into `.status`. `path` is the object's."""
        return self.patch(f"{path}/status", {"status": status})

    def delete(self, path: str) -> Object:
        return self.request("DELETE", path)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = _JSON,
        params: Mapping[str, str] | None = None,
    ) -> Object:
        """Any other call: the decoded answer."""
        what = f"{method.lower()} {path}"
        answer = self._send(method, path, body, content_type, params, ANSWER)
        with closing(answer):
            content = _read(answer, what)
            answer.release_conn()
        if not 200 <= answer.status < 300:
            raise error_of(answer.status, content, what)
        if not isinstance(content, dict):
            raise Unreachable(f"{what}: the answer is no JSON object", answer.status)
        return content

    def _send(
        self, method: str, path: str, body: object, content_type: str, params: Mapping[str, str] | None, patience: float
    ) -> Any:
        """The answer, unread."""
        import urllib3

        url = f"{self._configuration.host}{path}" + (f"?{urlencode(params)}" if params else "")
        headers = {"Accept": _JSON, "User-Agent": self._agent, **self._credentials()}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            return self._pool.request(
                method,
                url,
                body=json.dumps(body).encode() if body is not None else None,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT, read=patience),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{method.lower()} {path}: {_why(error)}") from None

    def _credentials(self) -> dict[str, str]:
        """Asked for at each call: a pod's token is renewed in place, and others expire."""
        try:
            settings = self._configuration.auth_settings()
        except Exception as error:  # a file, or a program that is asked for a token
            raise Unreachable(f"the credentials cannot be read: {type(error).__name__}") from None
        return {one["key"]: one["value"] for one in settings.values() if one["in"] == "header" and one["value"]}


def _events(answer: Any, what: str) -> Iterator[WatchEvent]:
    with closing(answer):
        for line in _lines(answer, what):
            yield _event(line, what)


def _lines(answer: Any, what: str) -> Iterator[bytes]:
    import urllib3

    pending = b""
    try:
        for piece in answer.stream(1 << 16):
            *whole, pending = (pending + piece).split(b"\n")
            yield from (line for line in whole if line)
    except urllib3.exceptions.ReadTimeoutError:
        return  # the next watch finds out whether anybody is there
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unreachable(f"{what}: {_why(error)}") from None
    if pending.strip():
        raise Unreachable(f"{what}: the connection ended within an event")


def _event(line: bytes, what: str) -> WatchEvent:
    try:
        event = json.loads(line)
        kind, item = event["type"], event["object"]
    except (ValueError, KeyError, TypeError):
        raise Unreachable(f"{what}: an event cannot be read") from None
    if kind == "ERROR":
        raise error_of(item.get("code") or 500, item, what)
    if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise Gone(f"{what}: an event of an unknown type")  # who lists again misses nothing
    return WatchEvent(kind, item)


def _read(answer: Any, what: str) -> Any:
    """The decoded body; None where it is no JSON."""
    import urllib3

    try:
        return json.loads(answer.read())
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unreachable(f"{what}: {_why(error)}") from None
    except ValueError:
        return None


def _why(error: BaseException) -> str:
    """In a few words, without the addresses of objects in memory that the library's own texts hold."""
    import urllib3

    reason: BaseException | None = error
    if isinstance(error, urllib3.exceptions.SSLError):
        return "the server's certificate is not trusted, or it does not trust ours"
    while reason is not None:
        if isinstance(reason, OSError) and reason.strerror:
            return reason.strerror
        reason = reason.__cause__ or reason.__context__
    return "no answer in time" if isinstance(error, urllib3.exceptions.TimeoutError) else "the connection broke"


def _keepalive() -> list[tuple[int, int, int]]:
    """A server that vanished without a word is noticed in half a minute, not when a watch's time is over."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    return options
