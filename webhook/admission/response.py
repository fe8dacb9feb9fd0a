"""Decision to AdmissionReview."""

from __future__ import annotations

import base64
from typing import Any

from webhook.admission.decision import Decision
from webhook.admission.json import dumps
from webhook.admission.review import API_VERSION, Review


def to_response(review: Review, decision: Decision) -> dict[str, Any]:
    """The AdmissionReview to send. A denial is a 403 (a client retries 409), with a cause for each path."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": decision.allowed}
    if not decision.allowed:
        response["status"] = _status(review, decision)
    if decision.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(dumps(decision.patch)).decode()
    if decision.warnings:
        response["warnings"] = list(decision.warnings)
    if decision.audit_annotations:
        response["auditAnnotations"] = decision.audit_annotations
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _status(review: Review, decision: Decision) -> dict[str, Any]:
    details: dict[str, Any] = {"name": review.name, "group": review.resource.group, "kind": review.resource.resource}
    if decision.causes:
        details["causes"] = [
            {"reason": "FieldManagerConflict", "field": cause.field, "message": cause.message}
            for cause in decision.causes
        ]
    return {
        "status": "Failure",
        "code": decision.code,
        "reason": "Forbidden",
        "message": decision.message,
        "details": details,
    }
