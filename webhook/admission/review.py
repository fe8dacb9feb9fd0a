"""AdmissionReview bytes to Request. What no API server sends is a BadCall; every other judgement comes later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webhook.admission.json import JsonError, loads
from webhook.admission.place import Place, WrongType
from webhook.fields import Request, Resource, User

API_VERSION = "admission.k8s.io/v1"


class BadCall(Exception):
    """A call that no API server makes: answered with an HTTP error, never with a review.

    `status` is the HTTP status, `reason` a short stable word for metrics, `message` a sentence for a person.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


@dataclass(slots=True)
class Review:
    """A readable AdmissionReview. `request` is None where there is nothing to judge."""

    uid: str
    operation: str
    resource: Resource
    kind: str
    subresource: str
    namespace: str
    name: str
    user: User
    dry_run: bool
    request: Request | None = None


def read_review(body: bytes) -> Review:
    """Reads an AdmissionReview; raises BadCall (400) with the place of the fault."""
    try:
        review = loads(body)
    except JsonError as error:
        raise BadCall(400, "unreadable-json", f"the body is not JSON that can be read: {error}") from None
    return review_of(review)


def review_of(review: Any) -> Review:
    """The same for an AdmissionReview that is JSON no longer."""
    if not isinstance(review, dict):
        raise BadCall(400, "wrong-type", "the body is a JSON object: an AdmissionReview")
    if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != API_VERSION:
        raise BadCall(400, "wrong-kind", f"the body is an AdmissionReview of {API_VERSION}")
    try:
        return _review(Place(review).part("request"))
    except WrongType as error:
        raise BadCall(400, "wrong-type", str(error)) from None


def _review(place: Place) -> Review:
    uid, operation = place.text("uid"), place.text("operation")
    if operation not in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
        raise WrongType("request.operation is CREATE, UPDATE, DELETE or CONNECT")
    if not uid:
        raise WrongType("request.uid is empty")
    resource, user = place.part("resource"), place.part("userInfo")
    review = Review(
        uid=uid,
        operation=operation,
        resource=Resource(resource.text("group", ""), resource.text("version"), resource.text("resource")),
        kind=place.part("kind").text("kind"),
        subresource=place.text("subResource", ""),
        namespace=place.text("namespace", ""),
        name=place.text("name", ""),
        user=User(user.text("username", ""), frozenset(user.texts("groups"))),
        dry_run=place.flag("dryRun"),
    )
    if not _never_judged(review):
        review.request = _request(review, place)
        review.name = review.request.name
    return review


def _never_judged(review: Review) -> bool:
    """Deletions, connections, and creations through a subresource, which are of another kind: bindings, tokens."""
    return review.operation in ("DELETE", "CONNECT") or (bool(review.subresource) and review.operation == "CREATE")


def _request(review: Review, place: Place) -> Request:
    kind = place.part("kind")
    requested = place.part("requestKind") if place.data.get("requestKind") is not None else kind
    read = _scale if review.subresource == "scale" else _whole
    new = place.part("object")
    old = place.part("oldObject") if review.operation == "UPDATE" else None
    return Request(
        operation="UPDATE" if old is not None else "CREATE",
        resource=review.resource,
        kind=review.kind,
        subresource=review.subresource,
        namespace=review.namespace,
        name=review.name or new.optional("metadata").text("name", ""),
        user=review.user,
        field_manager=place.optional("options").text("fieldManager", "") or None,
        dry_run=review.dry_run,
        new=read(new),
        old=read(old) if old is not None else None,
        api_version=_api_version(kind),
        requested_version=_api_version(requested) if requested is not kind else _api_version(kind),
    )


def _check_object(obj: Place) -> None:
    metadata = obj.part("metadata")
    if not isinstance(metadata.data.get("managedFields"), list | None):
        raise metadata.wrong("managedFields", "a list")
    labels = metadata.data.get("labels")
    if labels is not None and not (
        labels.__class__ is dict and all(value.__class__ is str for value in labels.values())
    ):
        raise metadata.wrong("labels", "an object whose values are texts")


def _whole(obj: Place) -> dict[str, Any]:
    _check_object(obj)
    return obj.data


def _scale(obj: Place) -> dict[str, Any]:
    """A Scale in its parent's paths: of all that it shows, `.spec.replicas` alone is the parent's."""
    _check_object(obj)
    spec = obj.optional("spec").data
    return {
        "metadata": obj.part("metadata").data,
        "spec": {"replicas": spec["replicas"]} if "replicas" in spec else {},
    }


def _api_version(kind: Place) -> str:
    group, version = kind.text("group", ""), kind.text("version")
    return f"{group}/{version}" if group else version
