"""The first answer after a start is a right one: nothing forbidden slips through while policies are being loaded."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from tests.stories.support import MERGE_PATCH, Story
from webhook.sandbox import Sandbox, SandboxError

CLIENTS = 3
ENOUGH = 8  # writes of each kind that each client sees answered by the policies
STARTS = 2


@dataclass
class Hammer(threading.Thread):
    """A client that writes what is forbidden and what is not, by turns, until it has seen enough of both answered."""

    story: Story
    number: int
    forbidden: Counter[str] = field(default_factory=Counter)
    harmless: Counter[str] = field(default_factory=Counter)
    written: int = 0
    failure: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        try:
            while not self.stopped.is_set() and min(self.forbidden["denied"], self.harmless["passed"]) < ENOUGH:
                self.written += 1
                self.forbidden[self._answer({"labels": {"team": f"mine-{self.written}"}})] += 1
                self.harmless[self._answer({"annotations": {f"note-{self.number}": str(self.written)}})] += 1
        except SandboxError as error:
            self.failure = str(error)

    def _answer(self, metadata: dict[str, dict[str, str]]) -> str:
        sandbox, path = self.story.sandbox, self.story.path
        params = {"fieldManager": f"hammer-{self.number}"}
        reply = sandbox.request("PATCH", path, {"metadata": metadata}, "developer", MERGE_PATCH, params)
        message = str(reply.body.get("message"))
        if reply.status == 200:
            return "passed"
        if reply.status == 403 and "[flux-owns/applied]" in message:
            return "denied"
        if reply.status == 500 and "failed calling webhook" in message:
            return "nobody there"
        return f"{reply.status} {message}"


def test_nothing_forbidden_passes_while_the_server_starts(web: Story, sandbox: Sandbox) -> None:
    for _ in range(STARTS):
        web.server.stop()
        hammers = [Hammer(web, number) for number in range(CLIENTS)]
        for hammer in hammers:
            hammer.start()
        sandbox.wait_until(lambda: all(h.written > 1 for h in hammers), "kube-apiserver")  # noqa: B023
        web.server.start()
        try:
            sandbox.wait_until(lambda: not any(h.is_alive() for h in hammers), web.server.name)  # noqa: B023
        finally:
            for hammer in hammers:
                hammer.stopped.set()
        assert not [hammer.failure for hammer in hammers if hammer.failure]
        forbidden = sum((hammer.forbidden for hammer in hammers), Counter[str]())
        harmless = sum((hammer.harmless for hammer in hammers), Counter[str]())
        assert set(forbidden) == {"nobody there", "denied"}, forbidden
        assert set(harmless) == {"nobody there", "passed"}, harmless
        web.server.wait()
    assert web.value(".metadata.labels.team") == "payments"
    assert web.owners(".metadata.labels.team") == ["kustomize-controller (Apply)"]
