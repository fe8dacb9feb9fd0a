"""Laws: loading never raises, and the linter's comparisons are never wrong in the harmful direction."""

from __future__ import annotations

from itertools import product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.policy.strategies import globs, mutated_policies, names, paths, patterns
from webhook.fields import FieldPath, FieldSet, Pattern
from webhook.policy import load_text
from webhook.policy.compiled import Glob
from webhook.policy.overlap import globs_cover, globs_overlap, patterns_cover
from webhook.policy.problems import CATALOGUE


def check_text(text: str) -> None:
    loaded = load_text(text, "f")
    for problem in loaded.problems:
        assert problem.rule in CATALOGUE
        assert problem.line >= 1 and problem.column >= 1
        assert problem.line <= len(text.splitlines()) + 1
        assert str(problem)
    assert (loaded.policies is None) == any(problem.severity == "error" for problem in loaded.problems)


@settings(max_examples=400, deadline=None)
@given(mutated_policies())
def test_a_mutated_policy_loads_or_says_why(text: str) -> None:
    check_text(text)


@settings(max_examples=200, deadline=None)
@given(st.text())
@example("?")
def test_any_text_loads_or_says_why(text: str) -> None:
    check_text(text)


@given(globs, globs, names)
def test_a_glob_that_covers_another_matches_all_that_it_matches(a: str, b: str, name: str) -> None:
    if globs_cover(a, b) and Glob.compile(b).matches(name):
        assert Glob.compile(a).matches(name)


@given(globs, globs, names)
def test_globs_that_match_one_name_overlap(a: str, b: str, name: str) -> None:
    if Glob.compile(a).matches(name) and Glob.compile(b).matches(name):
        assert globs_overlap(a, b)


@given(globs, globs)
def test_overlap_has_no_order_and_every_glob_overlaps_itself(a: str, b: str) -> None:
    assert globs_overlap(a, b) == globs_overlap(b, a)
    assert globs_overlap(a, a) and globs_cover(a, a) and globs_cover("*", a)


SOME_NAMES = ["".join(name) for length in range(7) for name in product("ab", repeat=length)]


@settings(max_examples=50, deadline=None)
@given(globs.filter(lambda text: len(text) <= 3), globs.filter(lambda text: len(text) <= 3))
def test_globs_overlap_only_where_they_share_a_name(a: str, b: str) -> None:
    """Every name of up to six letters is tried: globs of three characters that share any name share one of those."""
    one, other = Glob.compile(a), Glob.compile(b)
    assert globs_overlap(a, b) == any(one.matches(name) and other.matches(name) for name in SOME_NAMES)


@settings(max_examples=500)
@given(patterns, patterns, paths)
@example('.s[k="a"]', '.s[k="a",l=1]', '.s[k="a",l=1]')
def test_a_pattern_that_covers_another_selects_all_that_it_selects(a: str, b: str, path: str) -> None:
    first, second = Pattern.parse(a), Pattern.parse(b)
    members = FieldSet.from_paths([FieldPath.parse(path)])
    if patterns_cover(first, second) and second.select(members):
        assert first.select(members)
