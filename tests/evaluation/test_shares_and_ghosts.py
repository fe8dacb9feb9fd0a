"""`share` and `ghost`: two claims on one field, and the field that nobody alive wants any more."""

from __future__ import annotations

import pytest

from tests.evaluation.writes import (
    DEPLOYMENT,
    FLUX,
    FLUX_USER,
    IMAGE,
    NAMES,
    SIDE,
    TEAM,
    changed,
    events,
    judge,
    updater,
    write,
)
from webhook.fields import Change, Identity

CSA = updater("kubectl-client-side-apply")
CI = Identity("ci-tool", "Apply")
APP = ".metadata.labels.app"
OWNER = (
    "{manager: kustomize-controller, operation: Apply, subjects: [{serviceAccount: flux-system/kustomize-controller}]}"
)
RULE = f"""
- name: git
  ownership:
    fields: [.metadata, .spec]
    owners: [{OWNER}]
"""


def share_by_owner() -> Change:
    return write(
        DEPLOYMENT,
        changed(DEPLOYMENT),
        {CSA: [TEAM, APP]},
        {FLUX: [TEAM], CSA: [TEAM, APP]},
        manager=FLUX.manager,
        user=FLUX_USER,
    )


def share_by_other() -> Change:
    return write(DEPLOYMENT, DEPLOYMENT, {FLUX: [TEAM]}, {FLUX: [TEAM], CI: [TEAM]}, manager="ci-tool")


def test_a_share_is_found_whoever_of_the_two_wrote() -> None:
    assert events(judge(share_by_owner(), RULE)) == [("share", "git", [TEAM])]
    assert events(judge(share_by_other(), RULE)) == [("share", "git", [TEAM])]


def test_deny_refuses_only_the_write_of_the_one_who_is_no_owner() -> None:
    rule = RULE + "    onShare: Deny\n"
    assert not judge(share_by_other(), rule).allowed
    decision = judge(share_by_owner(), rule)
    assert decision.allowed
    assert [result.would for result in decision.results] == ["record"]


def test_release_is_called_for_where_the_other_is_a_leftover_and_only_there() -> None:
    rule = RULE + "    onShare: Release\n"
    assert [result.would for result in judge(share_by_owner(), rule).results] == ["release"]
    assert [result.would for result in judge(share_by_other(), rule).results] == ["record"]
    assert judge(share_by_owner(), rule, mode="Warn").warnings
    assert "mutating webhook" in judge(share_by_owner(), rule).message


def test_a_standing_share_is_told_of_again_only_for_release() -> None:
    change = write(
        DEPLOYMENT,
        changed(DEPLOYMENT, app="x"),
        {FLUX: [TEAM, APP], CSA: [TEAM]},
        {FLUX: [TEAM, APP], CSA: [TEAM]},
        manager=FLUX.manager,
        user=FLUX_USER,
    )
    assert events(judge(change, RULE)) == []
    assert events(judge(change, RULE + "    onShare: Release\n")) == [("share", "git", [TEAM])]


def test_list_keys_and_maps_themselves_are_shared_by_every_second_applier() -> None:
    change = write(
        DEPLOYMENT,
        DEPLOYMENT,
        {FLUX: [IMAGE, *NAMES, ".metadata.labels", TEAM]},
        {FLUX: [IMAGE, *NAMES, ".metadata.labels", TEAM], CI: [*NAMES, ".metadata.labels", APP]},
        manager="ci-tool",
    )
    assert events(judge(change, RULE)) == []


def ghost(
    keeper: Identity = CSA, path: str = TEAM, others: dict[Identity, list[str]] | None = None, **kwargs: str
) -> Change:
    others = others or {}
    return write(
        DEPLOYMENT,
        DEPLOYMENT,
        {FLUX: [path, APP], keeper: [path], **others},
        {FLUX: [APP], keeper: [path], **others},
        manager=FLUX.manager,
        user=FLUX_USER,
        **kwargs,
    )


@pytest.mark.parametrize(
    "keeper", [CSA, updater("kubectl-edit"), updater("before-first-apply"), updater("ancient-changes")]
)
def test_a_dropped_field_that_only_leftovers_claim_is_a_ghost(keeper: Identity) -> None:
    decision = judge(ghost(keeper), RULE + "    onGhost: Prune\n")
    assert events(decision) == [("ghost", "git", [TEAM])]
    assert not decision.allowed, "nothing has pruned it"
    assert [result.would for result in decision.results] == ["prune"]
    assert str(keeper) in decision.results[0].message


@pytest.mark.parametrize("keeper", [CI, updater("sidecar-injector"), updater("kubectl-edit", "status")])
def test_a_field_that_somebody_stands_behind_is_no_ghost(keeper: Identity) -> None:
    assert events(judge(ghost(keeper), RULE)) == []


def test_a_ghost_needs_the_owners_apply() -> None:
    change = write(
        DEPLOYMENT, changed(DEPLOYMENT, app="x"), {CI: [TEAM], CSA: [TEAM]}, {CI: [APP], CSA: [TEAM]}, manager="ci-tool"
    )
    assert events(judge(change, RULE)) == []


def test_handing_replicas_over_to_another_applier_is_no_ghost() -> None:
    assert events(judge(ghost(CI, ".spec.replicas"), RULE)) == []


def test_in_a_list_item_that_somebody_else_works_with_nothing_is_a_ghost() -> None:
    kept = f"{SIDE}.image"
    assert events(judge(ghost(CSA, kept), RULE)) == [("ghost", "git", [kept])]
    injector = {updater("injector"): [SIDE, f"{SIDE}.resources"]}
    assert events(judge(ghost(CSA, kept, injector), RULE)) == []
    only_keys = {updater("injector"): [SIDE, f"{SIDE}.name"]}
    assert events(judge(ghost(CSA, kept, only_keys), RULE)) == [("ghost", "git", [kept])]


def test_leftovers_are_what_the_rule_says() -> None:
    rule = RULE + '    leftovers: ["old-*"]\n'
    assert events(judge(ghost(CSA), rule)) == []
    assert events(judge(ghost(updater("old-ci")), rule)) == [("ghost", "git", [TEAM])]
