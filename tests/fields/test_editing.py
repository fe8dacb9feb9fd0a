"""Values put at paths and taken away: what is asked for happens, and nothing else, to nobody else's object."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.fields import ABSENT, FieldPath, FieldSet, value_at
from webhook.fields.editing import Ambiguous, Editor, in_order_of, with_value
from webhook.fields.lookup import Values

NAMES = st.sampled_from("abcdefghij")
ITEMS = st.lists(NAMES, unique=True, max_size=10).map(lambda names: [{"name": name, "w": 1} for name in names])


def item(name: str) -> tuple[str, ...]:
    return ("f:spec", "f:parts", f'k:{{"name":"{name}"}}')


def names_of(items: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in items]


@given(ITEMS, ITEMS)
def test_an_item_that_is_put_back_stands_behind_the_nearest_one_that_stood_before_it(
    was: list[dict[str, Any]], now: list[dict[str, Any]]
) -> None:
    old, new = {"spec": {"parts": was}}, {"spec": {"parts": now}}
    told = json.dumps([old, new])
    for name in set(names_of(was)) - set(names_of(now)):
        made = names_of(with_value(new, item(name), {"name": name}, old)["spec"]["parts"])
        before = [each for each in names_of(was)[: names_of(was).index(name)] if each in names_of(now)]
        at = made.index(name)
        assert made[:at] + made[at + 1 :] == names_of(now)
        assert made[at - 1] == before[-1] if before else at == 0
    assert json.dumps([old, new]) == told


@given(ITEMS, ITEMS)
def test_all_items_put_back_and_taken_out_at_once_make_the_old_list_when_order_was_kept(
    was: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    kept = [each for at, each in enumerate(was) if at % 2]
    new = [*kept, *(each for each in more if each["name"] not in names_of(was))]
    editor = Editor({"spec": {"parts": new}})
    back = {item(each["name"])[-1]: each for each in was if each not in kept}
    gone = [item(each["name"])[-1] for each in new if each not in kept]
    if back or gone:
        editor.put_items(("f:spec", "f:parts"), back, gone, {"spec": {"parts": was}})
        assert editor.value == {"spec": {"parts": was}}


def test_many_edits_of_one_map_leave_the_original_alone() -> None:
    original = {"data": {f"k{number}": "a" for number in range(50)}, "other": {"x": 1}}
    told = json.dumps(original)
    editor = Editor(original)
    for number in range(50):
        editor.put(("f:data", f"f:k{number}"), "b")
    assert set(editor.value["data"].values()) == {"b"}
    assert editor.value["other"] is original["other"]
    assert json.dumps(original) == told


def test_missing_parents_are_made_and_a_value_of_another_kind_gives_way() -> None:
    path = FieldPath.parse('.spec.parts[name="a"].w')
    assert with_value({}, path, 3) == {"spec": {"parts": [{"name": "a", "w": 3}]}}
    assert with_value({"spec": "text"}, path, 3) == {"spec": {"parts": [{"name": "a", "w": 3}]}}


def test_members_of_sets_come_and_go() -> None:
    editor = Editor({"metadata": {"finalizers": ["a", "c"]}})
    editor.put(FieldPath.parse('.metadata.finalizers[="b"]'), "b", {"metadata": {"finalizers": ["a", "b", "c"]}})
    assert editor.value == {"metadata": {"finalizers": ["a", "b", "c"]}}
    editor.remove(FieldPath.parse('.metadata.finalizers[="a"]'))
    editor.remove(FieldPath.parse('.metadata.finalizers[="no"]'))
    assert editor.value == {"metadata": {"finalizers": ["b", "c"]}}


def test_two_items_of_one_key_are_not_told_apart() -> None:
    twice = {"spec": {"parts": [{"name": "a"}, {"name": "a"}]}}
    with pytest.raises(Ambiguous):
        with_value(twice, (*item("a"), "f:w"), 1)
    with pytest.raises(Ambiguous):
        Editor(twice).remove(item("a"))
    with pytest.raises(Ambiguous):
        in_order_of([{"name": "a"}, {"name": "a"}], [{"name": "a"}], ("name",))


@given(st.lists(st.sampled_from(["a", "b", 1, True, 1.0, None]), max_size=30), st.integers(0, 40))
def test_an_indexed_lookup_finds_what_a_search_finds(keys: list[Any], more: int) -> None:
    obj = {"parts": [{"id": key, "n": at} for at, key in enumerate([*keys, *(f"x{n}" for n in range(more))])]}
    values = Values(obj)
    for text in ('.parts[id="a"]', ".parts[id=1]", ".parts[id=true].n", '.parts[id="x3"].n', '.parts[id="no"]', ".no"):
        path = FieldPath.parse(text)
        assert values.at(path) == value_at(obj, path)
        assert (values.at(path) is ABSENT) == (value_at(obj, path) is ABSENT)


SETS = st.lists(st.lists(st.sampled_from(["f:a", "f:b", "f:c"]), min_size=1, max_size=4).map(tuple), max_size=8).map(
    FieldSet.from_paths
)


@given(SETS, SETS, st.lists(st.sampled_from(["f:a", "f:b", "f:c"]), min_size=1, max_size=3).map(tuple))
def test_a_set_replaced_at_a_path_is_the_other_there_and_itself_elsewhere(
    one: FieldSet, other: FieldSet, at: tuple[str, ...]
) -> None:
    made = one.replaced(at, other)
    here = {path for path in made if path[: len(at)] == at}
    assert here == {path for path in other if path[: len(at)] == at}
    assert set(made) - here == {path for path in one if path[: len(at)] != at}
