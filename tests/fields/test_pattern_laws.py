"""What patterns select and touch."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.strategies import COMMON_PATHS, PATHS, SETS, SOME_SETS
from webhook.fields import FieldPath, FieldsError, FieldSet, Pattern

GLOB_STEPS = st.sampled_from(
    [".a", ".*", ".b", '["*a*"]', "[*]", "[a=1]", '[b="*"]', '[="*"]', "[=1]", "[0]", ".metadata"]
)
PATTERNS = st.lists(GLOB_STEPS, min_size=1, max_size=4).map("".join)


def literal(path: FieldPath) -> Pattern:
    """The pattern that a path's own text is; not of a text with stars, nor of no keys at all."""
    assume("*" not in str(path) and "k:{}" not in path)
    try:
        return Pattern.parse(str(path))
    except FieldsError as error:  # no pattern asks for a key that is a list or a map, which the server has not either
        assume("holds a text, a number or a boolean" not in error.message)
        raise


def names(pattern_path: FieldPath, path: FieldPath) -> bool:
    """Whether a path lies at or below another, where an item may have more keys than were asked for."""
    return len(path) >= len(pattern_path) and all(
        want == have or (want[:2] == have[:2] == "k:" and keys(want) <= keys(have))
        for want, have in zip(pattern_path, path, strict=False)
    )


def keys(step: str) -> set[tuple[str, str]]:
    return {(name, json.dumps(value)) for name, value in json.loads(step[2:]).items()}


@given(SOME_SETS, st.data())
def test_a_paths_own_text_selects_that_node_and_what_lies_below(a: FieldSet, data: st.DataObject) -> None:
    member = data.draw(st.sampled_from(list(a)))
    path = FieldPath(member[: data.draw(st.integers(1, len(member)))])
    assert set(literal(path).select(a)) == {other for other in a if names(path, other)}
    assert member in literal(path).select(a)


@given(SETS, PATTERNS)
def test_what_is_selected_is_in_the_set_and_touched(a: FieldSet, text: str) -> None:
    pattern = Pattern.parse(text)
    selected = pattern.select(a)
    assert not selected - a
    assert not selected - pattern.touched(a)
    assert all(pattern.touches(path) for path in selected)


@given(SETS, PATTERNS)
def test_selected_is_what_is_touched_and_long_enough(a: FieldSet, text: str) -> None:
    pattern = Pattern.parse(text)
    assert set(pattern.select(a)) == {
        path for path in a if len(path) >= len(pattern.matchers) and pattern.touches(path)
    }


@given(SETS, PATTERNS)
def test_touched_adds_the_leaves_above(a: FieldSet, text: str) -> None:
    pattern = Pattern.parse(text)
    above = {path for path in a.leaves() if len(path) < len(pattern.matchers) and pattern.touches(path)}
    assert set(pattern.touched(a)) == set(pattern.select(a)) | above


@given(SETS, PATTERNS)
def test_selecting_twice_selects_no_less(a: FieldSet, text: str) -> None:
    pattern = Pattern.parse(text)
    assert pattern.select(pattern.select(a)) == pattern.select(a)
    assert pattern.touched(pattern.touched(a)) == pattern.touched(a)


@given(SETS, SETS, PATTERNS)
def test_a_union_is_selected_from_as_its_parts_are(a: FieldSet, b: FieldSet, text: str) -> None:
    pattern = Pattern.parse(text)
    assert pattern.select(a | b) == pattern.select(a) | pattern.select(b)


@given(PATHS | COMMON_PATHS, PATHS | COMMON_PATHS)
def test_touching_goes_both_ways(a: FieldPath, b: FieldPath) -> None:
    """A path at, below or above another: the keys of an item apart, of which a pattern may name a few."""
    assume(not any(step[:2] == "k:" for step in (*a, *b)))
    assert literal(a).touches(b) == literal(b).touches(a) == (a.starts_with(b) or b.starts_with(a))


@given(st.text("ab*.", max_size=8), st.text("ab.\n", max_size=8))
@example("a*ab*b", "aabb")
@example("*ab*ab", "abab")
@example("ab*ba", "aba")
@example("**", "")
def test_a_star_stands_for_any_characters(glob: str, name: str) -> None:
    wanted = re.compile(".*".join(map(re.escape, glob.split("*"))), re.DOTALL).fullmatch(name) is not None
    for bracketed, step in ((json.dumps(glob), f"f:{name}"), (f"={json.dumps(glob)}", f"v:{json.dumps(name)}")):
        assert Pattern.parse(f"[{bracketed}]").touches((step,)) == wanted


def test_no_name_makes_a_glob_search_for_long() -> None:
    pattern = Pattern.parse('.metadata.labels["' + "*a" * 30 + '*b"]')
    begin = time.process_time()
    assert not pattern.touches(("f:metadata", "f:labels", "f:" + "a" * 5000))
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("pattern", "path", "touches"),
    [
        ('.c[name="app"]', '.c[name="app",port=80].image', True),  # keys that are not named may be anything
        ('.c[name="app",port=80]', '.c[name="app"]', False),
        ('.c[name="a*"].image', '.c[name="app"]', True),
        ('.c[name="a*"]', ".c[name=1]", False),
        (".c[port=80]", ".c[port=80.0]", True),
        (".c[port=80]", '.c[port="80"]', False),
        (".c[port=1]", ".c[port=true]", False),
        ('.c[name="*"]', '.c[="app"]', False),
        (".c[*]", '.c[="app"]', True),
        (".c[*]", ".c[0]", True),
        (".c[*]", ".c.name", True),
        (".c.*", ".c[0]", False),
        ('.c[="*"]', ".c[=1]", False),
        ('.metadata.labels["team.example.com/*"]', ".metadata.labels.team.example.com/name", True),
        (".metadata.labels", ".metadata", True),
        (".metadata.labels", ".metadata.annotations.a", False),
    ],
)
def test_what_a_pattern_touches(pattern: str, path: str, touches: bool) -> None:
    assert Pattern.parse(pattern).touches(FieldPath.parse(path)) is touches


def test_a_pattern_prints_as_it_was_written_and_is_literal_without_choice() -> None:
    assert str(Pattern.parse('.a["b"]')) == '.a["b"]'
    assert Pattern.parse('.a["b"][="c"][0]').literal
    assert not Pattern.parse(".a.*").literal
    assert not Pattern.parse('.a[name="x"]').literal
