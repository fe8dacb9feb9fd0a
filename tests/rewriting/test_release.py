"""Release: leftovers let go of what Flux applies, so that what Git drops goes."""

from __future__ import annotations

import json

from tests.rewriting.conftest import NOBODYS, Place, Web, add_sidecar, container, drop_sidecar, lasting
from tests.stories import manifests
from tests.stories.conftest import Tell
from tests.stories.support import FLUX, MERGE_PATCH, Story

ITS = "kustomize-controller (Apply)"
LABEL = ".metadata.labels.tier"
SIDE = '.spec.template.spec.containers[name="side"]'
SHARED = f"share release/applied {LABEL}"


def labelled(story: Story) -> Story:
    """Somebody has set a label, and it is in Git by now."""
    story.kubectl("label deployment web tier=front").allowed()
    story.git["metadata"]["labels"]["tier"] = "front"
    return story


def test_a_label_that_git_drops_goes(web: Web) -> None:
    story = labelled(web("release"))
    answer = story.flux().rewrote(SHARED)
    assert f"[release/applied] released {LABEL} from kubectl-label (Update)" in answer.told
    assert answer.moved == [f"{LABEL}: kubectl-label (Update), {ITS} -> {ITS}"]
    assert (story.value(LABEL), story.owners(LABEL)) == ("front", [ITS])
    assert story.claims() == [ITS]  # kubectl-label held nothing else

    del story.git["metadata"]["labels"]["tier"]
    story.flux().allowed()
    assert story.value(LABEL) is None


def test_without_fieldwarden_it_stays(web: Web) -> None:
    story = labelled(web(NOBODYS))
    story.flux().allowed()
    del story.git["metadata"]["labels"]["tier"]
    story.flux().allowed()
    assert (story.value(LABEL), story.owners(LABEL)) == ("front", ["kubectl-label (Update)"])


def test_a_dry_run_shows_what_a_write_does(web: Web) -> None:
    story = labelled(web("release"))
    dry = story.flux(dry_run=True).rewrote(SHARED)
    assert not dry.stored
    assert story.owners(LABEL) == ["kubectl-label (Update)"]
    wet = story.flux().rewrote(SHARED)
    assert lasting(dry.body) == lasting(wet.body) == lasting(story.get())


def test_the_leftover_keeps_what_it_does_not_share(web: Web) -> None:
    story = labelled(web("release"))
    story.kubectl("label deployment web zone=a").allowed()
    story.flux().rewrote(SHARED)
    assert story.owners(".metadata.labels.zone") == ["kubectl-label (Update)"]
    assert story.owners(LABEL) == [ITS]


def test_it_is_released_once(web: Web) -> None:
    story = labelled(web("release"))
    assert story.flux().rewrote(SHARED).stored
    assert not story.flux().allowed().stored
    assert not story.flux(dry_run=True).allowed().stored


def test_a_share_that_stood_before_goes_at_the_next_write_of_either(web: Web) -> None:
    """Standing shares: made while the policy was not there, by somebody exempt."""
    story = labelled(web("release"))
    story.apply(story.git, FLUX, "admin").allowed()
    assert story.owners(LABEL) == ["kubectl-label (Update)", ITS]
    assert not story.flux().allowed().stored  # an apply of the same is no write
    story.git["metadata"]["labels"]["zone"] = "a"
    story.flux().rewrote(SHARED)
    assert story.owners(LABEL) == [ITS]


def test_who_still_applies_is_no_leftover(web: Web) -> None:
    story = web("release")
    label = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "payments"}}}
    team = ".metadata.labels.team"
    story.apply(label, "team-tool").recorded(f"share release/applied {team}")
    assert story.owners(team) == [ITS, "team-tool (Apply)"]


def adopted(story: Story) -> Story:
    """Two containers, applied by hand; and it is in Git by now."""
    add_sidecar(story.git)
    story.kubectl("apply -f -", stdin=json.dumps(story.git)).allowed()
    return story


