"""Rename: whatever people write with kubectl is claimed under one name."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.rewriting.conftest import NOBODYS, POLICIES, Place, Web
from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import MERGE_PATCH, Answer, Object, Story
from webhook.cli import main
from webhook.fields import ManagedFields

ITS = "kustomize-controller (Apply)"
PEOPLE = "people (Update)"
RENAMED = "rename people/one-name"


def annotate(story: Story, name: str, manager: str) -> Answer:
    body = {"metadata": {"annotations": {name: "x"}}}
    return story.request("PATCH", body, content_type=MERGE_PATCH, params={"fieldManager": manager})


def people(story: Story) -> Object:
    """The one claim of that name."""
    (claim,) = [claim for claim in story.get()["metadata"]["managedFields"] if claim["manager"] == "people"]
    fields: Object = claim["fieldsV1"]
    return fields


def test_a_label_by_kubectl(web: Web) -> None:
    story = web("people")
    answer = story.kubectl("label deployment web tier=front").rewrote(RENAMED)
    assert "[people/one-name] renamed kubectl-label (Update) to people" in answer.told
    assert answer.moved == [f"kubectl-label (Update) -> {PEOPLE}"]
    assert story.owners(".metadata.labels.tier") == [PEOPLE]
    assert story.claims() == [ITS, PEOPLE]


def test_claims_of_several_tools_become_one(web: Web) -> None:
    story = web("people")
    story.kubectl("label deployment web tier=front").rewrote(RENAMED)
    story.kubectl("annotate deployment web note=hello").rewrote(RENAMED)
    story.kubectl("set env deployment web -c c B=2").rewrote(RENAMED)
    story.kubectl("rollout pause deployment web").rewrote(RENAMED)
    story.kubectl("edit deployment web", editor="sed -i s/tier:.front/tier:\\ back/").rewrote(RENAMED)
    assert story.claims() == [ITS, PEOPLE]
    assert story.value(".metadata.labels.tier") == "back"
    variable = '.spec.template.spec.containers[name="c"].env[name="B"].value'
    for path in (".metadata.labels.tier", ".metadata.annotations.note", variable, ".spec.paused"):
        assert story.owners(path) == [PEOPLE]


def test_two_old_claims_become_one_at_the_next_write_of_anybody(web: Web) -> None:
    """They were made by somebody exempt."""
    story = web("people")
    story.kubectl("label deployment web tier=front", "admin").allowed()
    story.kubectl("annotate deployment web note=hello", "admin").allowed()
    assert set(story.claims()) == {ITS, "kubectl-annotate (Update)", "kubectl-label (Update)"}
    assert not story.flux().allowed().stored  # an apply of the same is no write
    story.git["spec"]["minReadySeconds"] = 5
    assert len(story.flux().rewritten) == 2
    assert story.claims() == [ITS, PEOPLE]
    assert story.owners(".metadata.labels.tier") == story.owners(".metadata.annotations.note") == [PEOPLE]


def test_a_claim_of_another_version_stays_apart(tell: Tell, place: Place) -> None:
    """An Update claim is known by its version, too: the paths of one are not those of the other."""
    story = tell(manifests.autoscaler(place("people")))
    story.flux().allowed()
    annotate(story, "two", "kubectl-annotate").rewrote(RENAMED)
    old = story.path.replace("/v2/", "/v1/")
    body = {"metadata": {"annotations": {"one": "x"}}}
    story.request("PATCH", body, content_type=MERGE_PATCH, path=old, params={"fieldManager": "kubectl-patch"})
    claims = [claim for claim in story.get()["metadata"]["managedFields"] if claim["operation"] == "Update"]
    assert {claim["manager"] for claim in claims} == {"people"}
    assert sorted(claim["apiVersion"] for claim in claims) == ["autoscaling/v1", "autoscaling/v2"]


def test_a_creation(tell: Tell, place: Place) -> None:
    story = tell(manifests.config_map(place("people")))
    story.kubectl("create -f -", stdin=json.dumps(story.git)).rewrote(RENAMED)
    assert story.claims() == [PEOPLE]
    assert set(people(story)["f:data"]) == {".", "f:color", "f:size"}


def test_apply_by_hand_and_its_move_to_the_server(tell: Tell, place: Place) -> None:
    """kubectl knows its claim by the last-applied annotation in it, not by its name, and takes it over."""
    story = tell(manifests.config_map(place("people")))
    manifest = json.dumps(story.git)
    story.kubectl("apply -f -", stdin=manifest).rewrote(RENAMED)
    assert story.claims() == [PEOPLE]
    assert story.kubectl("apply --server-side -f -", stdin=manifest).ok
    assert "kubectl (Apply)" in story.claims()
    assert story.owners(".data.color") == ["kubectl (Apply)"]
    del story.git["data"]["color"]
    assert story.kubectl("apply --server-side -f -", stdin=json.dumps(story.git)).ok
    assert story.value(".data.color") is None


def test_the_same_write_again_changes_nothing(web: Web) -> None:
    story = web("people")
    assert annotate(story, "a", "kubectl-annotate").rewrote(RENAMED).stored
    assert not annotate(story, "a", "kubectl-annotate").allowed().stored
    assert not story.request("PUT", story.get(), params={"fieldManager": "kubectl-replace"}).allowed().stored


def test_what_people_give_up_nobody_claims(web: Web) -> None:
    story = web("people")
    story.kubectl("label deployment web tier=front zone=a").rewrote(RENAMED)
    assert story.kubectl("label deployment web tier-").ok
    assert (story.value(".metadata.labels.tier"), story.owners(".metadata.labels.tier")) == (None, [])
    assert story.owners(".metadata.labels.zone") == [PEOPLE]


def test_many_kubectl_names_do_not_fill_the_ten_places(settings: Web) -> None:
    story = settings("people")
    for number in range(15):
        annotate(story, f"note-{number}", f"kubectl-{number}").rewrote(RENAMED)
    assert story.claims() == [ITS, PEOPLE]
    assert set(people(story)["f:metadata"]["f:annotations"]) == {".", *(f"f:note-{n}" for n in range(15))}


def test_many_at_once(settings: Web) -> None:
    """The server tries a patch again when another write came first, and asks us again: nobody's claim gets lost."""
    story = settings("people")
    story.git["data"]["size"] = "6"

    def write(number: int) -> int:
        body = {"metadata": {"annotations": {f"note-{number}": "x"}}}
        named = {"fieldManager": f"kubectl-{number}"}
        while (
            reply := story.sandbox.request("PATCH", story.path, body, "developer", MERGE_PATCH, named)
        ).status == 409:
            """The server gave up after a few tries."""
        return reply.status

    with ThreadPoolExecutor(6) as threads:
        statuses = list(threads.map(write, range(40)))
    assert set(statuses) == {200}
    assert story.flux().ok
    assert story.claims() == [ITS, PEOPLE]
    assert set(people(story)["f:metadata"]["f:annotations"]) == {".", *(f"f:note-{n}" for n in range(40))}


