"""Constant writes by several clients, half of which a policy forbids: what came of each, and when."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tests.e2e.cluster import Cluster
from tests.stories.support import MERGE_PATCH
from webhook.sandbox import SandboxError

Object = dict[str, Any]
Kind = Literal["forbidden", "harmless"]

CLIENTS = 4
_PAUSE = 0.02  # seconds between two writes of a client
_ENOUGH = 10  # writes of each kind by each client, to have seen how things are
_KEPT = "as it was"

GUARD: Object = {
    "apiVersion": "fieldwarden.dev/v1alpha1",
    "kind": "FieldPolicy",
    "metadata": {"name": "load"},
    "spec": {
        "description": "What the constant writers may not do.",
        "mode": "Enforce",
        "match": {"resources": [{"groups": [""], "resources": ["configmaps"]}], "namespaces": ["load-*"]},
        "rules": [
            {
                "name": rule,
                "ownership": {
                    "fields": [f".data.{rule}"],
                    "owners": [{"manager": "owner", "subjects": [{"user": "platform@example.com"}]}],
                    "guard": "Matching",
                    "onChange": action,
                },
            }
            for rule, action in (("guarded", "Deny"), ("kept", "Restore"))
        ],
    },
}


@dataclass(frozen=True, slots=True)
class Write:
    """`said` is denied, passed, escaped, or what went wrong; times are those of time.monotonic."""

    kind: Kind
    said: str
    began: float
    ended: float


@dataclass
class Load:
    """Runs as long as its block; the policy GUARD is in force before it."""

    cluster: Cluster
    namespace: str
    writes: list[Write] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        for number in range(CLIENTS):
            data = {"guarded": _KEPT, "kept": _KEPT}
            made = {"metadata": {"name": f"client-{number}"}, "data": data}
            path = f"/api/v1/namespaces/{self.namespace}/configmaps"
            reply = self.cluster.request("POST", path, made, "platform", params={"fieldManager": "owner"})
            assert reply.status == 201, reply.body
            self._threads.append(threading.Thread(target=self._write, args=(f"{path}/client-{number}",), daemon=True))
        for thread in self._threads:
            thread.start()
        self.settle()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def settle(self) -> None:
        """Until every client has written some more."""
        already = len(self.writes)
        self.cluster.wait_until(lambda: len(self.writes) - already >= 2 * _ENOUGH * CLIENTS)

    def since(self, moment: float) -> list[Write]:
        """Those that had not ended before, and have ended now."""
        return [write for write in list(self.writes) if write.ended >= moment]

    def _write(self, path: str) -> None:
        for number in itertools.count():
            if self._stop.wait(_PAUSE):
                return
            self._one("forbidden", path, {"guarded": str(number)})
            self._one("harmless", path, {"free": str(number), "kept": "mine"})

    def _one(self, kind: Kind, path: str, data: dict[str, str]) -> None:
        began = time.monotonic()
        try:
            reply = self.cluster.request("PATCH", path, {"data": data}, "developer", MERGE_PATCH, user_agent="load/1")
            said = _said(kind, reply.status, reply.body)
        except SandboxError as error:
            said = str(error)
        self.writes.append(Write(kind, said, began, time.monotonic()))


def _said(kind: Kind, status: int, body: Object) -> str:
    message = str(body.get("message"))
    if status == 200:
        kept = body["data"]["kept"] == _KEPT
        return "passed" if kept and kind == "harmless" else "escaped"
    if status == 403 and "[load/guarded]" in message:
        return "denied"
    return f"{status} {message}"


def failed(writes: Iterable[Write]) -> list[Write]:
    """Those that nobody answered as the policies say. None may have escaped them."""
    writes = list(writes)
    assert writes
    assert not [write for write in writes if write.said == "escaped"]
    return [write for write in writes if write.said != ("denied" if write.kind == "forbidden" else "passed")]


def shown(writes: Sequence[Write], since: float) -> str:
    """For people: when each of them was under way, in seconds after a moment."""
    return "\n".join(f"{write.began - since:.2f} to {write.ended - since:.2f}: {write.said}" for write in writes)
