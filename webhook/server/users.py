"""Names of users, as they are written down: as they are, or replaced by a keyed hash of each."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from webhook.admission import Answer, Decision, to_response
from webhook.admission.json import dumps
from webhook.admission.messages import named
from webhook.server.settings import SettingsError
from webhook.server.state import AnswerLike, EngineLike, Phase

SHORTEST_KEY = 16
"""Bytes. With a key that can be guessed, names can be tried."""

MAX_ANNOTATION = 2000

Shown = Callable[[str], str]
"""A user's name as it is written down."""


def as_it_is(name: str) -> str:
    return name


class Hashed:
    """The same name under the same key has always the same hash, in every replica; without the key nobody can tell
    whose it is, nor try names.

    >>> Hashed(b"sixteen bytes ok")("developer@example.com")
    'user-69d0cd437f43dee6'
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def with_key_in(cls, file: Path) -> Hashed:
        """Raises SettingsError."""
        try:
            key = file.read_bytes().strip()
        except OSError as error:
            raise SettingsError(f"{file}: {error.strerror or type(error).__name__}") from None
        if len(key) < SHORTEST_KEY:
            raise SettingsError(f"{file}: the key to hash users with must have at least {SHORTEST_KEY} bytes")
        return cls(key)

    def __call__(self, name: str) -> str:
        digest = hmac.new(self._key, name.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"user-{digest.hexdigest()[:16]}"


class WithoutUsers:
    """An engine whose audit annotations name no user. What the client is told stays: it is his own name."""

    def __init__(self, engine: EngineLike, shown: Shown) -> None:
        self._engine, self._shown = engine, shown

    def answer(self, body: bytes, phase: Phase) -> AnswerLike:
        answer = self._engine.answer(body, phase)
        if not (isinstance(answer, Answer) and answer.decision.audit_annotations):
            return answer
        decision = replace(answer.decision, audit_annotations=self._annotations(answer.decision))
        return Answer(dumps(to_response(answer.review, decision)), decision, answer.review)

    def _annotations(self, decision: Decision) -> dict[str, str]:
        """Made anew out of whole messages: where one was cut, half a name could be left."""
        told = " ".join(
            f"[{result.policy}/{result.rule}] {result.kind} ({result.would}): {self._masked(result.message, result.user)}"
            for result in decision.results
        )
        events = told if len(told) <= MAX_ANNOTATION else told[: MAX_ANNOTATION - 1] + "…"
        return {**decision.audit_annotations, "events": events}

    def _masked(self, message: str, user: str) -> str:
        if not user:
            return message
        return re.sub(rf"(?<!\w){re.escape(named(user))}(?!\w)", self._shown(user), message)
