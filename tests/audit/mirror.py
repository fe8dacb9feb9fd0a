"""Every write three times: to a server where fieldwarden enforces, as a dry run; to one where it audits; to one without it.

What the last two answer and store must be the same, and what the audit records must be what Enforce found.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tests.audit.likeness import Names, Object, unlike
from webhook.admission.explanations import MAX_UPDATE_CLAIMS
from webhook.sandbox import Reply, Sandbox
from webhook.sandbox.users import SandboxUser

if TYPE_CHECKING:
    from tests.audit.servers import Beside

WOULD = "would"
"""The uid by which the dry runs that are Enforce's are told from all else. Nobody in the stories has one like it."""

_SUBRESOURCE = re.compile(r"(/(?:status|scale|eviction|resize|finalize|ephemeralcontainers))$")
_NOT_COMPARED = re.compile(r"^/apis/(?:apiextensions|admissionregistration)\.k8s\.io/")  # what serves the stories
_ENOUGH_FOR_THREE, _ENOUGH_FOR_TWO = 0.75, 0.85
"""Of a second: a write that comes later waits for the next one. Claims are to be as old on all servers."""

_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_OF_A_REVIEW = ("manager", "user", "resource", "namespace", "name")
_OF_A_RESULT = ("event", "policy", "rule", "action", "more_paths")

Event = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """A write as its client sends it."""

    method: str
    path: str
    query: str
    payload: bytes | None
    user: SandboxUser
    headers: Mapping[str, str]  # Content-Type, Accept, User-Agent

    @property
    def is_dry(self) -> bool:
        return "dryRun=All" in self.query

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    def object_path(self) -> str:
        """Where the written object is; "" where that is not to be known."""
        if self.method != "POST":
            return _SUBRESOURCE.sub("", self.path)
        if _SUBRESOURCE.search(self.path):
            return _SUBRESOURCE.sub("", self.path)
        name = (_decoded(self.payload or b"").get("metadata") or {}).get("name")
        return f"{self.path}/{name}" if name else ""


class Said(NamedTuple):
    """A server's answer."""

    status: int
    headers: Sequence[tuple[str, str]]
    raw: bytes

    @property
    def body(self) -> Object:
        return _decoded(self.raw)

    @property
    def warnings(self) -> list[str]:
        told = (value.encode("latin-1", "replace").decode() for name, value in self.headers if name == "Warning")
        return [re.sub(r"\\(.)", r"\1", text) for header in told for text in _WARNING.findall(header)]

    def reply(self) -> Reply:
        return Reply(self.status, self.body, self.warnings)


class Line:
    """A kept connection to one server, for one at a time."""

    def __init__(self, sandbox: Sandbox) -> None:
        address = urlsplit(sandbox.url)
        tls = ssl.create_default_context(cafile=str(sandbox.ca_file))
        self._connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=tls, timeout=60)

    def send(self, method: str, target: str, payload: bytes | None, headers: Sequence[tuple[str, str]]) -> Said:
        try:
            return self._exchange(method, target, payload, headers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):  # it had been idle for too long
            self._connection.close()  # the next call opens another
            return self._exchange(method, target, payload, headers)

    def _exchange(self, method: str, target: str, payload: bytes | None, headers: Sequence[tuple[str, str]]) -> Said:
        self._connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (*headers, *([("Content-Length", str(len(payload)))] if payload is not None else ())):
            self._connection.putheader(name, value)
        self._connection.endheaders(payload)
        answer = self._connection.getresponse()
        return Said(answer.status, answer.getheaders(), answer.read())

    def close(self) -> None:
        self._connection.close()


class Disagreement(NamedTuple):
    """One write of which Enforce found something else than the audit recorded."""

    about: str
    wanted: Counter[Event]
    recorded: Counter[Event]


@dataclass
class Tally:
    """What was seen since it was last taken."""

    compared: int = 0  # writes
    reviews: int = 0  # that the audit answered
    steps: int = 0  # of stories
    silent: int = 0  # of these, without a write
    believed: int = 0  # answers that were as the story says
    paths: dict[str, None] = field(default_factory=dict)  # of what was written
    found: list[Object] = field(default_factory=list)  # results of the audit
    faults: list[str] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)


