"""From request to answer: `/validate`, `/mutate` and `/validate-policy`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from flask import Blueprint, Response, request

from webhook.admission import BadCall, DoubtfulPatch
from webhook.server.calls import Deadline, Refusal, check_content, read_body, timeout_of
from webhook.server.inbox import Sent
from webhook.server.logs import MAX_TEXT, results
from webhook.server.state import AnswerLike, Call, ServerState

LARGE = 4 << 20
"""Bytes. Bodies above are decided one at a time in each worker: parsed, they take many times their size."""

MAX_WAIT = 30.0
"""Seconds that a large body waits for its turn; no API server waits longer for an answer."""


Judge = Callable[[bytes], AnswerLike]


@dataclass(slots=True)
class Outcome:
    """What becomes of one call; filled in as it proceeds."""

    status: int = 200
    decision: str = "error"
    reason: str | None = None
    answer: AnswerLike | None = None
    recorded: Sent | None = None  # on its way into the journal


def routes(state: ServerState) -> Blueprint:
    blueprint = Blueprint("admission", __name__)

    @blueprint.post("/validate")
    def validate() -> Response:
        return judge(state, "validate", request.environ, lambda body: state.engine.answer(body, "validate"))

    @blueprint.post("/mutate")
    def mutate() -> Response:
        return judge(state, "mutate", request.environ, lambda body: state.engine.answer(body, "mutate"))

    @blueprint.post("/validate-policy")
    def validate_policy() -> Response:
        return judge(state, "policy", request.environ, state.gate.answer)

    return blueprint


def judge(state: ServerState, phase: Call, environ: dict[str, Any], judged: Judge) -> Response:
    """One call, one answer, one line in the log. An error never becomes an answer that allows."""
    started = time.monotonic()
    outcome = Outcome()
    try:
        outcome.answer = answer = _decide(state, environ, judged)
        outcome.decision = "allowed" if answer.decision.allowed else "denied"
        if state.recorder and answer.decision.results:
            outcome.recorded = state.recorder.record(answer.decision.results)
        response = Response(answer.response, 200, content_type="application/json")
    except (Refusal, BadCall) as bad:
        outcome.status, outcome.reason = bad.status, bad.reason
        response = error(bad.status, bad.reason, bad.message)
    except DoubtfulPatch as doubt:
        outcome.status, outcome.reason = 500, "doubtful-patch"
        state.log.error("doubtful patch", phase=phase, why=str(doubt))
        response = error(500, "doubtful-patch", f"what the policies ask for is not sent: {doubt}")
    except Exception as unknown:
        outcome.status, outcome.reason = 500, "internal-error"
        state.log.error("internal error", phase=phase, exc_info=unknown)
        response = error(500, "internal-error", "the review could not be judged; the log says where")
    try:
        _log(state, phase, outcome, time.monotonic() - started)
    finally:
        if state.recorder and outcome.recorded:
            state.recorder.wait(outcome.recorded)
    state.metrics.answered(phase, outcome.decision, time.monotonic() - started)
    return response


def _decide(state: ServerState, environ: dict[str, Any], judged: Judge) -> AnswerLike:
    arrived = environ.get("fieldwarden.arrived") or time.monotonic()
    close: Callable[[], None] = environ.get("fieldwarden.close", _nothing)
    deadline = Deadline(arrived, timeout_of(environ.get("QUERY_STRING", "")))
    check_content(environ)
    body = read_body(environ, deadline, close)
    deadline.check()
    large = len(body) > LARGE
    answer = _in_turn(state, body, deadline, judged) if large else judged(body)
    deadline.check()
    return answer


def _in_turn(state: ServerState, body: bytes, deadline: Deadline, judged: Judge) -> AnswerLike:
    left = deadline.left()
    if not state.large.acquire(timeout=MAX_WAIT if left is None else max(0.0, min(left, MAX_WAIT))):
        raise Refusal(504, "timeout", "other large reviews were being judged for too long")
    try:
        deadline.check()
        return judged(body)
    finally:
        state.large.release()


def _nothing() -> None: ...


def _log(state: ServerState, phase: Call, outcome: Outcome, seconds: float) -> None:
    line: dict[str, Any] = {"phase": phase, "decision": outcome.decision, "duration_ms": round(seconds * 1000, 3)}
    if outcome.reason is not None:
        state.metrics.bad_call(outcome.reason)
        state.log.warning("review", status=outcome.status, reason=outcome.reason, **line)
        return
    if outcome.answer is None:
        return
    review, decision = outcome.answer.review, outcome.answer.decision
    state.metrics.found(decision.results, dry_run=review.dry_run)
    if decision.results:
        line["results"] = results(decision.results)
    state.log.info(
        "review",
        uid=review.uid,
        user=state.shown(review.user.name)[:MAX_TEXT],
        manager=decision.manager,
        operation=review.operation,
        resource=review.resource.with_subresource(review.subresource),
        namespace=review.namespace,
        name=review.name,
        dry_run=review.dry_run,
        policies=list(decision.policies),
        **line,
    )


def error(status: int, reason: str, message: str) -> Response:
    """The body of every answer that is not a review."""
    body = orjson.dumps({"error": {"code": status, "reason": reason, "message": message}})
    return Response(body, status, content_type="application/json")
