"""The comparison sees what it is for: servers that deny, rewrite or warn are told from one that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.audit.ledger import check
from tests.audit.mirror import Tally
from tests.audit.servers import Twins
from tests.conftest import make_namespace
from tests.stories.support import MERGE_PATCH
from webhook.policy import Mode
from webhook.sandbox import Reply

OWNER = {"manager": "kustomize-controller", "operation": "Apply"}


def policy(name: str, action: str) -> dict[str, object]:
    """For namespaces that begin with its name."""
    rule = {"fields": [".data"], "owners": [{**OWNER, "subjects": [{"group": "nobody"}]}], "onChange": action}
    return {
        "apiVersion": "fieldwarden.dev/v1alpha1",
        "kind": "FieldPolicy",
        "metadata": {"name": name},
        "spec": {
            "mode": "Enforce",
            "match": {"resources": [{"groups": [""], "resources": ["configmaps"]}], "namespaces": [f"{name}-*"]},
            "rules": [{"name": "owned", "ownership": rule | {"guard": "Matching"}}],
        },
    }


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seen") / "policies.yaml"
    path.write_text(yaml.safe_dump_all([policy("denied", "Deny"), policy("restored", "Restore")]))
    return path


@pytest.fixture(params=[Mode.ENFORCE, Mode.WARN, Mode.AUDIT])
def mode(request: pytest.FixtureRequest, sandbox: Twins, policies: Path) -> Iterator[Mode]:
    """What stands where the audit should."""
    with sandbox.serving(policies, request.param) as beside:
        beside.register()
        sandbox.mirror.take()
        yield request.param
        sandbox.unregister_webhooks()
        sandbox.mirror.take()


def change(twins: Twins, place: str) -> Reply:
    """Somebody writes what is another's."""
    namespace = make_namespace(twins, place)  # type: ignore[arg-type]  # it does all that is asked of it
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert twins.request("POST", path, {"metadata": {"name": "settings"}, "data": {"color": "blue"}}).status == 201
    return twins.request("PATCH", f"{path}/settings", {"data": {"color": "red"}}, "developer", MERGE_PATCH)


def test_a_denial_a_rewrite_and_a_warning_are_seen(sandbox: Twins, mode: Mode) -> None:
    if mode is Mode.AUDIT:
        for place in ("denied", "restored"):
            assert change(sandbox, place).body["data"] == {"color": "red"}
            check(sandbox, "a story")
        return
    seen: dict[str, Tally] = {}
    for place in ("denied", "restored"):
        change(sandbox, place)
        seen[place] = sandbox.mirror.take()
    for place, tally in seen.items():
        said = "\n".join(tally.faults)
        assert f"[{place}/owned]" in said, said
        assert ("what is stored" in said) == (mode is Mode.ENFORCE), said
        assert "the answers differ" in said or mode is Mode.WARN


def test_an_event_that_is_not_recorded_is_seen(sandbox: Twins, policies: Path, tmp_path: Path) -> None:
    """The audit knows one policy less."""
    (tmp_path / "fewer.yaml").write_text(yaml.safe_dump(policy("restored", "Restore")))
    with sandbox.serving(policies) as beside:
        beside.audit.stop()
        beside.audit.policies = tmp_path
        beside.audit.start()
        beside.audit.wait()
        beside.register()
        sandbox.mirror.take()
        try:
            change(sandbox, "denied")
            tally = sandbox.mirror.take()
        finally:
            sandbox.unregister_webhooks()
    assert not tally.faults
    (one,) = tally.disagreements
    assert (sum(one.wanted.values()), sum(one.recorded.values())) == (1, 0)