class Mirror:
    """One write at a time, whoever writes."""

    def __init__(self, audited: Sandbox, bare: Sandbox) -> None:
        self.audited, self.bare = audited, bare
        self.beside: Beside | None = None  # who is asked now
        self.tally = Tally()
        self._names = Names()
        self._ours, self._theirs = Line(audited), Line(bare)
        self._lock = threading.Lock()

    def read(self, method: str, target: str, payload: bytes | None, headers: Sequence[tuple[str, str]]) -> Said:
        """From the audited server alone."""
        with self._lock:
            return self._ours.send(method, target, payload, headers)

    def send(self, wish: Wish) -> Said:
        """The audited server's answer."""
        with self._lock:
            path = wish.object_path()
            if path and path not in self.tally.paths:
                self._names.learn(*self._stored(path))
            self._wait_for_a_second_that_lasts(_ENOUGH_FOR_THREE)
            second = int(time.time())
            would = self._would(wish)
            mark = self.beside.mark() if self.beside is not None else 0
            self._wait_for_a_second_that_lasts(_ENOUGH_FOR_TWO)
            theirs = self._theirs.send(wish.method, wish.target, self._translated(wish), self._headers(wish, self.bare))
            ours = self._ours.send(wish.method, wish.target, wish.payload, self._headers(wish, self.audited))
            if _NOT_COMPARED.match(wish.path):
                return ours
            self._compare(wish, path, ours, theirs)
            if self.beside is not None:
                lines = self.beside.reviews(mark)
                self.tally.reviews += len(lines)
                found = [line for line in lines if line["user"] == wish.user.name]
                if int(time.time()) == second or not self._is_at_the_cap(path):
                    self._compare_events(wish, would, found, theirs)
            return ours

    def take(self) -> Tally:
        """What was seen since the last time. All that was written is looked at once more."""
        with self._lock:
            for path in self.tally.paths:
                self._same(path, "in the end")
            tally, self.tally = self.tally, Tally()
            return tally

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()

    def _compare(self, wish: Wish, path: str, ours: Said, theirs: Said) -> None:
        self.tally.compared += 1
        about = f"{wish.method} {wish.target} by {wish.user.name}"
        if (ours.status, ours.warnings) != (theirs.status, theirs.warnings):
            self.tally.faults.append(
                f"{about}: {ours.status} {ours.warnings} {ours.body.get('message')}, "
                f"without fieldwarden {theirs.status} {theirs.warnings} {theirs.body.get('message')}"
            )
        if path:
            self.tally.paths.setdefault(path)
            self._same(path, about)
        one, other = dict(ours.body), dict(theirs.body)
        if "message" in one:
            uid = (one.get("details") or {}).get("uid") or ""
            one["message"] = self._names.text(str(one["message"]), uid)
        if found := unlike(one, other):
            self.tally.faults.append(f"{about}: the answers differ in {', '.join(found)}")

    def _same(self, path: str, about: str) -> None:
        ours, theirs = self._stored(path)
        self._names.learn(ours, theirs)
        if found := unlike(ours, theirs):
            self.tally.faults.append(f"{about}: what is stored at {path} differs in {', '.join(found)}")

    def _stored(self, path: str) -> tuple[Object, Object]:
        said = [line.send("GET", path, None, self._admin_of(sandbox)) for line, sandbox in self._both()]
        ours, theirs = (answer.body if answer.status == 200 else {} for answer in said)
        return ours, theirs

    def _would(self, wish: Wish) -> list[Object]:
        """What Enforce finds, asked before the write."""
        if self.beside is None or wish.method == "DELETE":  # which nobody is asked about
            return []
        mark = self.beside.would.mark()
        query = wish.query if wish.is_dry else "&".join(filter(None, (wish.query, "dryRun=All")))
        headers = [*wish.headers.items(), *self._admin_of(self.audited), ("Impersonate-User", wish.user.name)]
        headers += [("Impersonate-Group", group) for group in wish.user.groups]
        headers.append(("Impersonate-Uid", WOULD))
        dry = replace(wish, query=query)
        self._ours.send(wish.method, dry.target, wish.payload, headers)
        return [line for line in self.beside.would.reviews(mark) if line["user"] == wish.user.name]

    def _compare_events(self, wish: Wish, would: list[Object], found: list[Object], theirs: Said) -> None:
        about = f"{wish.method} {wish.target} by {wish.user.name}"
        if any(line["decision"] != "allowed" for line in found):
            self.tally.faults.append(f"{about}: it was not allowed")
        for result in results(found):
            self.tally.found.append(result)
            if (result["outcome"], result["mode"], result["dry_run"]) != ("recorded", "Audit", wish.is_dry):
                self.tally.faults.append(f"{about}: recorded as {result['outcome']} in {result['mode']}")
        wanted, recorded = events(would), events(found)
        if theirs.status >= 400:  # the server itself refuses it, maybe before it asks again
            wanted &= recorded
        if wanted != recorded:
            self.tally.disagreements.append(Disagreement(about, wanted, recorded))

    def _is_at_the_cap(self, path: str) -> bool:
        """Whether the server folds claims there, by their seconds: what was asked in two of them can differ."""
        claims = self._stored(path)[0].get("metadata", {}).get("managedFields", []) if path else []
        return sum(claim["operation"] == "Update" for claim in claims) >= MAX_UPDATE_CLAIMS

    def _wait_for_a_second_that_lasts(self, late: float) -> None:
        self.bare.wait_until(lambda: time.time() % 1 < late)

    def _translated(self, wish: Wish) -> bytes | None:
        if not wish.payload:
            return wish.payload
        try:
            value = json.loads(wish.payload)
        except ValueError:
            return wish.payload
        return json.dumps(self._names.translated(value)).encode()

    def _headers(self, wish: Wish, sandbox: Sandbox) -> list[tuple[str, str]]:
        short = next(name for name, user in self.audited.users.items() if user.name == wish.user.name)
        return [*wish.headers.items(), ("Authorization", f"Bearer {sandbox.users[short].token}")]

    def _admin_of(self, sandbox: Sandbox) -> list[tuple[str, str]]:
        return [("Authorization", f"Bearer {sandbox.users['admin'].token}")]

    def _both(self) -> tuple[tuple[Line, Sandbox], ...]:
        return (self._ours, self.audited), (self._theirs, self.bare)


def results(lines: Sequence[Object]) -> list[Object]:
    """Each with what the review says of who and what."""
    kept = (*_OF_A_REVIEW, "dry_run")
    return [{**result, **{name: line[name] for name in kept}} for line in lines for result in line.get("results", ())]


def events(lines: Sequence[Object]) -> Counter[Event]:
    """What was found, and what Enforce does about it: all of a result but what came of it."""
    names = (*_OF_A_REVIEW, *_OF_A_RESULT)
    return Counter((*(str(result.get(name)) for name in names), *result["paths"]) for result in results(lines))


def _decoded(raw: bytes) -> Object:
    try:
        found: Any = json.loads(raw)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
