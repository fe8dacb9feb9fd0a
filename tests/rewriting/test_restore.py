"""Restore: a guarded value comes back as it was, in its place and with its claims; what else was written is stored."""

from __future__ import annotations

import json

import pytest
from kubernetes import client

from tests.rewriting.conftest import NOBODYS, Place, Web
from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import FLUX, JSON_PATCH, MERGE_PATCH, Object, Story, without

ITS = "kustomize-controller (Apply)"
APPLIED = "change restore/applied"
LABEL = ".metadata.labels.team"
CONTAINERS = ".spec.template.spec.containers"
STRATEGIC = "application/strategic-merge-patch+json"


def three(story: Story) -> Story:
    """Three containers, and three variables in the first, all from Git."""
    pod = story.git["spec"]["template"]["spec"]
    pod["containers"][0]["env"] = [{"name": name, "value": "1"} for name in "ABC"]
    pod["containers"] += [{"name": name, "image": f"{name}:1"} for name in ("middle", "last")]
    story.flux().allowed()
    return story


def names(items: list[Object]) -> list[str]:
    return [item["name"] for item in items]


def test_a_label(web: Web) -> None:
    story = web("restore")
    answer = story.kubectl("label deployment web team=mine --overwrite").rewrote(f"{APPLIED} {LABEL}")
    assert f"[restore/applied] restored {LABEL}: it is owned by {ITS}" in answer.told
    assert not answer.stored
    assert (story.value(LABEL), story.claims()) == ("payments", [ITS])
    assert not story.kubectl("label deployment web team-").rewrote(f"{APPLIED} {LABEL}").stored
    assert not story.flux().allowed().stored


def test_a_dry_run_shows_what_a_write_does(web: Web) -> None:
    story = web("restore")
    before = story.get()
    mine = {"metadata": {"labels": {"team": "mine"}}}
    for params in ({"dryRun": "All"}, {}):
        answer = story.request("PATCH", mine, content_type=MERGE_PATCH, params=params).rewrote(f"{APPLIED} {LABEL}")
        assert answer.body == before
    assert story.get() == before


def test_what_else_the_request_wrote_is_stored(web: Web) -> None:
    story = web("restore")
    patch = {"metadata": {"labels": {"team": "mine", "tier": "front"}}, "spec": {"paused": True}}
    answer = story.kubectl(f"patch deployment web -p '{json.dumps(patch)}'").rewrote(f"{APPLIED} {LABEL}")
    assert answer.stored
    assert (story.value(LABEL), story.owners(LABEL)) == ("payments", [ITS])
    assert story.value(".metadata.labels.tier") == "front"
    assert story.owners(".metadata.labels.tier") == story.owners(".spec.paused") == ["kubectl-patch (Update)"]
    assert story.owners(".metadata.labels.app") == [ITS]


def test_a_force_apply_takes_nothing(web: Web) -> None:
    story = web("restore")
    item = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "mine"}}}
    command = "apply --server-side --force-conflicts -f -"
    answer = story.kubectl(command, stdin=json.dumps(item)).rewrote(f"{APPLIED} {LABEL}")
    assert not answer.stored
    item["metadata"] = {"name": "web", "labels": {"team": "mine", "tier": "front"}}
    assert story.kubectl(command, stdin=json.dumps(item)).rewrote(f"{APPLIED} {LABEL}").stored
    assert (story.value(LABEL), story.owners(LABEL)) == ("payments", [ITS])
    assert story.owners(".metadata.labels.tier") == ["kubectl (Apply)"]


def test_a_variable_of_three_in_its_place(web: Web) -> None:
    story = three(web("restore"))
    variable = f'{CONTAINERS}[name="c"].env[name="B"]'
    answer = story.kubectl("set env deployment web -c c B-")
    assert [event.split(" ")[:2] for event in answer.rewritten] == [APPLIED.split(" ")], answer
    assert (answer.ok, answer.stored) == (True, False)
    assert variable in answer.told
    assert names(story.value(f'{CONTAINERS}[name="c"].env')) == ["A", "B", "C"]
    assert story.owners(f"{variable}.value") == [ITS]


def test_a_container_of_three_in_its_place(web: Web) -> None:
    story = three(web("restore"))
    remove = [{"op": "remove", "path": "/spec/template/spec/containers/1"}]
    answer = story.request("PATCH", remove, content_type=JSON_PATCH)
    assert (answer.ok, answer.stored) == (True, False), answer
    assert "[restore/applied] restored" in answer.told
    assert names(story.value(CONTAINERS)) == ["c", "middle", "last"]
    assert story.owners(f'{CONTAINERS}[name="middle"].image') == [ITS]


