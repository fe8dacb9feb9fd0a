"""A second mutating webhook undoes what ours put right. What does not land is refused; what can be redone, passes.

The server calls ours first. With `reinvocationPolicy: IfNeeded` it calls ours once more after the other's change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pytest

from tests.rewriting.conftest import container, make_place
from tests.rewriting.hostile import LABEL, Act, Hostile, nothing, registered
from tests.stories import manifests
from tests.stories.conftest import Tell, applied
from tests.stories.server import Server
from tests.stories.support import JSON_PATCH, MERGE_PATCH, Answer, Object, Story
from webhook.sandbox import Sandbox

ITS = "kustomize-controller (Apply)"
IMAGE = '.spec.template.spec.containers[name="c"].image'
TEAM, TIER = ".metadata.labels.team", ".metadata.labels.tier"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def hostile(sandbox: Sandbox, server: Server) -> Iterator[Hostile]:
    with registered(sandbox) as running:
        yield running


@pytest.fixture(scope="module", params=["IfNeeded", "Never"])
def ours(request: pytest.FixtureRequest, server: Server, hostile: Hostile) -> Iterator[Literal["IfNeeded", "Never"]]:
    """How often the server calls ours."""
    server.register(reinvocation=request.param)
    yield request.param
    server.register()


def claim_of(item: Object, manager: str) -> Object:
    (found,) = [claim for claim in item["metadata"]["managedFields"] if claim["manager"] == manager]
    return dict(found)


def label(story: Story) -> Answer:
    return story.kubectl("label deployment web tier=front")


def image(story: Story, user: str = "developer") -> Answer:
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    return story.request("PATCH", body, user, STRATEGIC, params={"fieldManager": "hotfix"})


def co_owned(story: Story) -> None:
    label(story).allowed()
    story.git["metadata"]["labels"]["tier"] = "front"


def haunted(story: Story) -> None:
    co_owned(story)
    assert story.flux().ok
    del story.git["metadata"]["labels"]["tier"]


def claim_again(old: Object, new: Object) -> None:
    """The leftover's claim is back."""
    claims = new["metadata"]["managedFields"]
    if not any(claim["manager"] == "kubectl-label" for claim in claims):
        claims.append(claim_of(old, "kubectl-label"))


def keep_alive(old: Object, new: Object) -> None:
    """The ghost is back, with the leftover's claim."""
    new["metadata"]["labels"]["tier"] = "front"
    claim_again(old, new)


def set_again(old: Object, new: Object) -> None:
    """The client's image is back; nobody claims it."""
    container(new)["image"] = "nginx:2"


def take_again(old: Object, new: Object) -> None:
    """The owner's claim on the image is gone, and another's there instead."""
    paths: Object = {"f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:image": {}}}}}}
    for claim in new["metadata"]["managedFields"]:
        spec = claim["fieldsV1"].get("f:spec", {})
        mine = spec.get("f:template", {}).get("f:spec", {}).get("f:containers", {}).get('k:{"name":"c"}', {})
        mine.pop("f:image", None)
    new["metadata"]["managedFields"].append(
        {
            "manager": "hotfix",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": paths},
        }
    )


def rename_again(old: Object, new: Object) -> None:
    for claim in new["metadata"]["managedFields"]:
        if claim["manager"] == "people":
            claim["manager"] = "kubectl-label"


def thin_again(old: Object, new: Object) -> None:
    labels = new["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:labels"]
    labels.pop("f:team", None)


def clear_all(old: Object, new: Object) -> None:
    """Claims that do not decode: the server resets them to what the client's request made, without our rewrite too."""
    new["metadata"]["managedFields"] = [{}]


def thin(story: Story) -> Answer:
    path = "/metadata/managedFields/0/fieldsV1/f:metadata/f:labels/f:team"
    return story.request("PATCH", [{"op": "remove", "path": path}], content_type=JSON_PATCH)


@dataclass(frozen=True)
class Case:
    """A request that a policy rewrites, what undoes it, and the state that is right."""

    policy: str
    write: Callable[[Story], Answer]
    undo: Act
    event: str
    right: tuple[str, object, list[str]]  # a path, its value and its owners
    before: Callable[[Story], object] = lambda story: None


