"""The laws of rewriting: what must hold of any answer to any write. Each is a function that asserts."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable

import jsonpatch

from tests.rewriting_laws.answers import (
    Path,
    Rewriting,
    answer,
    claims,
    differences,
    enforces,
    every_path,
    holders,
    holders_of_the_whole,
    meet,
    patched,
    plain,
    rewrites,
    rewriting,
    shown,
    with_object,
    with_value,
    without_claims,
)
from tests.rewriting_laws.schema import names_of
from tests.rewriting_laws.simulated import order
from tests.rewriting_laws.strategies import Case
from webhook.admission import Decision, to_response
from webhook.admission.messages import UNDONE
from webhook.admission.review import review_of
from webhook.fields import ABSENT, FieldPath, compare, value_at
from webhook.policy import PolicySet
from webhook.policy.compiled import Action, Mode
from webhook.policy.evaluate import Phase


def the_patch_sent_is_the_patch_decided(done: Rewriting) -> None:
    response = to_response(review_of(copy.deepcopy(done.review)), done.decision)["response"]
    if not done.decision.patch:
        assert "patch" not in response
        assert "patchType" not in response
        return
    assert response["allowed"]
    assert response["patchType"] == "JSONPatch"
    sent = json.loads(base64.b64decode(response["patch"]))
    assert jsonpatch.apply_patch(copy.deepcopy(done.came), sent) == done.result


def a_patch_changes_something(done: Rewriting) -> None:
    if done.decision.patch:
        assert done.result != done.came
        assert done.rewritten


def a_rewrite_is_a_fixed_point(done: Rewriting) -> None:
    assert done.again.patch == (), shown(done.again)
    assert not [result for result in done.again.results if result.outcome == "rewritten"]


def a_rewritten_request_passes(done: Rewriting) -> None:
    if done.decision.patch:
        assert done.decision.allowed, shown(done.decision)
        assert done.final.allowed, done.final.message


def nothing_is_left_to_rewrite(done: Rewriting) -> None:
    if done.decision.patch:
        left = [result for result in done.final.results if result.mode is Mode.ENFORCE and rewrites(result)]
        assert not left, left


def nothing_is_refused_for_want_of_a_rewrite(done: Rewriting) -> None:
    """The mutating call was made: whatever the validating one still refuses, it refuses for another reason."""
    if not done.final.allowed:
        assert not all(UNDONE in line for line in done.final.message.split("\n")), done.final.message


def a_refused_request_is_not_rewritten(done: Rewriting) -> None:
    denied = [result for result in done.unrewritten.results if enforces(result, Action.DENY)]
    if denied:
        assert done.decision.patch == (), shown(done.decision)
        assert not done.final.allowed


def what_is_to_be_rewritten_is(done: Rewriting) -> None:
    """Or the request is refused."""
    wanted = [result for result in done.unrewritten.results if result.mode is Mode.ENFORCE and rewrites(result)]
    if wanted and done.decision.allowed and done.final.allowed and not done.is_scale:
        assert done.decision.patch, shown(done.unrewritten)


def a_no_op_is_left_alone(done: Rewriting) -> None:
    if done.change.no_op:
        for decision in (done.decision, done.final, done.unrewritten):
            assert decision == Decision(manager=decision.manager), shown(decision)


def bystanders_keep_their_claims(done: Rewriting) -> None:
    """Named by no result, and not the requester's: the entry stays as it came, but for items and values that moved whole."""
    if done.result == done.old:
        return
    involved = {name for result in done.rewritten for item in result.ownership for name in (*item.before, *item.after)}
    involved.add(str(done.change.requester.identity))
    whole = {item for path in done.paths for item in item_prefixes(path) if _came_or_went(done, item)}
    parts = {tuple(path[:length]) for path in done.paths for length in range(1, len(path))}
    old, came, result = claims(done.old), claims(done.came), claims(done.result)
    for identity in {*came, *result}:
        if str(identity) not in involved:
            had, has = came.fields_of(identity), result.fields_of(identity)
            moved = [path for path in (had | has) - (had & has) if tuple(path) not in parts]
            moved = [path for path in moved if not any(path[: len(above)] == above for above in done.paths)]
            moved = [path for path in moved if not whole.intersection(item_prefixes(path))]
            assert not moved, (identity, moved)
            if had == has:
                known = [each[identity].entry for each in (came, old) if identity in each]  # a forged time goes, too
                assert result[identity].entry in known, identity


def _came_or_went(done: Rewriting, item: Path) -> bool:
    return (value_at(done.came, item) is ABSENT) != (value_at(done.result, item) is ABSENT)


