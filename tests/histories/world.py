"""One object on a real API server, and what is known of each write to it."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field, replace
from typing import Any

from tests.histories.shapes import Kind, Object
from tests.histories.truth import Claims, claims_of
from webhook.fields import Identity
from webhook.sandbox import Capture, Reply, Sandbox

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
PUT = "application/json"
SCALE_VERSION = "autoscaling/v1"


@dataclass(frozen=True, slots=True)
class Write:
    """One request, with what its author knows of it."""

    what: str  # for people
    method: str
    content_type: str
    body: Any
    version: str  # apiVersion of the object that is sent
    operation: str  # Apply or Update: what the client really does
    manager: str
    named: bool = True  # by ?fieldManager; else the User-Agent gives the name
    subresource: str = ""
    force: bool = False
    dry_run: bool = False
    honest: Any = None  # the same body without its forged claims, where there are such
    migration: bool = False  # moves claims as kubectl does
    user: str = "developer"

    @property
    def creates(self) -> bool:
        return self.method == "POST"

    @property
    def identity(self) -> Identity:
        """The claim that the server writes this under."""
        version = SCALE_VERSION if self.subresource == "scale" else self.version
        operation = "Apply" if self.operation == "Apply" else "Update"
        return Identity(self.manager, operation, self.subresource, version if operation == "Update" else "")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the API server showed of a write, and what it would have shown of its honest twin."""

    kind: Kind
    write: Write
    phase: str
    review: Object
    reply: Reply
    before: Object | None  # as stored, in the version of the write
    honest: Claims | None = None  # the twin's claims


@dataclass(slots=True)
class World:
    """One object. `manifests` is what each applier has in its Git."""

    sandbox: Sandbox
    capture: Capture
    kind: Kind
    namespace: str
    name: str
    manifests: dict[str, Object] = field(default_factory=dict)
    requests: int = 0

    def path(self, version: str, subresource: str = "", *, collection: bool = False) -> str:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        whole = f"{root}/namespaces/{self.namespace}/{self.kind.plural}"
        if collection:
            return whole
        return f"{whole}/{self.name}" + (f"/{subresource}" if subresource else "")

    def get(self, version: str | None = None, subresource: str = "") -> Object | None:
        reply = self.sandbox.request("GET", self.path(version or self.kind.versions[0], subresource))
        return reply.body if reply.status == 200 else None

    def empty(self, version: str) -> Object:
        """A manifest with nothing in it yet."""
        return {
            "apiVersion": version,
            "kind": self.kind.name,
            "metadata": {"name": self.name, "namespace": self.namespace},
        }

    def delete(self) -> None:
        self.sandbox.request("DELETE", self.path(self.kind.versions[0]))

    def send(self, write: Write) -> list[Seen]:
        """Write, and return what was reviewed: nothing where the server refused. A forged write's twin comes first."""
        before = self.get(write.version)
        found: list[Seen] = []
        honest: Claims | None = None
        if write.honest is not None:
            twin = replace(write, what=f"honest twin: {write.what}", body=write.honest, honest=None, dry_run=True)
            found = self._exchange(twin, before, None)
            if not found:
                return []
            honest = claims_of(found[-1].review["request"]["object"])
        return found + self._exchange(write, before, honest)

    def _exchange(self, write: Write, before: Object | None, honest: Claims | None) -> list[Seen]:
        params: dict[str, str] = {}
        if write.named:
            params["fieldManager"] = write.manager
        if write.operation == "Apply":
            params["force"] = str(write.force).lower()
        if write.dry_run:
            params["dryRun"] = "All"
        path = self.path(write.version, write.subresource, collection=write.creates)
        agent = "some-client/1.0" if write.named else f"{write.manager}/v1.2 (linux/amd64)"
        self.capture.take()
        reply = self.sandbox.request(
            write.method,
            path,
            copy.deepcopy(write.body),
            write.user,
            write.content_type,
            params,
            user_agent=agent,
        )
        calls = self.capture.take()
        if reply.status not in (200, 201):
            return []
        self.requests += 1
        wanted = ("mutate", "validate") if write.subresource == "scale" else ("validate",)
        # A patch that met a conflict is tried again: the last call of each phase is the one that counts.
        last = {call.phase: call.review for call in calls if call.phase in wanted}
        return [Seen(self.kind, write, phase, last[phase], reply, before, honest) for phase in wanted if phase in last]


def told(write: Write) -> str:
    """A write for people, with all that it takes to send it again."""
    name = write.manager if write.named else f"User-Agent {write.manager}/v1.2"
    flags = "".join(f" {flag}" for flag in ("force", "dry_run", "migration") if getattr(write, flag))
    where = f"/{write.subresource}" if write.subresource else ""
    return f"{write.what}: {write.method}{where} {write.version} as {name} ({write.operation}){flags}: {json.dumps(write.body)}"
