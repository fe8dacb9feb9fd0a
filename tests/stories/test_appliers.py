"""A second applier beside Flux: sharing, forcing, and writing under Flux's own name."""

from __future__ import annotations

import json

from tests.stories.support import FLUX, Object, Story

ITS = "kustomize-controller (Apply)"
LABEL = ".metadata.labels.team"


def labels(**given: str) -> Object:
    """A manifest of a few labels of the Deployment."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": given}}


def data(**given: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": given}


def test_sharing_is_recorded_where_a_policy_only_watches(web: Story) -> None:
    web.apply(labels(team="payments"), "team-tool").recorded(f"share flux-owns/applied {LABEL}")
    assert web.owners(LABEL) == [ITS, "team-tool (Apply)"]


def test_sharing_is_refused_where_a_policy_says_so(settings: Story) -> None:
    answer = settings.apply(data(color="blue"), "team-tool")
    answer.denied("share config/unshared .data.color")
    assert "Leave out of your manifest what others own." in answer.told
    assert settings.owners(".data.color") == [ITS]
    settings.apply(data(shape="round"), "team-tool").allowed()
    assert settings.owners(".data.shape") == ["team-tool (Apply)"]


def test_an_owner_is_not_refused_for_what_others_had_first(settings: Story) -> None:
    settings.apply(data(shape="round"), "team-tool").allowed()
    settings.git["data"]["shape"] = "round"
    settings.flux().recorded("share flux-owns/applied .data.shape")
    assert settings.owners(".data.shape") == [ITS, "team-tool (Apply)"]


def test_a_conflict_is_the_servers_to_refuse_and_never_seen(web: Story) -> None:
    answer = web.apply(labels(team="mine"), "team-tool")
    assert not answer.ok
    assert "Apply failed with 1 conflict" in answer.told
    assert (answer.refused, answer.found, answer.stored) == ([], [], False)


def test_forcing_is_refused(web: Story) -> None:
    answer = web.apply(labels(team="mine"), "team-tool", force=True)
    answer.denied(f"change flux-owns/applied {LABEL}")
    assert answer.causes == [LABEL]
    forced = web.kubectl("apply --server-side --force-conflicts -f -", stdin=json.dumps(labels(team="mine")))
    forced.denied(f"change flux-owns/applied {LABEL}")
    assert "kubectl (Apply) by developer@example.com" in forced.told
    assert web.owners(LABEL) == [ITS]


def test_a_second_applier_of_what_nobody_owns(web: Story) -> None:
    web.kubectl("apply --server-side -f -", stdin=json.dumps(labels(tier="front"))).allowed()
    assert (web.value(".metadata.labels.tier"), web.owners(".metadata.labels.tier")) == ("front", ["kubectl (Apply)"])
    web.kubectl("apply --server-side -f -", stdin=json.dumps(labels())).allowed()
    assert web.value(".metadata.labels.tier") is None


def test_fluxs_name_in_an_update_does_not_help(web: Story) -> None:
    answer = web.kubectl("label deployment web tier=front --field-manager=kustomize-controller")
    answer.denied("impersonation names/bound")
    assert "only serviceAccount system:serviceaccount:flux-system:kustomize-controller may write as" in answer.told


def test_fluxs_name_in_an_apply_does_not_help(web: Story) -> None:
    web.git["metadata"]["labels"]["team"] = "mine"
    web.apply(web.git, FLUX, force=True).denied(f"change flux-owns/applied {LABEL}", "impersonation names/bound")
    assert web.owners(LABEL) == [ITS]


def test_dropping_a_label_under_fluxs_name_does_not_help(web: Story) -> None:
    del web.git["metadata"]["labels"]["team"]
    web.apply(web.git, FLUX).denied(f"change flux-owns/applied {LABEL}", "impersonation names/bound")


def test_creating_under_fluxs_name_is_refused(web: Story) -> None:
    web.git["metadata"]["name"] = "other"
    web.apply(web.git, FLUX).denied("impersonation names/bound")
    assert web.get() == {}


def test_fluxs_user_under_another_name_is_no_owner(web: Story) -> None:
    web.kubectl("label deployment web team=mine --overwrite", user="flux").denied(f"change flux-owns/applied {LABEL}")