CASES = {
    "release": Case(
        "release", Story.flux, claim_again, f"share release/applied {TIER}", (TIER, "front", [ITS]), co_owned
    ),
    "prune": Case("prune", Story.flux, keep_alive, f"ghost prune/applied {TIER}", (TIER, None, []), haunted),
    "restore": Case("restore", image, set_again, f"change restore/applied {IMAGE}", (IMAGE, "nginx:1", [ITS])),
    "reassign": Case(
        "reassign",
        lambda story: image(story, "oncall"),
        take_again,
        f"change reassign/break-glass {IMAGE}",
        (IMAGE, "nginx:2", [ITS]),
    ),
    "rename": Case("people", label, rename_again, "rename people/one-name", (TIER, "front", ["people (Update)"])),
    "rename, undecodable": Case(
        "people", label, clear_all, "rename people/one-name", (TIER, "front", ["people (Update)"])
    ),
    "tamper": Case("unedited", thin, thin_again, f"tamper unedited/claims {TEAM}", (TEAM, "payments", [ITS])),
}


@pytest.fixture
def begin(tell: Tell, sandbox: Sandbox, hostile: Hostile) -> Iterator[Callable[[Case, str], Story]]:
    """An object ready for a case's write, in a namespace that the other webhook is asked about."""

    def begun(case: Case, often: str) -> Story:
        place = make_place(sandbox, case.policy, **{LABEL: often})
        story = applied(tell(manifests.deployment(place)))
        case.before(story)
        hostile.act = case.undo
        return story

    yield begun
    hostile.act = nothing


def right(story: Story, case: Case) -> bool:
    path, value, owners = case.right
    return (story.value(path), story.owners(path)) == (value, owners)


def refused(answer: Answer, case: Case) -> None:
    """The mutating call did what it could, and the validating call saw that it is undone."""
    assert not answer.ok, f"it passed: {answer.told}"
    assert 'admission webhook "validate.fieldwarden.dev" denied the request' in answer.told
    assert case.event.split(" ")[1] in {event.split(" ")[1] for event in answer.refused}, answer
    assert "was not done" in answer.told
    assert not answer.stored


@pytest.mark.parametrize("told", CASES)
def test_undone_once(begin: Callable[[Case, str], Story], ours: str, told: str) -> None:
    case = CASES[told]
    story = begin(case, "once")
    answer = case.write(story)
    if ours == "Never" or case.undo is clear_all:
        refused(answer, case)
    else:
        assert answer.ok, answer
        assert answer.refused == []
        assert case.event in answer.rewritten
        assert right(story, case)


@pytest.mark.parametrize("told", CASES)
def test_undone_always(begin: Callable[[Case, str], Story], ours: str, told: str) -> None:
    case = CASES[told]
    refused(case.write(begin(case, "always")), case)


@pytest.mark.parametrize("told", CASES)
def test_not_undone(begin: Callable[[Case, str], Story], hostile: Hostile, ours: str, told: str) -> None:
    """The other webhook is asked, and does nothing."""
    case = CASES[told]
    story = begin(case, "always")
    hostile.act, calls = nothing, hostile.calls
    case.write(story).rewrote(case.event)
    assert hostile.calls > calls
    assert right(story, case)


def test_a_sidecar_that_another_webhook_adds_is_its_own(
    begin: Callable[[Case, str], Story], hostile: Hostile, ours: str
) -> None:
    """What nobody claims and no owner owned is nobody's business: the other webhook is a usual one this time."""

    def inject(old: Object, new: Object) -> None:
        containers = new["spec"]["template"]["spec"]["containers"]
        if len(containers) == 1:
            containers.append({"name": "proxy", "image": "proxy:1"})

    story = begin(CASES["restore"], "always")
    hostile.act = inject
    answer = story.request("PATCH", {"spec": {"paused": True}}, content_type=MERGE_PATCH)
    assert answer.allowed().stored
    assert story.value('.spec.template.spec.containers[name="proxy"].image') == "proxy:1"
