"""fieldsV1, read and written: what the server finds equal is one set, and what cannot be read is reported."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.strategies import JSON, SETS, STEPS, spelt_sets
from webhook.fields import FieldPath, FieldsError, FieldSet
from webhook.fields.steps import canonical_step, step_order, step_value, value_step


@given(SETS)
def test_a_set_is_read_back_as_it_was_written(a: FieldSet) -> None:
    assert FieldSet.from_fields_v1(a.to_fields_v1()) == a
    assert FieldSet.from_fields_v1(json.loads(json.dumps(a.to_fields_v1()))) == a


@given(SETS)
def test_a_set_is_written_in_the_order_of_the_server(a: FieldSet) -> None:
    steps = list(a.to_fields_v1())
    assert steps == sorted(steps, key=step_order)


@given(SETS, st.randoms(use_true_random=False))
def test_the_order_of_json_keys_means_nothing(a: FieldSet, chance: random.Random) -> None:
    def shuffled(node: dict[str, Any]) -> dict[str, Any]:
        keys = list(node)
        chance.shuffle(keys)
        return {key: shuffled(node[key]) for key in keys}

    assert FieldSet.from_fields_v1(shuffled(a.to_fields_v1())) == a


@given(spelt_sets())
def test_another_spelling_is_the_same_set(case: tuple[FieldSet, dict[str, Any]]) -> None:
    meant, tree = case
    assert FieldSet.from_fields_v1(tree) == meant
    assert hash(FieldSet.from_fields_v1(tree)) == hash(meant)


@given(STEPS)
def test_the_canonical_spelling_is_its_own(step: str) -> None:
    assert canonical_step(step) == step


@given(STEPS, STEPS)
def test_steps_have_one_order_and_equal_ones_are_one(a: str, b: str) -> None:
    assert (step_order(a) < step_order(b)) + (step_order(b) < step_order(a)) == (a != b)


@given(JSON)
def test_a_member_is_read_back_as_the_value_that_the_server_sees(value: Any) -> None:
    assert canonical_step(value_step(value)) == value_step(value)
    assert canonical_step("v:" + json.dumps(value)) == value_step(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("v:1", "v:1.0"),
        ("v:1", "v:1e0"),
        ("v:0", "v:-0.0"),
        ("v:9007199254740993", "v:9007199254740992"),  # the server reads 64-bit floats
        ("v:1e21", "v:1000000000000000000000"),
        ('v:"<"', 'v:"\\u003c"'),
        ('v:"\\ud800"', 'v:"\ufffd"'),  # half a character
        ('k:{"b":1,"a":2}', 'k:{ "a": 2.0, "b": 1 }'),
        ("i:5", "i:+5"),
        ("i:5", "i:005"),
    ],
)
def test_spellings_that_the_server_finds_equal_are_one_step(one: str, other: str) -> None:
    assert canonical_step(one) == canonical_step(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("v:1", 'v:"1"'), ("v:1", "v:true"), ("v:null", 'v:"null"'), ("f:a", "f:a "), ('k:{"a":1}', 'k:{"a":true}')],
)
def test_steps_that_look_alike_are_not_equal(one: str, other: str) -> None:
    assert canonical_step(one) != canonical_step(other)


def test_no_one_owns_the_entire_object() -> None:
    assert FieldSet.from_fields_v1({".": {}}) == FieldSet()
    assert not FieldSet.from_fields_v1({".": {}})


def test_what_a_dot_holds_is_skipped() -> None:
    for junk in ({"f:x": {}}, None, 1, []):
        assert FieldSet.from_fields_v1({"f:a": {".": junk, "f:b": {}}}) == FieldSet.from_paths(
            [("f:a",), ("f:a", "f:b")]
        )


def test_of_a_step_in_two_spellings_the_last_that_has_anything_counts_below() -> None:
    twice = FieldSet.from_fields_v1({"v:1": {"f:a": {}}, "v:1.0": {"f:b": {}}, "v:1e0": {}})
    assert [tuple(path) for path in twice] == [("v:1",), ("v:1", "f:b")]


FAULTY = [
    (
        {"x:a": {}},
        snapshot("""\
unknown kind of step: f:, k:, v: and i: are known
  x:a
  ^"""),
    ),
    (
        {"f:a": {"": {}}},
        snapshot("unknown kind of step: f:, k:, v: and i: are known\n  \n  ^"),
    ),
    (
        {"f:a": {"fa": {}}},
        snapshot("""\
unknown kind of step: f:, k:, v: and i: are known
  fa
  ^"""),
    ),
    (
        {"k:[]": {}},
        snapshot("""\
a key step holds a JSON object, such as k:{"name":"app"}
  k:[]
    ^"""),
    ),
    (
        {"k:{]": {}},
        snapshot("""\
a step's JSON cannot be read: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
  k:{]
     ^"""),
    ),
    (
        {"v:": {}},
        snapshot("""\
a step's JSON cannot be read: Expecting value: line 1 column 1 (char 0)
  v:
    ^"""),
    ),
    (
        {"v:NaN": {}},
        snapshot("""\
a step's JSON cannot be read: NaN is not JSON
  v:NaN
    ^"""),
    ),
    ({"v:1e999": {}}, snapshot("a step's JSON holds a number that is out of range")),
    ({"v:" + "9" * 400: {}}, snapshot("a step's JSON holds a number that is out of range")),
    (
        {"i:1.5": {}},
        snapshot("""\
an index step holds a whole number, such as i:0
  i:1.5
    ^"""),
    ),
    (
        {"i: 1": {}},
        snapshot("""\
an index step holds a whole number, such as i:0
  i: 1
    ^"""),
    ),
    (
        {"i:1_0": {}},
        snapshot("""\
an index step holds a whole number, such as i:0
  i:1_0
    ^"""),
    ),
    (
        {"i:9223372036854775808": {}},
        snapshot("""\
an index step holds a whole number, such as i:0
  i:9223372036854775808
    ^"""),
    ),
    ({"f:a": None}, snapshot("below f:a stands NoneType, where fieldsV1 has an object")),
    ({"f:a": {"f:b": 1}}, snapshot("below f:b stands int, where fieldsV1 has an object")),
    ([], snapshot("fieldsV1 is an object, not list")),
]


@pytest.mark.parametrize(("tree", "message"), FAULTY, ids=lambda case: None)
def test_what_cannot_be_read_is_reported_with_its_place(tree: Any, message: str) -> None:
    with pytest.raises(FieldsError) as raised:
        FieldSet.from_fields_v1(tree)
    assert str(raised.value) == message


def test_long_steps_are_not_kept_in_memory() -> None:
    from webhook.fields import steps

    before = steps._known_spelling.cache_info().currsize, steps._known_order.cache_info().currsize
    tree = {"v:" + json.dumps("x" * 1000 + str(number)): {} for number in range(20)}
    assert next(step_value(path[-1])[-2:] for path in FieldSet.from_fields_v1(tree)) == "x0"
    assert (steps._known_spelling.cache_info().currsize, steps._known_order.cache_info().currsize) == before


def test_paths_are_read_in_any_spelling() -> None:
    assert FieldSet.from_paths([("f:a", 'k:{"b": 1.0}')]) == FieldSet.from_paths([FieldPath(("f:a", 'k:{"b":1}'))])
    with pytest.raises(FieldsError, match="unknown kind of step"):
        FieldSet.from_paths([("a",)])