def test_without_fieldwarden_they_do(settings: Web) -> None:
    story = settings(NOBODYS)
    for number in range(15):
        annotate(story, f"note-{number}", f"kubectl-{number}").allowed()
    assert "ancient-changes (Update)" in story.claims()


def test_the_ten_places_filled_by_others(settings: Web) -> None:
    """The server folds the oldest into ancient-changes before we see them: nothing gets lost, nothing twice."""
    story = settings("people")
    annotate(story, "first", "kubectl-annotate").rewrote(RENAMED)
    for number in range(12):
        annotate(story, f"note-{number}", f"name-{number}").allowed()
        if number % 3 == 0:  # within a second the server folds by name: then a new kubectl's claim may go at once
            assert annotate(story, f"mine-{number}", f"kubectl-{number}").ok
    claims = ManagedFields.parse(story.get()["metadata"]["managedFields"])
    assert len(set(map(str, claims))) == len(story.get()["metadata"]["managedFields"]) <= 12
    for name in story.value(".metadata.annotations"):
        assert len(story.owners(f'.metadata.annotations["{name}"]')) == 1
    assert "ancient-changes (Update)" in story.claims()
    for number in (3, 6, 9):
        assert set(story.owners(f'.metadata.annotations["mine-{number}"]')) <= {PEOPLE, "ancient-changes (Update)"}
    assert story.owners(".data.color") == [ITS]
    assert not story.flux().allowed().stored


@pytest.mark.parametrize(
    ("source", "problem"), [("{manager: kustomize-controller, operation: Apply}", "rename-apply"), ('"kubectl-*"', "")]
)
def test_an_applys_claim_is_never_renamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, problem: str
) -> None:
    """It would break its client: such a policy does not load."""
    path = tmp_path / "policy.yaml"
    path.write_text((POLICIES / "people.yaml").read_text().replace('"kubectl-*"', source))
    code = main(["lint", str(path)])
    said = "".join(capsys.readouterr())
    assert code == (1 if problem else 0), said
    assert problem in said
