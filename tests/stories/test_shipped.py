"""The shipped policies, all of them in Enforce, on every object of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.server import Server, serving
from tests.stories.support import MERGE_PATCH, Object, Story
from webhook.policy import load
from webhook.policy.compiled import Mode
from webhook.sandbox import Sandbox

SHIPPED = Path(__file__).parents[2] / "policies"
EVERYTHING = [
    {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*/*"], "scope": "*"}
]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# The server itself keeps writing these, so that they change while we look.
RESTLESS = ("leases.coordination.k8s.io", "events", "events.events.k8s.io")


@pytest.fixture(scope="module")
def shipped(sandbox: Sandbox, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with all shipped policies in Enforce, asked about every write; the stories' own afterwards."""
    folder = tmp_path_factory.mktemp("shipped")
    for path in sorted(SHIPPED.glob("*/policy.yaml")):
        text = re.sub(r"^(  mode:\s*)\w+", r"\1Enforce", path.read_text(), flags=re.MULTILINE)
        (folder / f"{path.parent.name}.yaml").write_text(text)
    policies = load([folder]).policies
    assert policies is not None
    assert policies.policies
    assert {policy.mode for policy in policies.policies} == {Mode.ENFORCE}
    with serving(sandbox, folder) as running:
        running.register(EVERYTHING)
        yield running
        server.register()


def everything(sandbox: Sandbox) -> list[Object]:
    """Every object that can be listed and replaced."""
    kinds = sandbox.kubectl("api-resources", "--verbs=list,get,update", "-o", "name").stdout.split()
    asked = ",".join(sorted(set(kinds) - set(RESTLESS)))
    found: dict[str, Any] = json.loads(sandbox.kubectl("get", asked, "-A", "-o", "json").stdout)
    items: list[Object] = found["items"]
    return items


def name(item: Object) -> tuple[str, ...]:
    meta = item["metadata"]
    return item["apiVersion"], item["kind"], meta.get("namespace", ""), meta["name"]


def test_every_object_replaced_by_itself_is_left_as_it_is(
    sandbox: Sandbox, namespace: str, tell: Tell, shipped: Server
) -> None:
    for make in (manifests.deployment, manifests.config_map, manifests.service, manifests.autoscaler, manifests.widget):
        story = tell(make(namespace))
        assert story.flux().ok
    story = tell(manifests.config_map(namespace))
    story.git["metadata"]["name"] = "by-hand"
    assert story.kubectl("apply -f -", stdin=json.dumps(story.git)).ok
    before, mark = {name(item): item for item in everything(sandbox)}, shipped.mark()
    assert len(before) > 150

    # kubectl replace rewrites its own annotation where there is one, which is a change: such objects go without kubectl.
    marked = [item for item in before.values() if LAST_APPLIED in item["metadata"].get("annotations", ())]
    others = [item for item in before.values() if item not in marked]
    replaced = sandbox.kubectl("replace", "-f", "-", user="developer", input=json.dumps(listed(others)))
    assert len(replaced.stdout.splitlines()) == len(others)
    assert marked
    assert {sandbox.request("PUT", sandbox.path_of(item), item, "developer").status for item in marked} == {200}

    assert {name(item): item for item in everything(sandbox)} == before
    reviews = [line for line in shipped.reviews(mark) if line["user"] == "developer@example.com"]
    assert {line["phase"] for line in reviews} == {"mutate", "validate"}
    assert not [line for line in reviews if line["decision"] != "allowed" or line.get("results")]
    asked = {(line["namespace"], line["name"]) for line in reviews}
    asked |= {("", name) for namespace, name in asked if name == namespace}  # a Namespace is said to be in itself
    never_sent = {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}  # fact of the server
    assert {key[2:] for key in before if key[1] not in never_sent} <= asked


def listed(items: Any) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


@pytest.fixture
def web(sandbox: Sandbox, namespace: str, shipped: Server) -> Story:
    """A Deployment that Flux has applied."""
    return applied(Story(sandbox, shipped, manifests.deployment(namespace)))


LABELS = "gitops-owns-labels/labels-and-annotations"
FROM_GIT = "guard-everything-flux-applies/from-git"
GLASS = "break-glass/everyone-else"
RENAMED = "one-name-for-kubectl/by-hand"

REFUSED = {
    "label deployment web team=mine --overwrite": {LABELS, FROM_GIT, GLASS},
    "label deployment web team-": {LABELS, FROM_GIT, GLASS},
    "set image deployment web c=nginx:2": {FROM_GIT, GLASS},
    "label deployment web tier=front --field-manager=my-script": {"known-managers-only/known"},
    "label deployment web tier=front --field-manager=kustomize-controller": {"writers-are-who-they-say/flux"},
    """patch deployment web --type=merge -p '{"metadata":{"managedFields":[{}]}}'""": {
        "claims-are-not-edited/integrity"
    },
}


@pytest.mark.parametrize("command", REFUSED)
def test_refused(web: Story, command: str) -> None:
    answer = web.kubectl(command)
    answer.denied(*answer.refused)
    assert rules(answer.refused) == REFUSED[command]


@pytest.mark.parametrize("command", ["label deployment web tier=front", "rollout restart deployment web"])
def test_passed(web: Story, command: str) -> None:
    answer = web.kubectl(command)
    assert answer.ok and answer.stored
    assert (answer.refused, answer.found, rules(answer.rewritten)) == ([], [], {RENAMED})


def test_client_side_apply_of_an_image(web: Story) -> None:
    web.git["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    answer = web.kubectl("apply -f -", stdin=json.dumps(web.git))
    answer.denied(*answer.refused)
    assert rules(answer.refused) == {FROM_GIT, GLASS, "no-client-side-apply-on-gitops/no-client-side-apply"}


def test_people_on_call_are_recorded_and_ownership_returns(web: Story) -> None:
    answer = web.kubectl("set image deployment web c=nginx:2", user="oncall")
    assert answer.ok
    assert (answer.refused, rules(answer.found)) == ([], {"guard-everything-flux-applies/break-glass"})
    assert "break-glass/oncall" in rules(answer.rewritten)
    assert web.value('.spec.template.spec.containers[name="c"].image') == "nginx:2"
    assert web.owners('.spec.template.spec.containers[name="c"].image') == ["kustomize-controller (Apply)"]


def test_where_an_autoscaler_has_scaled_nobody_else_does(web: Story) -> None:
    web.git["spec"]["replicas"] = 2
    web.flux().allowed()
    autoscaled: dict[str, Any] = {"user": "autoscaler", "params": {"fieldManager": "kube-controller-manager"}}
    five = {"spec": {"replicas": 5}}
    web.request("PATCH", five, content_type=MERGE_PATCH, subresource="scale", **autoscaled).allowed()
    assert web.owners(".spec.replicas") == ["kube-controller-manager (Update, scale)"]
    answer = web.kubectl("scale deployment web --replicas=1")
    assert rules(answer.refused) == {"autoscaler-owns-replicas/replicas"}
    answer = web.flux()  # Git still says two
    assert (answer.ok, rules(answer.rewritten)) == (True, {"autoscaler-owns-replicas/from-git"})
    assert (web.value(".spec.replicas"), web.owners(".spec.replicas")) == (
        5,
        ["kube-controller-manager (Update, scale)"],
    )
    del web.git["spec"]["replicas"]
    web.flux().allowed()
    assert web.value(".spec.replicas") == 5


def rules(events: list[str]) -> set[str]:
    return {event.split(" ")[1] for event in events}
