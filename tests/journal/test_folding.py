"""Folding is a sum: whatever is merged with whatever first, and however it is written down."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.journal.strategies import START, result, results, sightings
from webhook.report.folding import LEVELS, coarser, fold, key_of, merged, seen
from webhook.report.records import MAX_PATHS, Record
from webhook.report.sightings import fold_lines, pack
from webhook.report.ticks import ticks

Sightings = list[tuple[list, dt.datetime]]


def all_seen(many: Sightings) -> list[Record]:
    return [seen(one, at) for found, at in many for one in found]


@given(st.lists(sightings, max_size=8), st.randoms())
def test_the_order_of_records_makes_no_difference(many: Sightings, chance) -> None:
    records = all_seen(many)
    mixed = list(records)
    chance.shuffle(mixed)
    assert fold(records) == fold(mixed)


@given(results(), st.lists(sightings, min_size=3, max_size=3))
def test_merging_is_associative(one, many: Sightings) -> None:
    a, b, c = (seen(one._replace(mode=found[0].mode, paths=found[0].paths), at) for found, at in many)
    assert merged(merged(a, b), c) == merged(a, merged(b, c))


@given(st.lists(sightings, max_size=8))
def test_nothing_is_lost_by_folding(many: Sightings) -> None:
    folded = fold(all_seen(many)).values()
    assert sum(record.count for record in folded) == sum(len(found) for found, _ in many)
    assert all(sum(record.days.values()) == record.count for record in folded)


@given(st.lists(sightings, max_size=8))
def test_what_was_written_down_folds_to_the_same(many: Sightings) -> None:
    assert fold_lines(pack(found, ticks(at)) for found, at in many) == fold(all_seen(many))


@given(results(), results())
def test_a_key_is_the_same_for_repeats_and_no_others(one, other) -> None:
    parts = ("policy", "rule", "event", "resource", "namespace", "name", "manager", "operation", "user")
    a, b = seen(one, START), seen(other, START)
    same = all(getattr(a, name) == getattr(b, name) for name in (*parts, "dry_run", "outcome"))
    assert (key_of(a) == key_of(b)) == same


def test_names_that_meet_at_a_border_are_told_apart() -> None:
    one, other = seen(result(manager="ab", operation="c"), START), seen(result(manager="a", operation="bc"), START)
    assert key_of(one) != key_of(other)


def test_a_coarser_record_keeps_its_counts() -> None:
    record = replace(seen(result(), START), count=7, days={"2026-11-20": 7})
    for level in range(1, LEVELS + 1):
        less = coarser(record, level)
        assert (less.count, less.days, less.policy, less.outcome) == (7, record.days, "flux", "recorded")
        assert less.user == "*"
    assert coarser(record, 1).namespace == "shop"
    assert coarser(record, 2).namespace == "*"
    assert coarser(record, 3).resource == "*"


def test_of_too_many_paths_the_first_stay_whatever_the_order() -> None:
    many = tuple(f".spec.f{number:04}" for number in range(3 * MAX_PATHS))
    one, other = seen(result(paths=many[::2]), START), seen(result(paths=many[1::2]), START)
    assert merged(one, other).paths == merged(other, one).paths == many[:MAX_PATHS]


def test_a_name_that_cannot_be_stored_is_made_such() -> None:
    record = seen(result(user="a\ud800b", name="x" * 9000), START)
    assert record.user == "a?b"
    assert len(record.name) == 512


def test_a_line_is_small_however_long_the_names_in_it_are_and_tells_the_same() -> None:
    """Else who wants to go unseen fills the memory in which events wait."""
    long = result(paths=tuple(f".{number}" + "ß" * 300_000 for number in range(3)), user="u" * 9000, owner="o" * 9000)
    line = pack([long], ticks(START))
    assert len(line) < 32 << 10
    assert fold_lines([line]) == fold([seen(long, START)])


def test_a_line_that_is_none_says_nothing() -> None:
    good = pack([result()], ticks(START))
    bad = [b"", b"{", b"[]", b"[1]", b"null", b'[1,[["too","short"]]]', b'["x",[[]]]', b'[1e30,[["a"]]]', b"\xff"]
    assert fold_lines([*bad, good, *bad]) == fold_lines([good])