def test_a_container_comes_back_among_new_ones(web: Web) -> None:
    """The middle one is removed, another is added at the end, and one gets a variable that nobody owns."""
    story = three(web("restore"))
    containers = story.get()["spec"]["template"]["spec"]["containers"]
    containers[0]["env"].append({"name": "D", "value": "mine"})
    containers[1] = {"name": "mine", "image": "mine:1"}
    story.kubectl("replace -f -", stdin=json.dumps({**story.get(), **spec(story.get(), containers)}))
    found = names(story.value(CONTAINERS))
    assert sorted(found) == ["c", "last", "middle", "mine"]
    assert found.index("c") < found.index("middle") < found.index("last")
    assert story.owners(f'{CONTAINERS}[name="middle"].image') == [ITS]
    assert story.value(f'{CONTAINERS}[name="middle"].image') == "middle:1"
    assert story.owners(f'{CONTAINERS}[name="mine"].image') == ["kubectl-replace (Update)"]
    assert story.owners(f'{CONTAINERS}[name="c"].env[name="D"].value') == ["kubectl-replace (Update)"]
    assert not story.flux().allowed().stored


def spec(item: Object, containers: list[Object]) -> Object:
    template = item["spec"]["template"]
    pod = {**template["spec"], "containers": containers}
    return {"spec": {**item["spec"], "template": {**template, "spec": pod}}}


def test_a_manifest_without_the_label(web: Web) -> None:
    """`kubectl replace` with a file: it holds no claims, and less than the object."""
    story = web("restore")
    answer = story.kubectl("replace -f -", stdin=json.dumps(without(story.git, "metadata", "labels")))
    answer.rewrote(f"{APPLIED} .metadata.labels.app {LABEL}")
    assert not answer.stored


def test_swapped_containers(web: Web) -> None:
    """Claims know no order; a guard of all that matches does."""
    story = web("restore")
    before = story.get()
    swapped = story.get()
    swapped["spec"]["template"]["spec"]["initContainers"].reverse()
    story.request("PUT", swapped).rewrote("change restore/order .spec.template.spec.initContainers")
    assert story.get() == before


def test_an_image_by_the_python_client(web: Web) -> None:
    story = web("restore")
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    meta = story.git["metadata"]

    def call(api: client.ApiClient) -> None:
        found = client.AppsV1Api(api).patch_namespaced_deployment(meta["name"], meta["namespace"], image)
        pod = found.spec.template.spec
        assert pod is not None
        assert pod.containers[0].image == "nginx:1"  # the client is shown what is stored

    answer = story.python(call)
    assert answer.rewritten == [f'{APPLIED} {CONTAINERS}[name="c"].image']
    assert not answer.stored


def test_a_finalizer(settings: Web) -> None:
    story = settings("restore")
    story.git["metadata"]["finalizers"] = ["example.com/a", "example.com/b", "example.com/c"]
    story.flux().allowed()
    path = '.metadata.finalizers[="example.com/b"]'
    fewer = {"metadata": {"finalizers": ["example.com/a", "example.com/c"]}}
    assert not story.request("PATCH", fewer, content_type=MERGE_PATCH).rewrote(f"{APPLIED} {path}").stored
    assert story.value(".metadata.finalizers") == ["example.com/a", "example.com/b", "example.com/c"]
    none = {"metadata": {"finalizers": None}}
    answer = story.request("PATCH", none, content_type=MERGE_PATCH)
    assert (answer.ok, answer.stored) == (True, False), answer
    assert path in answer.told


def test_a_member_of_a_set(widget: Web) -> None:
    story = widget("restore")
    colors = {"spec": {"colors": ["green", "red"]}}
    answer = story.request("PATCH", colors, content_type=MERGE_PATCH, params={"fieldManager": "painter"})
    answer.rewrote(f'{APPLIED} .spec.colors[="blue"]')
    assert sorted(story.value(".spec.colors")) == ["blue", "green", "red"]
    assert story.owners('.spec.colors[="blue"]') == story.owners('.spec.colors[="red"]') == [ITS]
    assert story.owners('.spec.colors[="green"]') == ["painter (Update)"]


WHOLE: dict[str, tuple[Object, str]] = {
    "a part of a keyed list": ({"parts": [{"id": "b", "weight": 2}]}, '.spec.parts[id="a"]'),
    "a keyed list": ({"parts": None}, '.spec.parts[id="a"]'),
    "an atomic list": ({"steps": ["glue"]}, ".spec.steps"),
    "a subtree": ({"anything": None}, ".spec.anything"),
    "what stands in a subtree": ({"anything": {"deep": None}}, ".spec.anything.deep"),
}


@pytest.mark.parametrize("told", WHOLE)
def test_whole(widget: Web, told: str) -> None:
    story = widget("restore")
    body, path = WHOLE[told]
    before = story.get()
    answer = story.request("PATCH", {"spec": body}, content_type=MERGE_PATCH)
    assert answer.ok, answer
    assert [event.split(" ")[:2] for event in answer.rewritten] == [APPLIED.split(" ")], answer
    assert path in answer.told
    assert story.get() == before


@pytest.mark.parametrize("policy", ["restore", "all"])
def test_what_the_schema_rejects_takes_no_claim(widget: Web, policy: str) -> None:
    """The server cannot tell whose fields are in such an object, and drops all claims before it asks anybody."""
    story = widget(policy)
    before = story.get()
    story.request("PATCH", {"spec": {"anything": "flat"}}, content_type=MERGE_PATCH)
    assert story.get() == before


