"""Registering webhooks by URL, and what the API server then sends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from webhook.sandbox import Capture, Sandbox

RULES = [
    {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["configmaps", "configmaps/*"],
    }
]


@pytest.fixture
def capture(sandbox: Sandbox) -> Iterator[Capture]:
    with Capture.start() as running:
        yield running
        sandbox.unregister_webhooks()


def _write(sandbox: Sandbox, namespace: str, name: str) -> int:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return sandbox.request("POST", path, {"metadata": {"name": name}}, "developer").status


def test_the_first_write_after_registering_reaches_both_calls(
    sandbox: Sandbox, namespace: str, capture: Capture
) -> None:
    sandbox.register_webhooks(capture.url, capture.ca_pem, RULES)
    assert _write(sandbox, namespace, "one") == 201
    calls = capture.take()
    assert [call.phase for call in calls] == ["mutate", "validate"]
    request = calls[1].review["request"]
    assert (request["name"], request["userInfo"]["username"]) == ("one", "developer@example.com")
    assert capture.take() == []


def test_validating_alone_unregisters_the_mutating_call(sandbox: Sandbox, namespace: str, capture: Capture) -> None:
    sandbox.register_webhooks(capture.url, capture.ca_pem, RULES)
    sandbox.register_webhooks(capture.url, capture.ca_pem, RULES, mutating=False)
    assert _write(sandbox, namespace, "one") == 201
    assert [call.phase for call in capture.take()] == ["validate"]


def test_a_webhook_that_is_gone_fails_the_write_until_unregistered(sandbox: Sandbox, namespace: str) -> None:
    with Capture.start() as gone:
        pass
    sandbox.register_webhooks(gone.url, gone.ca_pem, RULES)
    assert _write(sandbox, namespace, "one") == 500
    sandbox.register_webhooks(gone.url, gone.ca_pem, RULES, failure_policy="Ignore")
    assert _write(sandbox, namespace, "one") == 201
    sandbox.register_webhooks(gone.url, gone.ca_pem, RULES)
    sandbox.unregister_webhooks()
    assert _write(sandbox, namespace, "two") == 201


def test_registering_waits_for_the_callers_own_sign(sandbox: Sandbox, namespace: str, capture: Capture) -> None:
    asked = []

    def seen() -> bool:
        asked.append(_write(sandbox, namespace, f"sign-{len(asked)}"))
        return bool(capture.take()) and len(asked) > 1

    sandbox.register_webhooks(capture.url, capture.ca_pem, RULES, ready=seen)
    assert asked == [201, 201]


def test_configurations_are_as_the_chart_renders_them(sandbox: Sandbox, capture: Capture) -> None:
    sandbox.register_webhooks(capture.url, capture.ca_pem, RULES, timeout=7)
    base = "/apis/admissionregistration.k8s.io/v1"
    for kind in ("validating", "mutating"):
        (found,) = sandbox.request("GET", f"{base}/{kind}webhookconfigurations").body["items"]
        (webhook,) = found["webhooks"]
        words = {key: webhook[key] for key in ("sideEffects", "matchPolicy", "failurePolicy", "timeoutSeconds")}
        assert words == {
            "sideEffects": "NoneOnDryRun",
            "matchPolicy": "Equivalent",
            "failurePolicy": "Fail",
            "timeoutSeconds": 7,
        }
        assert webhook.get("reinvocationPolicy") == ("IfNeeded" if kind == "mutating" else None)
