"""The laws of the algebra of sets."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
from hypothesis import given

from tests.strategies import COMMON_PATHS, PATHS, SETS
from webhook.fields import FieldPath, FieldSet


@given(SETS, SETS)
def test_union_is_commutative(a: FieldSet, b: FieldSet) -> None:
    assert a | b == b | a


@given(SETS, SETS, SETS)
def test_union_is_associative(a: FieldSet, b: FieldSet, c: FieldSet) -> None:
    assert (a | b) | c == a | (b | c)


@given(SETS)
def test_union_is_idempotent_and_the_empty_set_adds_nothing(a: FieldSet) -> None:
    assert a | a == a
    assert a | FieldSet() == a == FieldSet() | a


@given(SETS, SETS)
def test_intersection_is_commutative_and_idempotent(a: FieldSet, b: FieldSet) -> None:
    assert a & b == b & a
    assert a & a == a
    assert not a & FieldSet()


@given(SETS, SETS, SETS)
def test_intersection_distributes_over_union(a: FieldSet, b: FieldSet, c: FieldSet) -> None:
    assert a & (b | c) == (a & b) | (a & c)


@given(SETS, SETS)
def test_difference_and_intersection_partition_a_set(a: FieldSet, b: FieldSet) -> None:
    assert (a - b) | (a & b) == a
    assert not (a - b) & (a & b)
    assert len(a - b) + len(a & b) == len(a)


@given(SETS, SETS)
def test_the_operations_are_those_of_plain_sets_of_paths(a: FieldSet, b: FieldSet) -> None:
    mine, theirs = set(a), set(b)
    assert set(a | b) == mine | theirs
    assert set(a & b) == mine & theirs
    assert set(a - b) == mine - theirs


@given(SETS, SETS)
def test_the_recursive_difference_leaves_nothing_at_or_below_a_member_of_the_other(a: FieldSet, b: FieldSet) -> None:
    members = set(b)
    kept = {path for path in a if not any(path[:length] in members for length in range(1, len(path) + 1))}
    assert set(a.recursive_difference(b)) == kept


@given(SETS, SETS)
def test_the_recursive_difference_is_part_of_the_difference(a: FieldSet, b: FieldSet) -> None:
    assert not a.recursive_difference(b) - (a - b)
    assert not a.recursive_difference(a)
    assert a.recursive_difference(b).recursive_difference(b) == a.recursive_difference(b)


@given(SETS)
def test_leaves_are_the_members_with_no_member_below(a: FieldSet) -> None:
    above = {path[:length] for path in a for length in range(len(path))}
    assert set(a.leaves()) == set(a) - above
    assert a.leaves().leaves() == a.leaves()
    assert all(a.leaves().is_leaf(path) for path in a.leaves())


@given(SETS)
def test_the_length_is_the_number_of_paths_iterated_and_none_comes_twice(a: FieldSet) -> None:
    paths = list(a)
    assert len(a) == len(paths) == len(set(paths))
    assert bool(a) == bool(paths)


@given(SETS, PATHS | COMMON_PATHS)
def test_a_set_contains_what_it_iterates_and_nothing_else(a: FieldSet, other: FieldPath) -> None:
    assert all(path in a for path in a)
    assert (other in a) == (other in set(a))
    assert () not in a


@given(SETS, PATHS | COMMON_PATHS)
def test_a_set_has_a_prefix_when_a_member_starts_with_it(a: FieldSet, prefix: FieldPath) -> None:
    assert a.has_prefix(prefix) == any(path.starts_with(prefix) for path in a)
    assert a.has_prefix(()) == bool(a)


@given(SETS)
def test_a_set_is_made_again_from_its_paths_in_any_order(a: FieldSet) -> None:
    assert FieldSet.from_paths(a) == a
    assert FieldSet.from_paths(reversed(list(a))) == a
    assert FieldSet.from_paths([tuple(path) for path in a]) == a


@given(SETS)
def test_members_of_one_level_come_in_the_order_of_steps(a: FieldSet) -> None:
    paths = list(a)
    for one, other in itertools.pairwise(paths):
        if one[:-1] == other[:-1]:
            assert one.order < other.order


@given(SETS, SETS)
def test_equal_sets_have_equal_hashes(a: FieldSet, b: FieldSet) -> None:
    again = (a | b) - (b - a)
    assert again == a and hash(again) == hash(a)
    assert (a == b) == (set(a) == set(b))
    assert a != set(a)


@given(SETS)
def test_a_set_survives_pickling_and_copying(a: FieldSet) -> None:
    assert pickle.loads(pickle.dumps(a)) == a
    assert copy.deepcopy(a) == a == copy.copy(a)


@given(SETS, SETS)
def test_no_operation_changes_its_operands(a: FieldSet, b: FieldSet) -> None:
    before = copy.deepcopy(a.to_fields_v1()), copy.deepcopy(b.to_fields_v1())
    made = (a | b, a & b, a - b, a.recursive_difference(b), a.leaves(), hash(a), list(a), len(a), repr(a))
    assert made
    assert (a.to_fields_v1(), b.to_fields_v1()) == before


def test_a_set_cannot_be_changed() -> None:
    made = FieldSet.from_fields_v1({"f:a": {}})
    with pytest.raises(AttributeError, match="never changes"):
        made._root = {}  # type: ignore[misc]
    with pytest.raises(AttributeError, match="never changes"):
        del made._root
    with pytest.raises(AttributeError):
        made.other = 1  # type: ignore[attr-defined]


def test_a_set_shares_nothing_with_the_dicts_it_came_from_and_became() -> None:
    tree = {"f:a": {"f:b": {}}}
    made = FieldSet.from_fields_v1(tree)
    tree["f:a"]["f:c"] = {}
    made.to_fields_v1()["f:a"]["f:d"] = {}
    assert [str(path) for path in made] == [".a.b"]