def test_a_container_that_git_drops_goes_whole(tell: Tell, place: Place) -> None:
    """Made with `kubectl apply`, which also claims the defaults in each container."""
    story = adopted(tell(manifests.deployment(place("release"))))
    answer = story.flux()
    assert [event.split(" ")[:2] for event in answer.rewritten] == [["share", "release/applied"]], answer
    assert f"{SIDE}.image" in answer.rewritten[0].split(" ")
    assert story.owners(f"{SIDE}.image") == [ITS]
    assert "kubectl-client-side-apply (Update)" in story.claims()  # it has the last-applied annotation

    drop_sidecar(story.git)
    assert story.flux().ok
    assert story.value(SIDE) is None
    assert container(story.get())["image"] == "nginx:1"


def test_a_container_that_git_drops_stays_without_fieldwarden(tell: Tell, place: Place) -> None:
    story = adopted(tell(manifests.deployment(place(NOBODYS))))
    story.flux().allowed()
    drop_sidecar(story.git)
    story.flux().allowed()
    assert story.owners(f"{SIDE}.image") == ["kubectl-client-side-apply (Update)"]


def test_a_part_that_git_drops_goes_whole(widget: Web) -> None:
    """A keyed list of a custom resource, where nothing is defaulted."""
    story = widget("release")
    parts = [*story.git["spec"]["parts"], {"id": "c", "weight": 3}]
    story.kubectl(f"""patch widgets.stories one --type=merge -p '{json.dumps({"spec": {"parts": parts}})}'""").allowed()
    story.git["spec"]["parts"] = parts
    story.flux().rewrote('share release/applied .spec.parts[id="c"].weight')
    assert story.owners('.spec.parts[id="c"]') == [ITS]
    story.git["spec"]["parts"] = parts[:2]
    story.flux().allowed()
    assert story.value('.spec.parts[id="c"]') is None


def test_a_set_member_that_git_drops_goes(widget: Web) -> None:
    story = widget("release")
    story.kubectl(
        """patch widgets.stories one --type=json -p '[{"op":"add","path":"/spec/colors/-","value":"green"}]'"""
    )
    story.git["spec"]["colors"].append("green")
    story.flux().rewrote('share release/applied .spec.colors[="green"]')
    story.git["spec"]["colors"].pop()
    story.flux().allowed()
    assert story.value(".spec.colors") == ["blue", "red"]


def test_before_first_apply_is_a_leftover(tell: Tell, place: Place) -> None:
    """Claims were lost, as in a restored backup: at the next apply the server puts all there is under that name."""
    story = tell(manifests.config_map(place("release")))
    story.kubectl("create -f -", stdin=json.dumps(story.git)).allowed()
    story.request("PATCH", {"metadata": {"managedFields": [{}]}}, "admin", MERGE_PATCH).allowed()
    assert story.claims() == []
    story.flux().rewrote("share release/applied .data.color .data.size .metadata.labels.app")
    assert (story.owners(".data.color"), story.owners(".metadata.labels.app")) == ([ITS], [ITS])
    del story.git["data"]["color"], story.git["metadata"]["labels"]
    story.flux().allowed()
    assert (story.get()["data"], story.value(".metadata.labels.app")) == ({"size": "5"}, None)


def test_an_object_of_no_namespace(tell: Tell) -> None:
    story = tell(manifests.cluster_role("released"))
    story.flux().allowed()
    story.kubectl("label clusterrole released tier=front").allowed()
    story.git["metadata"]["labels"]["tier"] = "front"
    story.flux().rewrote(f"share roles/applied {LABEL}")
    del story.git["metadata"]["labels"]["tier"]
    story.flux().allowed()
    assert story.value(LABEL) is None
    less = {"rules": [], "metadata": {"labels": {"team": None}}}
    answer = story.request("PATCH", less, content_type=MERGE_PATCH)
    assert not answer.rewrote("change roles/applied .rules .metadata.labels.team").stored
