"""A call whose review found something is answered when that is written, or late; others have nothing to do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from webhook.admission import Engine
from webhook.policy import load
from webhook.server import create_app
from webhook.server.inbox import Sent
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState

ROOT = Path(__file__).parents[2]


class Told:
    """Recorder and log in one: what is done, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken = False

    def record(self, results: Any) -> Sent:
        self.done.append(f"record {len(results)}")
        return Sent(1, 0)

    def wait(self, sent: Sent) -> None:
        assert sent == Sent(1, 0)
        self.done.append("wait")

    def info(self, event: str, **_: Any) -> None:
        self.done.append("log")
        if self.broken:
            raise OSError

    error = warning = info


@pytest.fixture
def told() -> Told:
    return Told()


def answer(told: Told, review: str) -> int:
    loaded = load([ROOT / "policies"])
    assert loaded.policies
    state: Any = ServerState(Engine(loaded.policies), None, Metrics(), told, recorder=told)  # type: ignore[arg-type]
    body = (ROOT / "tests" / "reviews" / f"{review}.json").read_bytes()
    client = create_app(state).test_client()
    return client.post("/validate", data=body, content_type="application/json").status_code


def test_an_event_is_on_its_way_while_the_log_is_written_and_awaited_before_the_answer(told: Told) -> None:
    assert answer(told, "kubectl-label-overwrite") == 200
    assert told.done == ["record 4", "log", "wait"]


def test_without_an_event_nothing_is_recorded_and_nothing_awaited(told: Told) -> None:
    assert answer(told, "flux-reapply-noop") == 200
    assert told.done == ["log"]


def test_whatever_goes_wrong_with_the_log_what_was_sent_is_awaited(told: Told) -> None:
    told.broken = True
    answer(told, "kubectl-label-overwrite")
    assert told.done[:3] == ["record 4", "log", "wait"]
