"""Engine: a set of policies and a cap, ready to answer calls. Immutable; a reload makes another."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.admission.decide import decide
from webhook.admission.decision import Decision
from webhook.admission.json import dumps
from webhook.admission.response import to_response
from webhook.admission.review import Review, read_review
from webhook.policy.compiled import Mode
from webhook.policy.evaluate import Phase
from webhook.policy.policyset import PolicySet


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes to send, and what they say."""

    response: bytes
    decision: Decision
    review: Review


@dataclass(frozen=True, slots=True)
class Engine:
    """Judges AdmissionReviews. `cap` is the furthest that any policy may go."""

    policies: PolicySet
    cap: Mode = Mode.ENFORCE

    def answer(self, body: bytes, phase: Phase) -> Answer:
        """Bytes in, bytes out; raises BadCall for what no API server sends."""
        review = read_review(body)
        decision = decide(self.policies, review, phase, self.cap)
        return Answer(dumps(to_response(review, decision)), decision, review)
