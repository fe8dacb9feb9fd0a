"""JSON Patches between objects: they apply, and change nothing that somebody else holds."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from webhook.admission.patching import applied, operations

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from([1.5, "a", "b", ""]))
NAMES = st.sampled_from(["a", "b", "name", "a/b", "~", "~1"])
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=5), st.dictionaries(NAMES, below, max_size=4)),
    max_leaves=20,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_the_one_object_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = operations(before, after)
    assert plain(jsonpatch.JsonPatch(copy.deepcopy(list(patch))).apply(before)) == plain(after)
    assert plain(applied(before, patch)) == plain(after)


@given(OBJECTS, OBJECTS)
def test_applying_changes_neither_the_object_nor_the_patch(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = operations(before, after)
    told = plain([before, after, patch])
    made = applied(before, patch)
    assert plain([before, after, patch]) == told
    assert type(made) is dict
    assert all(type(value) in (dict, list, str, int, float, bool, type(None)) for value in made.values())


@given(st.lists(VALUES, max_size=6), st.data())
def test_items_that_came_or_went_leave_the_others_alone(items: list[Any], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(items)))
    more = [*items[:at], "new", *items[at:]]
    if "new" not in items:
        assert [operation["op"] for operation in operations({"x": items}, {"x": more})] == ["add"]
        assert [operation["op"] for operation in operations({"x": more}, {"x": items})] == ["remove"]


def test_what_stands_behind_an_inserted_item_is_patched_in_its_new_place() -> None:
    before = {"parts": [{"name": "a", "w": 1}, {"name": "c", "w": 2}, {"name": "b", "w": 2}]}
    after = {"parts": [{"name": "d", "w": 1}, {"name": "a", "w": 1}, {"name": "c", "w": 2}, {"name": "b", "w": 1}]}
    told = plain(before)
    assert plain(applied(before, operations(before, after))) == plain(after)
    assert plain(before) == told


def test_claims_are_replaced_whole_or_not_at_all() -> None:
    before = {"metadata": {"managedFields": [{"manager": "a"}, {"manager": "b"}], "name": "x"}}
    after = {"metadata": {"managedFields": [{"manager": "a"}, {"manager": "c"}], "name": "x"}}
    (operation,) = operations(before, after)
    assert (operation["op"], operation["path"]) == ("replace", "/metadata/managedFields")
    assert operations(before, copy.deepcopy(before)) == ()
