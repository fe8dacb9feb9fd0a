"""What a review cannot show: a closed list. Whatever else differs from the truth is a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.histories.judge import Finding, Truth
from tests.histories.truth import NOTHING, Held, Path, covers
from tests.histories.world import Seen
from webhook.fields import ABSENT, Change, Identity, value_at
from webhook.fields.values import same


def _same_name(finding: Finding) -> bool:
    """The right manager, said to have applied where it updated, or the reverse."""
    true, said = finding.true, finding.said
    return (
        finding.about == "requester"
        and isinstance(true, Identity)
        and isinstance(said, Identity)
        and (true.manager, true.subresource) == (said.manager, said.subresource)
        and true.operation != said.operation
    )


def apply_of_nothing(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    me = seen.write.identity
    return seen.write.operation == "Apply" and _same_name(finding) and me not in truth.new and me not in truth.old


def scale_without_claims(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    return seen.write.subresource == "scale" and _same_name(finding) and not (truth.old or truth.new)


def update_under_an_appliers_name(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    if seen.write.operation != "Update" or not _same_name(finding):
        return False
    mine = truth.new.get(seen.write.identity, Held("", NOTHING)).paths
    return not (mine & truth.values.written) and finding.said in {**truth.old, **truth.new}


def applied_and_put_back(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only applies that take from another claim a path whose value is what it was."""
    mine = truth.new.get(seen.write.identity, Held("", NOTHING)).paths
    if seen.write.operation != "Apply" or finding.about not in (
        "innocent blamed",
        "requester",
        "elsewhere",
        "takeover",
    ):
        return False
    old, new = change.request.old or {}, change.request.new
    return any(
        same(value_at(old, path), value_at(new, path))
        for name, held in truth.old.items()
        if held.version == truth.version and name != seen.write.identity
        for path in (held.paths - truth.new.get(name, Held("", NOTHING)).paths) & mine
    )


