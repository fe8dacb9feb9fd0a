"""What differs between two objects, and the values at paths."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.strategies import ATOMIC, CLAIMED, JSON, MEMBERS, OBJECTS
from webhook.fields import ABSENT, Comparison, FieldPath, ManagedFields, compare, value_at
from webhook.fields.steps import key_step, value_step
from webhook.fields.values import same

Object = dict[str, Any]


def claims(tree: Object | None = None) -> ManagedFields:
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": CLAIMED if tree is None else tree}
    return ManagedFields.parse([entry])


def difference(old: Object, new: Object) -> Comparison:
    return compare(old, new, [claims()])


def texts(paths: Any) -> list[str]:
    return [str(path) for path in paths]


def custom(obj: Object) -> Object:
    """As a custom resource, in which true is always told from 1."""
    return {**obj, "apiVersion": "example.com/v1"}


@given(OBJECTS)
def test_an_object_does_not_differ_from_itself(a: Object) -> None:
    assert not difference(a, a)
    assert not difference(a, copy.deepcopy(a))


@given(OBJECTS, OBJECTS)
def test_what_was_written_is_in_the_new_object(old: Object, new: Object) -> None:
    for path in difference(old, new).written:
        assert value_at(new, path) is not ABSENT


@given(OBJECTS, OBJECTS)
def test_what_was_removed_was_in_the_old_object_and_is_not_in_the_new_one(old: Object, new: Object) -> None:
    for path in difference(old, new).removed:
        assert value_at(old, path) is not ABSENT
        assert value_at(new, path) is ABSENT


@given(OBJECTS, OBJECTS)
def test_what_was_reordered_is_a_list_in_both(old: Object, new: Object) -> None:
    for path in difference(old, new).reordered:
        assert isinstance(value_at(old, path), list) and isinstance(value_at(new, path), list)


@given(OBJECTS, OBJECTS)
def test_only_what_was_written_has_another_value(old: Object, new: Object) -> None:
    found = difference(custom(old), custom(new))
    for path in found.written:
        before = value_at(old, path)
        assert before is ABSENT or not same(before, value_at(new, path))


@given(OBJECTS, OBJECTS)
def test_objects_that_differ_in_what_counts_are_found_to_differ(old: Object, new: Object) -> None:
    one, other = custom(old), custom(new)
    rearranged = value_at(old, ("f:spec", "f:members")), value_at(new, ("f:spec", "f:members"))
    if all(isinstance(members, list) for members in rearranged):  # a set has no order
        one, other = copy.deepcopy(one), copy.deepcopy(other)
        one["spec"]["members"] = other["spec"]["members"] = []
    assert bool(difference(one, other)) == (not same(one, other))


@given(OBJECTS, OBJECTS)
def test_swapping_the_objects_swaps_what_came_and_what_went(old: Object, new: Object) -> None:
    old["apiVersion"] = new["apiVersion"] = "example.com/v1"  # a review shows both in one version
    there, back = difference(old, new), difference(new, old)
    came = {path for path in there.written if value_at(old, path) is ABSENT}
    assert {path for path in there.removed if not replaced(new, path)} <= set(back.written)
    assert {path for path in came if not replaced(old, path)} == {
        path for path in back.removed if not replaced(old, path)
    }
    assert there.reordered == back.reordered


def replaced(other: Object, path: FieldPath) -> bool:
    """Whether something of another kind stands in the other object where the path would begin to differ."""
    depth = next(length for length in range(1, len(path) + 1) if value_at(other, path[:length]) is ABSENT)
    value = value_at(other, path[: depth - 1])
    return not (isinstance(value, dict if path[depth - 1][:2] == "f:" else list) and bool(value))


@given(OBJECTS, OBJECTS)
def test_a_comparison_changes_neither_object(old: Object, new: Object) -> None:
    before = copy.deepcopy((old, new))
    difference(old, new)
    assert (old, new) == before


@given(MEMBERS, MEMBERS)
def test_sets_are_compared_by_member(old: list[Any], new: list[Any]) -> None:
    found = difference({"spec": {"members": old}}, {"spec": {"members": new}})
    mine, theirs = ({value_step(member) for member in members} for members in (old, new))
    if old and new:
        assert {path[2] for path in found.removed} == mine - theirs
        assert theirs - mine <= {path[2] for path in found.written}
    assert not found.reordered


@given(ATOMIC, ATOMIC)
def test_an_atomic_list_is_one_value(old: list[Any], new: list[Any]) -> None:
    found = compare(*(custom({"spec": {"atomic": value}}) for value in (old, new)), [claims()])
    assert texts(found.written) == ([] if same(old, new) else [".spec.atomic"])
    assert not found.removed and not found.reordered


ITEM = {"name": "x", "port": 1}
OTHER = {"name": "y", "port": 1}


def listed(old: Any, new: Any) -> tuple[list[str], list[str], list[str]]:
    found = difference({"spec": {"items": old}}, {"spec": {"items": new}})
    return texts(found.written), texts(found.removed), texts(found.reordered)


X, Y = '.spec.items[name="x",port=1]', '.spec.items[name="y",port=1]'


def test_an_item_that_comes_or_goes_does_so_with_its_fields() -> None:
    assert listed([ITEM], [ITEM, OTHER]) == ([Y, Y + ".name", Y + ".port"], [], [])
    assert listed([ITEM, OTHER], [ITEM]) == ([], [Y, Y + ".name", Y + ".port"], [])


def test_an_item_that_changes_is_compared_field_by_field() -> None:
    assert listed([{**ITEM, "a": 1, "b": 1}], [{**ITEM, "a": 2, "c": 1}]) == ([X + ".a", X + ".c"], [X + ".b"], [])
    assert listed([OTHER, {**ITEM, "a": 1}], [{**ITEM, "a": 2}, OTHER]) == ([X + ".a"], [], [".spec.items"])


def test_common_items_in_another_order_are_reordered_and_nothing_else() -> None:
    assert listed([ITEM, OTHER], [OTHER, ITEM]) == ([], [], [".spec.items"])
    third = {"name": "z", "port": 1}
    assert listed([ITEM, OTHER], [third, ITEM, OTHER])[2] == []


def test_items_with_one_key_are_one_leaf() -> None:
    assert listed([ITEM], [ITEM, {**ITEM, "a": 1}]) == ([X], [], [])
    assert listed([ITEM, ITEM], [ITEM, ITEM]) == ([], [], [])
    assert listed([ITEM, {**ITEM, "a": 1}], [{**ITEM, "a": 1}, ITEM]) == ([X], [], [])


def test_an_item_may_lack_a_key_but_not_all() -> None:
    assert listed([{"name": "x"}], [{"name": "x", "a": 1}]) == (['.spec.items[name="x"].a'], [], [])
    assert listed([{"a": 1}], [{"a": 2}]) == ([".spec.items"], [], [])
    assert listed([ITEM], [ITEM, {"a": 2}]) == ([".spec.items"], [], [])


def test_a_list_of_keyed_items_in_which_one_is_no_object_is_atomic() -> None:
    assert listed([ITEM], [ITEM, "x"]) == ([".spec.items"], [], [])


@pytest.mark.parametrize(
    ("old", "new", "written", "removed"),
    [
        ({"a": None}, {}, [], [".spec.a"]),
        ({}, {"a": None}, [".spec.a"], []),
        ({"a": None}, {"a": {}}, [".spec.a"], []),
        ({"a": False}, {"a": 0}, [".spec.a"], []),
        ({"a": 1}, {"a": 1.0}, [], []),
        ({"a": 1}, {"a": True}, [".spec.a"], []),
        ({"a": "1"}, {"a": 1}, [".spec.a"], []),
        ({"a": {"b": 1}}, {"a": {"b": True}}, [".spec.a.b"], []),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, [".spec.a"], []),
        ({"a": 1}, {"a": {"b": 1}}, [".spec.a.b"], []),
        ({"a": {"b": 1}}, {"a": 1}, [".spec.a"], [".spec.a.b"]),
        ({"a": {"b": 1}}, {"a": [1]}, [".spec.a"], [".spec.a.b"]),
        ({"a": [1]}, {"a": {"b": 1}}, [".spec.a.b"], []),
        ({"a": {"b": {"c": 1}}}, {}, [], [".spec.a.b.c"]),
        ({}, {"a": {"b": {"c": 1}, "d": {}}}, [".spec.a.d", ".spec.a.b.c"], []),
        ({"a": []}, {}, [], [".spec.a"]),
        ({}, {"a": []}, [".spec.a"], []),
    ],
)
def test_what_differs(old: Object, new: Object, written: list[str], removed: list[str]) -> None:
    found = difference(custom({"spec": old}), custom({"spec": new}))
    assert (texts(found.written), texts(found.removed)) == (written, removed)


def test_a_list_that_becomes_something_else_loses_its_items() -> None:
    for other in ({"a": 1}, 1, {}):
        assert X in listed([ITEM], other)[1]


def test_what_is_never_claimed_does_not_count() -> None:
    old = {"kind": "A", "apiVersion": "v1", "metadata": {"name": "a", "uid": "1", "generation": 1, "managedFields": []}}
    new = {"kind": "B", "apiVersion": "v2", "metadata": {"name": "b", "resourceVersion": "2", "selfLink": ""}}
    assert not difference(old, new)
    assert texts(difference(old, {**new, "metadata": {"labels": {"a": "b"}}}).written) == [".metadata.labels.a"]


@pytest.mark.parametrize("junk", [None, 1, "x", [], [1]], ids=repr)
def test_metadata_that_is_no_object_is_a_value_like_others(junk: Any) -> None:
    assert texts(difference({"metadata": {"labels": {"a": "b"}}}, {"metadata": junk}).written) == [".metadata"]
    assert texts(difference({"metadata": junk}, {"metadata": {"labels": {"a": "b"}}}).written) == [".metadata.labels.a"]


def test_true_is_told_from_one_in_the_items_of_a_custom_resource() -> None:
    old, new = ({"apiVersion": "example.com/v1", "spec": {"items": [{**ITEM, "a": a}]}} for a in (1, True))
    assert texts(difference(old, new).written) == [X + ".a"]


def test_the_status_counts_where_it_is_asked_for() -> None:
    old: Object = {"status": {"a": 1}}
    assert not compare(old, {}, [claims()])
    assert texts(compare(old, {}, [claims()], status=True).removed) == [".status.a"]


# Values at paths


@given(JSON)
def test_the_value_at_no_path_is_the_value(value: Any) -> None:
    assert value_at(value, ()) is value


@given(st.lists(JSON, min_size=1, max_size=3))
def test_a_member_is_found_by_its_own_step(members: list[Any]) -> None:
    for position, member in enumerate(members):
        assert value_at(members, (value_step(member),)) is not ABSENT
        assert value_at(members, (f"i:{position}",)) is member
    assert value_at(members, (f"i:{len(members)}",)) is ABSENT and value_at(members, ("i:-1",)) is ABSENT


@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=3))
@example({"id": 2**53 + 1})
@example({"id": 1e21})
def test_an_item_is_found_by_the_step_of_its_keys(item: Object) -> None:
    keys = dict(list(item.items())[:2])
    assert value_at([{"other": 1}, {**item, "more": 1}], (key_step(keys),)) == {**item, "more": 1}


def test_of_items_with_the_same_keys_all_are_the_value() -> None:
    items = [{"a": 1, "b": 1}, {"a": 1.0, "b": 2}, {"a": True}, {"a": "1"}]
    assert value_at(items, ('k:{"a":1}',)) == items[:2]
    assert value_at(items, ('k:{"a":true}',)) == items[2]
    assert value_at(items, ('k:{"c":1}',)) is ABSENT


def test_null_is_a_value() -> None:
    assert value_at({"a": None}, ("f:a",)) is None
    assert value_at({"a": None}, ("f:a", "f:b")) is ABSENT
    assert value_at([None], ("v:null",)) is None
    assert repr(ABSENT) == "ABSENT"
