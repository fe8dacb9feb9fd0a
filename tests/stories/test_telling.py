"""What is told to whom: warnings where a policy only warns, and the values of a Secret to nobody."""

from __future__ import annotations

import base64
import json

import pytest

from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.support import MERGE_PATCH, Answer, Story

OLD, NEW = "correct-horse-battery", "staple-of-my-own"


def test_a_policy_that_warns(settings: Story) -> None:
    patch = """patch configmap settings -p '{"data":{"note":"mine"}}'"""
    answer = settings.kubectl(patch).recorded("change watched/note .data.note")
    assert "Warning: [watched/note] would be refused: kubectl-patch (Update) by developer@example.com" in answer.told
    assert (settings.value(".data.note"), settings.owners(".data.note")) == ("mine", ["kubectl-patch (Update)"])
    assert (
        not settings.kubectl(f"{patch.replace('mine', 'two')} --dry-run=server")
        .recorded("change watched/note .data.note")
        .stored
    )
    settings.kubectl(f"{patch.replace('mine', 'three')} --field-manager=helm", user="helm").allowed()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def login(tell: Tell, namespace: str) -> Story:
    """A Secret that Flux has applied."""
    return applied(tell(manifests.secret(namespace, encoded(OLD))))


def attempts(login: Story) -> list[Answer]:
    """Ways to change a Secret's value."""
    changed = {"data": {"password": encoded(NEW)}}
    manifest = json.dumps({**login.git, **changed})
    stored = login.get()
    stored["data"]["password"] = encoded(NEW)
    return [
        login.kubectl(f"patch secret login -p '{json.dumps(changed)}'"),
        login.kubectl("apply -f -", stdin=manifest),
        login.kubectl("apply --server-side --force-conflicts -f -", stdin=manifest),
        login.kubectl("replace -f -", stdin=json.dumps(stored)),
        login.request("PATCH", {"stringData": {"password": NEW}}, content_type=MERGE_PATCH),
        login.request("PATCH", {"metadata": {"managedFields": [{}]}, **changed}, content_type=MERGE_PATCH),
        login.request("PATCH", {"data": None}, content_type=MERGE_PATCH),
    ]


def test_a_secrets_values_are_shown_to_nobody(login: Story) -> None:
    """kubectl itself repeats the patch that it sent; what the server says begins with `denied the request`."""
    for answer in attempts(login):
        answer.denied(*answer.refused)
        said = answer.told.partition("denied the request")[2]
        assert ".data.password" in said
        for value in (OLD, NEW, encoded(OLD), encoded(NEW)):
            assert value not in said
    metrics = login.server.get("/metrics")[1]
    log = login.server.log.read_text()
    for value in (OLD, NEW, encoded(OLD), encoded(NEW)):
        assert value not in log
        assert value not in metrics
    assert login.value(".data.password") == encoded(OLD)