def apply_forged_under_its_own_name(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only the Apply claim of the name that the write gave, and only where the review is taken for that apply."""
    applier = Identity(seen.write.manager, "Apply", seen.write.subresource)
    return (
        finding.about in ("tampering missed", "tampering")
        and seen.write.named
        and finding.identity == applier == change.requester.identity
    )


def update_thins_its_apply_claim(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only a forged update, taken for an apply of its own name, whose Update claim holds what was written already."""
    mine = seen.write.identity
    written = truth.values.written & truth.new.get(mine, Held("", NOTHING)).paths
    again = bool(written) and written <= truth.old.get(mine, Held("", NOTHING)).paths
    return seen.write.operation == "Update" and seen.honest is not None and again and _same_name(finding)


def claim_in_another_version(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Losses of claims of another version than the objects shown, and gains of the one that is taken for the writer's."""
    name = finding.identity
    if finding.about == "requester" and finding.true is None:
        return finding.said in truth.new and truth.new[finding.said].version != truth.version
    if name is None or finding.about not in ("tampering missed", "tampering"):
        return False
    held = truth.new.get(name) or truth.old.get(name)
    if held is None or held.version == truth.version:
        return False
    gained = finding.true[0] - (finding.said[0] if finding.said else NOTHING)
    if finding.said and name in truth.old and truth.old[name].version != held.version:
        return True  # blamed for the version itself
    return not gained or name in (seen.write.identity, change.requester.identity)


def like_a_schema_change(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only where the claim holds a container now, outside `.metadata`, that stands for what it lost below, or the reverse."""
    if finding.identity is None or finding.about not in ("tampering missed", "tampering"):
        return False
    if not {"schema", "version"} & {*change.explained.get(finding.identity, ())}:
        return False
    said = finding.said or (NOTHING, NOTHING)
    gained, lost = finding.true[0] - said[0], finding.true[1] - said[1]
    return all(
        path[0] != "f:metadata"
        and any(
            path != other and (path[: len(other)] == other or other[: len(path)] == path) for other in gained | lost
        )
        for path in gained | lost
    )


def own_claim_on_nothing(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only gains of the requester's own claim, and only of paths that neither object has; or, created, of what has parts."""
    if finding.identity != seen.write.identity or finding.about not in ("tampering missed", "tampering"):
        return False
    gained, lost = finding.true
    missed = gained - (finding.said[0] if finding.said else NOTHING)
    agreed = lost == (finding.said[1] if finding.said else NOTHING)
    old, new = change.request.old or {}, change.request.new
    return agreed and all(
        value_at(old, path) is ABSENT
        and (value_at(new, path) is ABSENT or (not old and isinstance(value_at(new, path), dict | list)))
        for path in missed
    )


def lost_with_its_value(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only losses of a value that went, which the server itself let go after it had reckoned the claims."""
    if finding.about not in ("tampering missed", "tampering"):
        return False
    gained, lost = finding.said or (NOTHING, NOTHING)
    return finding.true[0] == gained and finding.true[1] - lost <= truth.values.removed


def given_up_by_the_server(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only a custom resource's, only with a value written, and only where all claims went and one was in another version."""
    custom = "." in change.request.resource.group
    others = any(held.version != truth.version for held in truth.old.values())
    return (
        finding.about in ("tampering missed", "tampering")
        and custom
        and not change.new_claims
        and others
        and bool(truth.values.written)
    )


def put_back_by_the_server(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only a Service's addresses and ports, and only where a claim lost, or the requester's gained, nothing else."""
    if finding.about != "tampering missed" or change.request.resource.resource != "services":
        return False
    texts = {str(path) for path in finding.true[0] | finding.true[1]}
    return all(text.removeprefix(".spec.") in ALLOCATED or text.endswith(".nodePort") for text in texts)


ALLOCATED = {"clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"}


def cleared_with_what_was_written(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only of a claim that is blamed for the rest of its loss, and gone whole; only at and above what was written."""
    if finding.about != "tampering" or finding.identity in truth.new or finding.true[0] != finding.said[0]:
        return False
    return all(covers(truth.values.written, path) for path in finding.true[1] - finding.said[1])


def like_a_migration(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only claims that the Change explains as migrated, with no value changed."""
    why = change.explained.get(finding.identity, ()) if finding.identity else ()
    return finding.about == "tampering missed" and "migration" in why and not any(truth.values)


def like_a_first_apply(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only on an object without claims, by an update under a name that says it applied."""
    if truth.old or not seen.write.named or seen.write.operation != "Update":
        return False
    if finding.about == "requester":
        return _same_name(finding)
    return (
        finding.about == "tampering missed"
        and finding.identity is not None
        and finding.identity.manager == "before-first-apply"
    )


def empty_map_filled(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only below what was an empty map, and held by the requester before and after."""
    if finding.about != "elsewhere" or truth.requester is None:
        return False
    mine = (
        truth.new.get(truth.requester, Held("", NOTHING)).paths
        & truth.old.get(truth.requester, Held("", NOTHING)).paths
    )
    return all(
        any(
            path[:length] in mine and value_at(change.request.old, path[:length]) == {}
            for length in range(1, len(path))
        )
        for path in finding.true ^ finding.said
    )


def list_without_claimed_items(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only where a list with keys, that no claim shows the items of, was written and is claimed as a list."""
    if finding.about not in ("requester", "elsewhere", "takeover", "removed", "written"):
        return False
    return any(
        names in seen.kind.keyed or names in seen.kind.sets
        for path in truth.values.written
        if path[-1][:2] == "f:" and isinstance(value_at(change.request.new, path), list)
        for names in [tuple(step[2:] for step in path if step[:2] == "f:")]
    )


def impossible_claims(seen: Seen, truth: Truth, change: Change, finding: Finding) -> bool:
    """Only who wrote what: never tampering."""
    if finding.about not in ("elsewhere", "requester", "takeover", "written", "removed"):
        return False
    return any(_impossible(seen, path) for held in truth.old.values() for path in held.paths)


def _impossible(seen: Seen, path: Path) -> bool:
    if path in (("f:metadata",), ("f:spec",)):
        return True
    for length in range(1, len(path)):
        names = tuple(step[2:] for step in path[:length] if step[:2] == "f:")
        item = path[length][:2]
        if names in seen.kind.atomic_maps and path[length - 1][:2] == "f:":
            return True
        if (
            (item == "i:")
            or (item == "k:" and names not in seen.kind.keyed)
            or (item == "v:" and names not in seen.kind.sets)
        ):
            return True
    return False


UNDECIDED: Mapping[str, tuple[Callable[[Seen, Truth, Change, Finding], bool], str]] = {
    "apply of nothing": (
        apply_of_nothing,
        "An apply that claims nothing and claimed nothing before leaves no claim: the review is that of an update.",
    ),
    "scale without claims": (
        scale_without_claims,
        "The validating call for a scale shows no claims: an apply and an update look alike there.",
    ),
    "update under an applier's name": (
        update_under_an_appliers_name,
        "A write under the name of an applier that gave its Update claim nothing: an apply of less, or of the same in "
        "another order, leaves the same objects and claims.",
    ),
    "applied and put back": (
        applied_and_put_back,
        "An apply took a path by a value that the server then put back, by a default or from a Secret's stringData: with no "
        "value changed, the review is that of claims renamed by hand, and is blamed as such.",
    ),
    "apply forged under its own name": (
        apply_forged_under_its_own_name,
        "An update under an applier's name may leave in its Apply claim just what an apply would: the review is that of "
        "the apply.",
    ),
    "update thins its Apply claim": (
        update_thins_its_apply_claim,
        "An update that thins the Apply claim of its own name, and writes only what its Update claim held already: so it "
        "looks when an apply drops a path and the server then rewrites a value that the same manager once updated.",
    ),
    "claim in another version": (
        claim_in_another_version,
        "A claim that speaks another version than the objects shown moves in paths that cannot be compared with values: any "
        "write explains what it loses, and what it gains when it can be the writer's.",
    ),
    "like a schema change": (
        like_a_schema_change,
        "A claim exchanges what it holds in a map or list for the whole, or the reverse, and no other claim speaks against "
        "it: so it does when the schema made the list or map atomic, or granular.",
    ),
    "own claim on nothing": (
        own_claim_on_nothing,
        "The requester's claim gains a path that neither object has: so it does too when a webhook, or the server, drops "
        "what was written. Or, in a creation, a map or list with parts: the creator claims those as well.",
    ),
    "lost with its value": (
        lost_with_its_value,
        "A claim is thinned of a path whose value the server lets go in the same write, after it has reckoned the claims "
        "(a Service's externalTrafficPolicy): the value that went explains the loss.",
    ),
    "given up by the server": (
        given_up_by_the_server,
        "Where a claim's version does not know what is written, the server drops all claims of a custom resource: so it "
        "looks when a write clears them by hand.",
    ),
    "put back by the server": (
        put_back_by_the_server,
        "A claim on a Service's allocated address or port goes when a write leaves the value out, and the server puts the "
        "value back: a claim thinned of just that by hand looks the same.",
    ),
    "cleared with what was written": (
        cleared_with_what_was_written,
        "A claim is cleared whole in a write of a path that it holds: the write explains that path, and the map around it. "
        "The rest of the loss is blamed.",
    ),
    "like a migration": (
        like_a_migration,
        "A client-side applier's whole claims, moved by hand into the Apply claim of the writer's name: no more and no less "
        "than kubectl's own migration.",
    ),
    "like a first apply": (
        like_a_first_apply,
        "On an object without claims, before-first-apply put there by hand, on values that exist: as the first apply does.",
    ),
    "empty map filled": (
        empty_map_filled,
        "What appears in an empty map that the requester claimed already is its own where the map is atomic, and another's "
        "where it is not: no claim moves in either.",
    ),
    "list without claimed items": (
        list_without_claimed_items,
        "A list that is claimed while none of its items is looks atomic: a change of an unclaimed item looks like the "
        "claimant's new list.",
    ),
    "impossible claims stand": (
        impossible_claims,
        "An earlier forgery left claims on parts of an atomic value, or on a whole struct. Only the schema tells them from "
        "true ones, and no review shows it.",
    ),
}


def kind_of(seen: Seen, truth: Truth, change: Change, finding: Finding) -> str | None:
    """The kind that a finding is of, or None: a fault."""
    for name, (matches, _) in UNDECIDED.items():
        if matches(seen, truth, change, finding):
            return name
    if finding.about in ("elsewhere", "takeover") and change.requester.identity != truth.requester:
        # Whose the written values are follows from the requester: undecided with it.
        return kind_of(seen, truth, change, Finding("requester", truth.requester, change.requester.identity))
    return None
