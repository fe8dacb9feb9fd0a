"""Names of users are replaced wherever they are written down, whatever they look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from webhook.admission import Engine
from webhook.policy import load
from webhook.server.recording import Recorder
from webhook.server.users import Hashed, WithoutUsers, as_it_is

HASHED = Hashed(b"a key of enough bytes")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def engine() -> Engine:
    loaded = load([ROOT / "policies"])
    assert loaded.policies
    return Engine(loaded.policies)


def review_by(user: str) -> bytes:
    told = json.loads((ROOT / "tests" / "reviews" / "kubectl-label-overwrite.json").read_bytes())
    told["request"]["userInfo"]["username"] = user
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    "user",
    [
        *("developer@example.com", "a", "kubectl-label", "(.*)", "x" * 3000, "über", "system:serviceaccount:ns:name"),
        *("\u202ea\x9bb", "a\\u202eb", "\u200b" * 400, " ", "\n"),
    ],
)
def test_annotations_name_no_user(engine: Engine, user: str) -> None:
    plain = engine.answer(review_by(user), "validate")
    answer: Any = WithoutUsers(engine, HASHED).answer(review_by(user), "validate")
    assert plain.decision.results
    events = json.loads(answer.response)["response"]["auditAnnotations"]["events"]
    assert f"by {HASHED(user)} may" in events
    assert f"by {user}" not in events
    assert len(events) <= 2000
    assert answer.decision.message == plain.decision.message


def test_an_answer_without_events_is_left_as_it_is(engine: Engine) -> None:
    body = (ROOT / "tests" / "reviews" / "flux-reapply-noop.json").read_bytes()
    assert WithoutUsers(engine, HASHED).answer(body, "validate").response == engine.answer(body, "validate").response


def test_hashes_are_equal_for_one_user_under_one_key_alone() -> None:
    assert HASHED("a") == Hashed(b"a key of enough bytes")("a")
    assert len({HASHED("a"), HASHED("b"), Hashed(b"another key, long too")("a"), as_it_is("a")}) == 4
    assert HASHED("\ud800").startswith("user-")


def test_whatever_cannot_be_recorded_is_counted_as_lost(engine: Engine) -> None:
    class Broken:
        lost = 0

        def put(self, *_: Any) -> None:
            raise OSError

        def lose(self, events: int) -> None:
            self.lost += events

    sender: Any = Broken()
    found = engine.answer(review_by("a"), "validate").decision.results
    assert Recorder(sender).record(found) is None
    assert sender.lost == len(found) > 0
