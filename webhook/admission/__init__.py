"""AdmissionReview bytes to answer: read, understand, decide, respond."""

from webhook.admission.decide import decide
from webhook.admission.decision import Cause, Decision, Ownership, Result
from webhook.admission.engine import Answer, Engine
from webhook.admission.mutate import DoubtfulPatch
from webhook.admission.response import to_response
from webhook.admission.review import BadCall, Review, read_review
from webhook.admission.understand import understand

__all__ = [
    "Answer",
    "BadCall",
    "Cause",
    "Decision",
    "DoubtfulPatch",
    "Engine",
    "Ownership",
    "Result",
    "Review",
    "decide",
    "read_review",
    "to_response",
    "understand",
]
