"""What the server puts back after it has taken the claims on it."""

from __future__ import annotations

from typing import Any

from webhook.admission import understand
from webhook.fields import Request, Resource, User

SERVICE: dict[str, Any] = {"spec": {"clusterIP": "10.96.0.9", "type": "ClusterIP"}}


def losing(fields: dict[str, Any]) -> Request:
    """A write that changes no value of a Service, after which a claim on these fields is gone."""
    entry = {"manager": "flux", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return Request(
        operation="UPDATE",
        resource=Resource("", "v1", "services"),
        kind="Service",
        subresource="",
        namespace="default",
        name="svc",
        user=User("developer@example.com"),
        field_manager="kubectl-replace",
        dry_run=False,
        new={**SERVICE, "metadata": {"name": "svc", "managedFields": []}},
        old={**SERVICE, "metadata": {"name": "svc", "managedFields": [entry]}},
        api_version="v1",
        requested_version="v1",
    )


def test_an_address_left_out_is_put_back_and_its_claim_is_gone() -> None:
    assert understand(losing({"f:spec": {"f:clusterIP": {}}})).tampering == ()


def test_a_claim_on_the_whole_spec_is_not_what_an_address_is() -> None:
    (found,) = understand(losing({"f:spec": {}})).tampering
    assert [str(path) for path in found.lost] == [".spec"]