UNIONS: dict[str, tuple[Object, str]] = {
    "a strategy": ({"strategy": {"type": "Recreate", "rollingUpdate": None}}, ".spec.strategy.rollingUpdate"),
    "a volume": (
        {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": None, "hostPath": {"path": "/tmp"}}]}}},
        '.spec.template.spec.volumes[name="v"].emptyDir',
    ),
}


@pytest.mark.parametrize("told", UNIONS)
def test_half_a_union_is_refused_by_the_server_and_the_client_learns_why(web: Web, told: str) -> None:
    story = web("restore")
    story.git["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}
    story.git["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    story.flux().allowed()
    body, path = UNIONS[told]
    answer = story.request("PATCH", {"spec": body}, content_type=STRATEGIC)
    assert not answer.ok
    assert "is invalid" in answer.told
    assert f"[restore/applied] restored {path}" in answer.told
    assert not answer.stored


def test_both_halves_of_a_union_pass_without_fieldwarden(web: Web) -> None:
    story = web(NOBODYS)
    story.git["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}
    story.flux().allowed()
    assert story.request("PATCH", {"spec": UNIONS["a strategy"][0]}, content_type=STRATEGIC).allowed().stored


def test_replicas_in_the_object(web: Web) -> None:
    """Nobody claims them: they are guarded all the same, and nobody does afterwards."""
    story = web("restore")
    before = story.get()
    replicas = {"spec": {"replicas": 3}}
    event = "change replicas/autoscaled .spec.replicas"
    assert not story.request("PATCH", replicas, content_type=MERGE_PATCH).rewrote(event).stored
    story.git["spec"]["replicas"] = 3
    assert not story.flux().rewrote(event).stored
    assert story.get() == before


def test_kubectl_diff_shows_no_drift(web: Web) -> None:
    """What Flux, Argo CD and people look at before they apply."""
    story = web("restore")
    story.git["spec"]["replicas"] = 3
    diff = f"diff --server-side --force-conflicts --field-manager={FLUX} -f -"
    answer = story.kubectl(diff, "flux", stdin=json.dumps(story.git))
    assert answer.ok, answer
    assert "-  replicas" not in answer.told
    assert [event.split(" ")[1] for event in answer.rewritten] == ["replicas/autoscaled"]
    unguarded = web(NOBODYS)
    unguarded.git["spec"]["replicas"] = 3
    answer = unguarded.kubectl(diff, "flux", stdin=json.dumps(unguarded.git))
    assert not answer.ok
    assert "-  replicas: 1" in answer.told


def test_replicas_through_scale(web: Web) -> None:
    story = web("restore")
    event = "change replicas/autoscaled .spec.replicas"
    answer = story.kubectl("scale deployment web --replicas=3").rewrote(event)
    assert not answer.stored
    assert "[replicas/autoscaled] restored .spec.replicas: it is owned by kube-controller-manager" in answer.told
    assert (story.value(".spec.replicas"), story.owners(".spec.replicas")) == (1, [])
    five = {"spec": {"replicas": 5}}
    scaler = {"fieldManager": "kube-controller-manager"}
    answer = story.request("PATCH", five, "autoscaler", MERGE_PATCH, subresource="scale", params=scaler)
    assert answer.allowed().stored
    assert not story.kubectl("scale deployment web --replicas=3").rewrote(event).stored
    assert story.value(".spec.replicas") == 5


def test_replicas_through_scale_where_they_are_claimed(web: Web) -> None:
    story = web("restore")
    five = {"spec": {"replicas": 5}}
    story.apply({**story.git, "spec": {**story.git["spec"], "replicas": 1}}, FLUX, "admin").allowed()
    scaler = {"fieldManager": "kube-controller-manager"}
    story.request("PATCH", five, "autoscaler", MERGE_PATCH, subresource="scale", params=scaler).allowed()
    whose = ["kube-controller-manager (Update, scale)"]
    assert story.owners(".spec.replicas") == whose
    event = "change replicas/autoscaled .spec.replicas"
    assert not story.kubectl("scale deployment web --replicas=3").rewrote(event).stored
    dry = story.kubectl("scale deployment web --replicas=3 --dry-run=server").rewrote(event)
    assert not dry.stored
    assert (story.value(".spec.replicas"), story.owners(".spec.replicas")) == (5, whose)


def test_replicas_through_scale_where_a_leftover_claims_them(tell: Tell, place: Place) -> None:
    """The server itself then splits the leftover's claim in two, as at any scaling to what is there; nothing else moves."""
    story = tell(manifests.deployment(place("restore")))
    story.kubectl("apply -f -", stdin=json.dumps(story.git)).allowed()
    story.kubectl("scale deployment web --replicas=3").rewrote("change replicas/autoscaled .spec.replicas")
    assert story.value(".spec.replicas") == 1
    story.kubectl("label deployment web tier=front").allowed()
    assert story.owners(LABEL) == ["kubectl-client-side-apply (Update)"]
    assert story.owners(".metadata.labels.tier") == ["kubectl-label (Update)"]
