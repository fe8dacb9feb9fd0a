"""Every call gets its documented answer; none a stack trace, none a wrong allow."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from serving import Server, eventually, post, review

MIB = 1 << 20


def edited(change: Callable[[dict[str, Any]], object], name: str = "kubectl-label-overwrite") -> bytes:
    loaded = json.loads(review(name))
    change(loaded)
    return json.dumps(loaded).encode()


def test_a_forbidden_write_is_denied_and_others_are_not(server: Server) -> None:
    denied, allowed = server.post(review()), server.post(review("kubectl-annotate"))
    assert (denied.status, denied.allowed) == (200, False)
    assert (allowed.status, allowed.allowed) == (200, True)
    assert denied.headers["content-type"] == "application/json"
    assert denied.body["response"]["uid"] == json.loads(review())["request"]["uid"]


BAD_CALLS = {
    "truncated JSON": (review()[:-20], 400, "unreadable-json"),
    "no body": (b"", 400, "unreadable-json"),
    "not an object": (b"[]", 400, "wrong-type"),
    "another kind": (edited(lambda r: r.update(kind="Pod")), 400, "wrong-kind"),
    "another version": (edited(lambda r: r.update(apiVersion="admission.k8s.io/v1beta1")), 400, "wrong-kind"),
    "no request": (edited(lambda r: r.pop("request")), 400, "wrong-type"),
    "no object": (edited(lambda r: r["request"].pop("object")), 400, "wrong-type"),
    "an object that is a text": (edited(lambda r: r["request"].update(object="x")), 400, "wrong-type"),
    "too deep": (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, 400, "unreadable-json"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
@pytest.mark.parametrize("path", ["/validate", "/mutate"])
def test_what_no_api_server_sends_is_refused_without_a_review(server: Server, case: str, path: str) -> None:
    body, status, reason = BAD_CALLS[case]
    reply = server.post(body, path)
    assert reply.status == status, reply.body
    assert set(reply.body) == {"error"}
    assert (reply.body["error"]["code"], reply.body["error"]["reason"]) == (status, reason)
    assert "Traceback" not in json.dumps(reply.body)


@pytest.mark.parametrize("fields", [7, "x", [7], [{"manager": 7}], [{"manager": "m", "fieldsV1": "x"}]])
def test_wrong_types_in_claims_never_lead_to_an_allow(server: Server, fields: object) -> None:
    reply = server.post(edited(lambda r: r["request"]["object"]["metadata"].update(managedFields=fields)))
    assert reply.status == 400 or (reply.status == 200 and not reply.allowed), reply
    assert not [line for line in server.lines() if "trace" in line]


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/jsonx", ""])
def test_another_content_type_is_415(server: Server, kind: str) -> None:
    reply = server.post(review(), Content_Type=kind)
    assert (reply.status, reply.body["error"]["reason"]) == (415, "unsupported-media-type")


def test_a_content_type_may_carry_parameters(server: Server) -> None:
    assert server.post(review(), Content_Type="Application/JSON; charset=utf-8").status == 200


def test_a_content_encoding_is_415(server: Server) -> None:
    assert server.post(review(), Content_Encoding="gzip").status == 415


def test_41_mib_are_413_and_the_client_hears_it(server: Server) -> None:
    reply = server.post(b" " * (41 * MIB))
    assert (reply.status, reply.body["error"]["reason"]) == (413, "too-large")
    assert reply.headers["connection"] == "close"


def test_41_mib_in_chunks_are_413(server: Server) -> None:
    with contextlib.closing(server.connect()) as connection:
        connection.request(
            "POST",
            "/validate",
            body=(b" " * MIB for _ in range(41)),
            headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"},
            encode_chunked=True,
        )
        assert connection.getresponse().status == 413


def test_a_chunked_review_is_judged(server: Server) -> None:
    with contextlib.closing(server.connect()) as connection:
        pieces = [review()[at : at + 700] for at in range(0, len(review()), 700)]
        connection.request(
            "POST",
            "/validate",
            body=iter(pieces),
            headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"},
            encode_chunked=True,
        )
        reply = connection.getresponse()
        assert reply.status == 200
        assert json.loads(reply.read())["response"]["allowed"] is False


def test_three_megabytes_of_escaped_text_are_judged(server: Server) -> None:
    """Each `<` is six bytes in the review, in both objects: 36 MB."""

    def fill(loaded: dict[str, Any]) -> None:
        for part in ("object", "oldObject"):
            loaded["request"][part]["metadata"].setdefault("annotations", {})["big"] = "<" * (3 * 1000 * 1000)

    body = edited(fill).replace(b"<", b"\\u003c")
    assert 36_000_000 < len(body) < 40 * MIB
    reply = server.post(body)
    assert (reply.status, reply.allowed) == (200, False)


def test_a_call_cut_short_is_no_review(server: Server) -> None:
    before = server.metric("fieldwarden_bad_calls_total", reason="incomplete-body")
    with contextlib.closing(server.connect()) as connection:
        connection.putrequest("POST", "/validate")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "5000")
        connection.endheaders(b"{")
    eventually(lambda: server.metric("fieldwarden_bad_calls_total", reason="incomplete-body") == before + 1)


@pytest.mark.parametrize(
    "method, path, status", [("GET", "/validate", 405), ("POST", "/", 404), ("GET", "/metrics", 404)]
)
def test_other_pages_are_errors_in_json(server: Server, method: str, path: str, status: int) -> None:
    with contextlib.closing(server.connect()) as connection:
        connection.request(method, path)
        reply = connection.getresponse()
        assert (reply.status, json.loads(reply.read())["error"]["code"]) == (status, status)


@pytest.mark.parametrize("timeout", ["10s", "1m0s", "soon", "-1s", "0s", ""])
def test_a_deadline_that_has_not_passed_or_is_none_changes_nothing(server: Server, timeout: str) -> None:
    assert server.post(review(), f"/validate?timeout={timeout}").status == 200


def test_an_answer_that_nobody_waits_for_is_504(server: Server) -> None:
    reply = server.post(review(), "/validate?timeout=1ns")
    assert (reply.status, reply.body["error"]["reason"]) == (504, "timeout")


def test_an_idle_connection_stays_open_longer_than_an_api_server_keeps_it(server: Server) -> None:
    with contextlib.closing(server.connect()) as connection:
        first, second = post(connection, review()), post(connection, review())
    assert [first.status, second.status] == [200, 200]
    assert first.headers["connection"] == "keep-alive"


def test_connections_that_send_nothing_take_nobodys_place(server: Server) -> None:
    """Clients open connections for later: more of them than there are threads must not stop the others."""
    idle = [server.connect() for _ in range(40)]
    try:
        for connection in idle:
            connection.connect()  # with its TLS handshake, and no call
        start = time.monotonic()
        assert server.post(review()).status == 200
        assert time.monotonic() - start < 5
        assert post(idle[0], review()).status == 200
    finally:
        for connection in idle:
            connection.close()


def test_plain_http_on_the_tls_port_is_no_answer(server: Server) -> None:
    plain = http.client.HTTPConnection(*server.listen, timeout=10)
    with contextlib.closing(plain), pytest.raises((http.client.HTTPException, OSError)):
        plain.request("POST", "/validate", body=review(), headers={"Content-Type": "application/json"})
        plain.getresponse()
    assert server.post(review()).status == 200