def whole_values(done: Rewriting, path: Path) -> list[Path]:
    """What stands above a path and is one value to the server: its parts are nobody's."""
    kind = done.kind
    return [tuple(path[:n]) for n in range(2, len(path)) if names_of(tuple(path[:n])) in kind.atomic_maps]


def item_prefixes(path: Path) -> list[Path]:
    return [tuple(path[: at + 1]) for at, step in enumerate(path) if step[:2] in ("k:", "v:")]


def only_named_values_change(done: Rewriting) -> None:
    """At and below what a Restore or a Prune names; above it what comes and goes whole with it, or is one value."""
    named = [
        tuple(FieldPath.parse(path))
        for result in done.rewritten
        if result.action in (Action.RESTORE, Action.PRUNE) and result.kind != "tamper"
        for path in result.paths
    ]
    for where in differences(without_claims(done.came), without_claims(done.result)):
        one_value = whole_values(done, where)
        assert any(meet(above, path) for path in named for above in (where, *one_value)), (where, named)


def claims_can_be_kept(done: Rewriting) -> None:
    """No identity twice, no name over 128 bytes, in the server's order."""
    entries = done.result["metadata"].get("managedFields") or []
    assert len(claims(done.result)) == len(entries)
    assert all(len(entry["manager"].encode()) <= 128 for entry in entries)
    assert entries == sorted(entries, key=order)
    assert all(entry["fieldsV1"] for entry in entries)


def restored_values_are_the_old_ones(done: Rewriting) -> None:
    for result in done.rewritten:
        if result.kind == "change" and result.action is Action.RESTORE:
            for path in map(FieldPath.parse, result.paths):
                was, now = value_at(done.old, path), value_at(done.result, path)
                assert plain(was) == plain(now), path


def restored_claims_are_the_old_ones(done: Rewriting) -> None:
    if done.actions == {"Restore"}:
        for path in done.paths:
            assert holders(done.result, path) == holders(done.old, path), path


def what_is_wholly_restored_is_the_old_object(done: Rewriting) -> None:
    moved = done.change.written | done.change.removed | done.change.reordered
    for item in done.change.changes.values():
        if not done.change.explained.get(item.identity):
            moved = moved | item.gained | item.lost
    named = [tuple(path) for path in done.paths]
    if done.change.tampering:
        return  # edited claims are another rule's
    if done.actions == {"Restore"} and all(any(path[: len(above)] == above for above in named) for path in moved):
        assert done.result == done.old


def pruned_values_are_gone(done: Rewriting) -> None:
    for result in done.rewritten:
        if result.action is Action.PRUNE:
            for path in map(FieldPath.parse, result.paths):
                assert value_at(done.result, path) is ABSENT, path
                assert not holders(done.result, path), path


def a_claim_keeps_its_value(done: Rewriting) -> None:
    """A rewrite takes no value from under a claim that it leaves, where there was one before."""
    for identity, claim in claims(done.result).items():
        gone = [p for p in claim.fields if value_at(done.result, p) is ABSENT and value_at(done.came, p) is not ABSENT]
        had = done.change.old_claims.fields_of(identity)
        gone = [p for p in gone if value_at(done.old, p) is not ABSENT or p not in had]
        assert not gone, (identity, gone)


def only_what_the_owner_dropped_is_pruned(done: Rewriting) -> None:
    """Every value that goes was the requester's, or stands in a list item that was."""
    if done.actions != {"Prune"} or done.change.requester.identity is None:
        return
    mine = done.change.old_claims.fields_of(done.change.requester.identity)
    gone = compare(done.came, done.result, (claims(done.came), done.change.old_claims)).removed
    for path in gone.leaves():
        assert any(above in mine for above in (path, *item_prefixes(path), *whole_values(done, path))), path


def a_pruned_value_may_be_defaulted_anew(done: Rewriting) -> None:
    """Nobody claims it then, and the request passes: the server defaults after each patch."""
    for result in done.rewritten:
        if result.action is Action.PRUNE:
            for path in map(FieldPath.parse, result.paths):
                above = value_at(done.result, path[:-1])
                if path[0] != "f:metadata" and path[-1][:2] == "f:" and isinstance(above, dict):
                    review = with_object(done.review, with_value(done.result, path, value_at(done.came, path)))
                    assert answer(done.policies, review, "mutate").patch == (), path
                    assert answer(done.policies, review, "validate").allowed, path


def released_paths_are_the_owners_alone(done: Rewriting) -> None:
    if done.actions == {"Release"}:
        for result in done.rewritten:
            for item in result.ownership:
                assert len(item.after) < len(item.before), item


