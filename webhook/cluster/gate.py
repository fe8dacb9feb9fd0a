"""A FieldPolicy on its way into the cluster: refused with the linter's words, by field.

Whatever only others make wrong (two policies that contradict each other, a name that a file has) is a warning: tools that
apply many objects ask about each of them before they write any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.admission import BadCall, Review, read_review
from webhook.admission.json import dumps
from webhook.admission.review import API_VERSION
from webhook.cluster.mirrored import Mirrored
from webhook.cluster.resource import GROUP, PLURAL, FieldProblem, problems_of, text_of
from webhook.cluster.settling import Together, first_of

MAX_CAUSES = 50
MAX_WARNINGS = 12
"""More than a person reads, and less than what makes an API server cut each of them short."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """Whether the policy may be stored. The other names are those of a Decision; nothing was judged."""

    allowed: bool
    policies: tuple[str, ...] = ()
    results: tuple[Any, ...] = ()
    manager: str | None = None


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """The bytes to send, and what they say."""

    response: bytes
    decision: GateDecision
    review: Review


@dataclass(frozen=True, slots=True)
class Gate:
    """Answers the reviews of FieldPolicies. `mirrored` is None where no cluster's policies are followed."""

    together: Together
    mirrored: Mirrored | None = None

    def answer(self, body: bytes) -> GateAnswer:
        """Raises BadCall for what no API server sends, and for a review of anything else."""
        review = read_review(body)
        if (review.resource.group, review.resource.resource) != (GROUP, PLURAL):
            raise BadCall(400, "wrong-kind", f"the review is about {PLURAL}.{GROUP}")
        resource = _to_lint(review)
        problems = problems_of(resource, strict=self.together.strict) if resource is not None else ()
        errors = tuple(one for one in problems if one.is_error)
        response: dict[str, Any] = {"uid": review.uid, "allowed": not errors}
        if errors:
            response["status"] = _status(review, errors)
        warnings = [str(one) for one in problems if not one.is_error]
        if resource is not None and not errors:
            warnings += self._beside_others(review.name, text_of(resource))
        if warnings:
            response["warnings"] = list(first_of(warnings, MAX_WARNINGS))
        whole = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
        return GateAnswer(dumps(whole), GateDecision(not errors), review)

    def _beside_others(self, name: str, text: str) -> list[str]:
        """Why it would be left out, although there is nothing wrong with it."""
        try:
            others = self.mirrored.texts() if self.mirrored is not None and self.mirrored.is_read else {}
            errors = self.together.errors({**others, name: text})
        except OSError:
            return []
        return [f"as things are, {PLURAL}/{name} would not be in force: {error}" for error in errors]


def _to_lint(review: Review) -> Mapping[str, Any] | None:
    """The policy, where it is new or another one than before. Nothing stands in the way of deleting."""
    if review.request is None or review.subresource:
        return None
    new, old = review.request.new, review.request.old
    if new.get("metadata", {}).get("deletionTimestamp") or (old is not None and text_of(new) == text_of(old)):
        return None
    return new


def _status(review: Review, errors: tuple[FieldProblem, ...]) -> dict[str, Any]:
    """422, as the API server says it of what its own schema refuses."""
    causes = [{"reason": "FieldValueInvalid", "field": one.path, "message": one.drawn} for one in errors[:MAX_CAUSES]]
    said = "\n".join(f"* {one.path}: {one.drawn}" for one in errors[:MAX_CAUSES])
    count = "a problem" if len(errors) == 1 else f"{len(errors)} problems"
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f"the policy {review.name} has {count}:\n{said}",
        "details": {"name": review.name, "group": GROUP, "kind": review.kind, "causes": causes},
    }
