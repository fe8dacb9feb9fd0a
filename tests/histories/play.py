"""Playing a history, and finding a shorter one that shows the same fault."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.histories.judge import Finding, judge
from tests.histories.kinds import KINDS, widget_definition
from tests.histories.shapes import Kind
from tests.histories.steps import Step, history, made
from tests.histories.undecided import kind_of
from tests.histories.world import Seen, World, told
from webhook.sandbox import Capture, Sandbox

LENGTH = 25  # steps in a history: enough to reach the cap on Update claims
_names = itertools.count(1)


class Fault(AssertionError):
    """A Change that does not say what the history knows."""

    def __init__(self, seen: Seen, findings: Sequence[Finding], log: Sequence[str]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.seen = seen
        self.findings = tuple(findings)
        self.log = tuple(log)

    @property
    def about(self) -> frozenset[str]:
        return frozenset(finding.about for finding in self.findings)


@dataclass(slots=True)
class Stage:
    """The API server, and what was counted on it."""

    sandbox: Sandbox
    capture: Capture
    namespace: str
    tally: Counter[str] = field(default_factory=Counter)

    def play(self, kind: Kind, steps: Sequence[Step]) -> None:
        """Raises Fault at the first Change that is wrong."""
        world = World(self.sandbox, self.capture, kind, self.namespace, f"history-{next(_names)}")
        log: list[str] = []
        for step in steps:
            write = made(step, world)
            if write is None:
                continue
            log.append(f"{step}: {told(write)}")
            for seen in world.send(write):
                self._judge(seen, log)
        self.tally["writes"] += world.requests

    def _judge(self, seen: Seen, log: Sequence[str]) -> None:
        self.tally["reviews"] += 1
        truth, change, findings = judge(seen)
        faults = []
        for finding in findings:
            undecided = kind_of(seen, truth, change, finding)
            if undecided is None:
                faults.append(finding)
            else:
                self.tally[undecided] += 1
        if faults:
            raise Fault(seen, faults, log)

    def shrunk(self, kind: Kind, steps: Sequence[Step], fault: Fault) -> tuple[list[Step], Fault]:
        """Fewer steps that lead to a fault about the same."""
        best, last = list(steps), fault
        for size in (8, 4, 2, 1):
            position = 0
            while position < len(best):
                shorter = best[:position] + best[position + size :]
                again = self._fault(kind, shorter)
                if again is not None and again.about & fault.about:
                    best, last = shorter, again
                else:
                    position += size
        return best, last

    def _fault(self, kind: Kind, steps: Sequence[Step]) -> Fault | None:
        try:
            self.play(kind, steps)
        except Fault as fault:
            return fault
        return None


def histories(seed: str) -> itertools.chain[tuple[Kind, list[Step]]]:
    """Endless: every kind in turn, each history from the seed and its number."""
    return itertools.chain.from_iterable(
        [(kind, history(Random(f"{seed}/{round_}/{kind.name}"), LENGTH)) for kind in KINDS]
        for round_ in itertools.count()
    )


def prepare(sandbox: Sandbox, capture: Capture) -> None:
    """The custom resource, and the webhooks for every kind."""
    serve_widgets(sandbox)
    sandbox.register_webhooks(capture.url, capture.ca_pem, [_rule(kind) for kind in KINDS])


def serve_widgets(sandbox: Sandbox) -> None:
    crd = widget_definition()
    reply = sandbox.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert reply.status in (201, 409), reply.body
    served = ("/apis/example.com/v1/widgets", "/apis/example.com/v2/widgets")
    sandbox.wait_until(lambda: all(sandbox.request("GET", path).status == 200 for path in served))


def _rule(kind: Kind) -> dict[str, list[str]]:
    seen = kind.seen_as or kind.versions[0]
    return {
        "apiGroups": [seen.rpartition("/")[0]],
        "apiVersions": [seen.rpartition("/")[2]] if kind.seen_as else ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural, f"{kind.plural}/*"],
    }