def reassigned_paths_are_the_owners(done: Rewriting) -> None:
    if done.actions == {"Reassign"}:
        for path in done.paths:
            assert plain(value_at(done.result, path)) == plain(value_at(done.came, path)), path
            assert holders(done.result, path) <= holders(done.old, path), path
            assert holders(done.result, path), path


def renamed_claims_keep_their_paths(done: Rewriting) -> None:
    if done.actions == {"Rename"}:
        came, result = claims(done.came), claims(done.result)
        assert every_path(came) == every_path(result)
        assert without_claims(done.came) == without_claims(done.result)
        for told in done.rewritten:
            assert told.owner not in {str(identity) for identity in result}, told.owner


def restored_claims_of_tampering_are_all_the_old_ones(done: Rewriting) -> None:
    if "Restore claims" in done.actions:
        assert done.actions == {"Restore claims"}
        assert done.result == {**done.came, "metadata": done.result["metadata"]}
        assert done.result["metadata"].get("managedFields") == done.old["metadata"].get("managedFields")


def another_webhook_may_add_something(done: Rewriting) -> None:
    """Between the two calls, or before the mutating one is made again: the request still passes."""
    injected = copy.deepcopy(done.result)
    (injected.get("spec") or injected.setdefault("data", {}))["injected"] = "by another webhook"
    review = with_object(done.review, injected)
    if done.decision.patch and not done.is_scale:
        again = answer(done.policies, review, "mutate")
        final = answer(done.policies, with_object(review, patched(injected, again)), "validate")
        assert again.allowed, shown(again)
        assert final.allowed, final.message


def told_ownership_is_true(done: Rewriting) -> None:
    for result in done.rewritten:
        for item in result.ownership:
            if item.path:
                path = FieldPath.parse(item.path)
                for told, obj in ((set(item.before), done.came), (set(item.after), done.result)):
                    assert holders(obj, path) <= told <= holders(obj, path) | holders_of_the_whole(obj, path), item


def the_client_is_told(done: Rewriting) -> None:
    if done.decision.patch:
        assert done.decision.warnings


def milder_modes_never_rewrite(done: Rewriting) -> None:
    for cap in (Mode.AUDIT, Mode.WARN):
        phases: tuple[Phase, ...] = ("mutate", "validate")
        for phase in phases:
            decision = answer(done.policies, done.review, phase, cap)
            assert decision.allowed
            assert decision.patch == ()
            assert all(result.outcome == "recorded" for result in decision.results)
            assert cap is Mode.WARN or not decision.warnings


def a_dry_run_gets_the_same_answer(done: Rewriting) -> None:
    request = {**done.review["request"], "dryRun": True}
    request["options"] = {**request["options"], "dryRun": ["All"]}
    assert answer(done.policies, {**done.review, "request": request}, "mutate").patch == done.decision.patch


LAWS: tuple[Callable[[Rewriting], None], ...] = (
    the_patch_sent_is_the_patch_decided,
    a_patch_changes_something,
    a_rewrite_is_a_fixed_point,
    a_rewritten_request_passes,
    nothing_is_left_to_rewrite,
    nothing_is_refused_for_want_of_a_rewrite,
    a_refused_request_is_not_rewritten,
    what_is_to_be_rewritten_is,
    a_no_op_is_left_alone,
    bystanders_keep_their_claims,
    only_named_values_change,
    claims_can_be_kept,
    restored_values_are_the_old_ones,
    restored_claims_are_the_old_ones,
    what_is_wholly_restored_is_the_old_object,
    pruned_values_are_gone,
    a_claim_keeps_its_value,
    only_what_the_owner_dropped_is_pruned,
    a_pruned_value_may_be_defaulted_anew,
    released_paths_are_the_owners_alone,
    reassigned_paths_are_the_owners,
    renamed_claims_keep_their_paths,
    restored_claims_of_tampering_are_all_the_old_ones,
    another_webhook_may_add_something,
    told_ownership_is_true,
    the_client_is_told,
    milder_modes_never_rewrite,
    a_dry_run_gets_the_same_answer,
)


def broken(case: Case, policies: PolicySet) -> dict[str, str]:
    """The laws that a case breaks, and how. One that cannot be answered at all breaks a law without a name."""
    try:
        done = rewriting(policies, case.review)
    except Exception as error:  # whatever it is: no review may meet any
        return {"every review is answered": repr(error)}
    found = {}
    for law in LAWS:
        try:
            law(done)
        except Exception as error:
            found[law.__name__] = f"{type(error).__name__}: {error}"
    return found
