"""A claim answers from fieldsV1 as it came just as the set that is read from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.strategies import COMMON_PATHS, PATHS, SETS, spellings, spelt_sets
from webhook.fields import Claim, FieldPath, FieldsError, FieldSet, Identity, ManagedFields, trie

Spelt = tuple[FieldSet, dict[str, Any]]


def claim(tree: Any, manager: str = "m", **more: Any) -> Claim:
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": tree}
    (made,) = ManagedFields.parse([{**entry, **more}]).claims()
    return made


@given(spelt_sets(), st.lists(PATHS | COMMON_PATHS, max_size=3))
def test_a_claim_holds_what_its_set_contains(case: Spelt, others: list[FieldPath]) -> None:
    meant, tree = case
    above = [FieldPath(path[:length]) for path in meant for length in range(len(path))]
    for path in (*meant, *above, *others):
        raw = claim(tree)
        assert raw.holds(path) == (path in meant)
        assert raw.holds_leaf(path) == meant.is_leaf(path)
        assert raw.reaches(path) == meant.has_prefix(path)
    assert raw_and_read_agree(claim(tree), [*meant, *above, *others])


def raw_and_read_agree(raw: Claim, paths: list[FieldPath]) -> bool:
    before = [(raw.holds(path), raw.holds_leaf(path), raw.reaches(path)) for path in paths]
    assert raw.fields is raw.fields
    return before == [(raw.holds(path), raw.holds_leaf(path), raw.reaches(path)) for path in paths]


@given(spelt_sets(), SETS)
def test_a_claim_holds_of_some_paths_those_that_its_set_has(case: Spelt, some: FieldSet) -> None:
    meant, tree = case
    assert claim(tree).held_of(some) == meant & some
    assert claim(tree).held_of(some | meant) == meant


@given(st.data(), spelt_sets(), SETS, st.booleans())
def test_two_claims_share_values_and_not_what_every_second_applier_must_share(
    data: st.DataObject, one: Spelt, more: FieldSet, every: bool
) -> None:
    mine, my_tree = one
    theirs = more | mine if data.draw(st.booleans()) else more
    their_tree = data.draw(spellings(theirs))
    asked = mine if every else more
    leaf = [path for path in asked & mine & theirs if mine.is_leaf(path) or theirs.is_leaf(path)]
    wanted = [path for path in leaf if not is_key_or_item(path)]
    found = claim(my_tree).values_with(claim(their_tree), asked)
    assert list(found) == wanted
    assert claim(their_tree).values_with(claim(my_tree), asked) == found


def is_key_or_item(path: FieldPath) -> bool:
    around = path[-2] if len(path) > 1 else ""
    known_by = json.loads(around[2:]) if around[:2] == "k:" else {}
    return path[-1][:2] == "k:" or (path[-1][:2] == "f:" and path[-1][2:] in known_by)


@given(spelt_sets(), SETS)
def test_what_a_leaf_covers_does_not_depend_on_the_spelling(case: Spelt, some: FieldSet) -> None:
    meant, tree = case
    _, covered = trie.held((some | meant).root, tree)
    leaves = set(meant.leaves())
    below = {path for path in some - meant if any(path[:length] in leaves for length in range(1, len(path)))}
    assert set(FieldSet.of(covered)) == below


@given(st.data(), SETS, SETS)
def test_what_moved_is_both_differences_in_any_spelling(data: st.DataObject, old: FieldSet, new: FieldSet) -> None:
    was, now = data.draw(spellings(old)), data.draw(spellings(new))
    gained, lost = claim(now).moved_from(claim(was))
    assert (gained, lost) == (new - old, old - new)
    assert bool(gained) == bool(list(gained)) and bool(lost) == bool(list(lost))


@given(SETS, SETS)
@example(FieldSet(), FieldSet.from_fields_v1({"f:a": {}}))
def test_what_moved_is_both_differences(old: FieldSet, new: FieldSet) -> None:
    assert trie.exchanged(old.root, new.root) == ((new - old).root, (old - new).root)
    assert trie.exchanged(old.to_fields_v1(), new.to_fields_v1()) == ((new - old).root, (old - new).root)


def test_a_dot_at_the_root_is_nothing_gained_and_nothing_lost() -> None:
    gained, lost = claim({".": {}, "f:a": {}}).moved_from(claim({"f:a": {}}))
    assert not gained and not lost
    gained, lost = claim({}).moved_from(claim({".": {}}))
    assert not gained and not lost


def test_nobody_holds_the_entire_object() -> None:
    for made in (claim({}), claim({".": {}}), claim(None)):
        assert not made.holds(()) and not made.holds_leaf(()) and not made.reaches(())


JUNK: list[Any] = [1, "x", [], [1], None, True, 0, ""]


@pytest.mark.parametrize("junk", JUNK, ids=repr)
@pytest.mark.parametrize("below", [("f:b",), ("f:b", "f:c"), ("f:b", 'k:{"a":1}', "f:c")])
def test_where_no_object_stands_every_question_is_refused(junk: Any, below: tuple[str, ...]) -> None:
    tree = {"f:a": {"f:b": junk}}
    path = ("f:a", *below)
    some = FieldSet.from_paths([path])
    for ask in (
        lambda: claim(tree).holds(path),
        lambda: claim(tree).holds_leaf(path),
        lambda: claim(tree).reaches(path),
        lambda: claim(tree).held_of(some),
        lambda: claim(tree).values_with(claim(some.to_fields_v1()), some),
        lambda: claim(some.to_fields_v1()).values_with(claim(tree), some),
        lambda: claim(tree).fields,
        lambda: claim(tree).moved_from(claim({})),
        lambda: claim({}).moved_from(claim(tree)),
        lambda: claim(tree).moved_from(claim({"f:a": {"f:b": {}}})),
        lambda: claim({"f:a": {"f:b": {}}}).moved_from(claim(tree)),
        lambda: claim(tree).moved_from(claim({"f:a": {"f:b": {"f:c": {}}}})),
        lambda: claim({"f:a": {"f:b": {"f:c": {}}}}).moved_from(claim(tree)),
    ):
        with pytest.raises(FieldsError, match="where fieldsV1 has an object"):
            ask()


def test_an_unreadable_claim_says_whose_it_is() -> None:
    with pytest.raises(FieldsError, match=r"^the claim of m \(Update\): unknown kind of step"):
        _ = claim({"x:": {}}).fields
    with pytest.raises(FieldsError, match=r"^the claim of m \(Update\): unknown kind of step"):
        claim({"x:": {}}).moved_from(claim({}))


def test_a_long_list_of_items_in_other_spellings_is_looked_through_once() -> None:
    mine = FieldSet.from_paths([("f:a", f'k:{{"n":{number}}}') for number in range(3000)])
    tree = {"f:a": {f'k:{{"n": {number}}}': {} for number in range(3000)}}
    assert claim(tree).held_of(mine) == mine
    assert not claim({"f:a": {f'k:{{"n": {number}}}': {} for number in range(3000, 6000)}}).held_of(mine)
    fields = FieldSet.from_paths([(*path, "f:b") for path in mine])
    other = {"f:a": {f'k:{{"n": {number}}}': {"f:b": {}} for number in range(3000)}}
    assert claim(other).values_with(claim(other), fields) == fields


# Identity


def test_an_identity_has_a_version_for_updates_only() -> None:
    assert claim({}).identity == Identity("m", "Update", "", "v1")
    assert claim({}, operation="Apply").identity == Identity("m", "Apply", "", "")
    assert str(claim({}, subresource="scale").identity) == "m (Update, scale)"


def test_of_two_entries_with_one_identity_the_last_counts() -> None:
    entries = [
        {"manager": "m", "operation": "Apply", "apiVersion": version, "fieldsV1": {f"f:{version}": {}}}
        for version in ("v1", "v2")
    ]
    managed = ManagedFields.parse(entries)
    assert len(managed) == 1
    assert [str(path) for path in managed.fields_of(Identity("m", "Apply"))] == [".v2"]
    assert managed.fields_of(Identity("n", "Apply")) == FieldSet()


def test_a_claim_that_did_not_change_is_taken_over_with_what_was_read() -> None:
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:a": {}}}
    old = ManagedFields.parse([entry])
    assert ManagedFields.parse([dict(entry)], like=old).claims()[0] is old.claims()[0]
    assert ManagedFields.parse([{**entry, "time": "t"}], like=old).claims()[0] is not old.claims()[0]


def test_the_holders_of_a_path_are_those_whose_claims_hold_it() -> None:
    managed = ManagedFields.parse(
        [
            {"manager": name, "operation": "Apply", "apiVersion": "v1", "fieldsV1": tree}
            for name, tree in (("a", {"f:x": {}}), ("b", {"f:x": {"f:y": {}}}), ("c", {"f:x": {".": {}, "f:y": {}}}))
        ]
    )
    assert [identity.manager for identity in managed.holders(("f:x",))] == ["a", "c"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "managedFields is a list, not dict"),
        ([1], "managedFields[0] is an object, not int"),
        ([{"operation": "Patch", "apiVersion": "v1"}], "managedFields[0].operation is Apply or Update"),
        ([{"operation": ["Apply"], "apiVersion": "v1"}], "managedFields[0].operation is Apply or Update"),
        (
            [{"operation": "Apply", "manager": 1, "apiVersion": "v1"}],
            "managedFields[0]: manager and subresource are texts",
        ),
        ([{"operation": "Apply"}], "managedFields[0].apiVersion is a text such as apps/v1"),
        ([{"operation": "Apply", "apiVersion": ""}], "managedFields[0].apiVersion is a text such as apps/v1"),
        ([{"operation": "Apply", "apiVersion": "v1", "fieldsV1": []}], "managedFields[0].fieldsV1 is an object"),
    ],
)
def test_a_list_that_cannot_be_read_is_reported_with_its_place(entries: Any, message: str) -> None:
    with pytest.raises(FieldsError) as raised:
        ManagedFields.parse(entries)
    assert str(raised.value) == message


def test_what_stands_below_a_dot_means_nothing() -> None:
    was, now = {"f:b": {".": {"f:junk": {}}, "f:a": {}}}, {"f:b": {".": {"f:other": {}}, "f:a": {}, "f:c": {}}}
    gained, lost = claim(now).moved_from(claim(was))
    assert ([str(path) for path in gained], list(lost)) == ([".b.c"], [])
