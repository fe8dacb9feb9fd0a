"""The text of a policy file: encodings, line ends, places, and what is refused."""

from __future__ import annotations

import pytest

from webhook.policy import load_text
from webhook.policy.problems import Problem
from webhook.policy.shape import find
from webhook.policy.source import MAX_BYTES, Scalar, decode, plain, read


def scalar(text: str, *path: str | int) -> Scalar:
    (document,) = read(text, "f").documents
    found = find(document, path)
    assert found.whole and isinstance(found.node, Scalar)
    return found.node


def places(text: str) -> list[tuple[int, int, str]]:
    return [(one.line, one.column, one.rule) for one in read(text, "f").problems]


@pytest.mark.parametrize("data", [b"a: b", b"\xef\xbb\xbfa: b"])
def test_utf_8_is_read_with_or_without_a_byte_order_mark(data: bytes) -> None:
    text = decode(data, "f")
    assert isinstance(text, str)
    assert [plain(document) for document in read(text, "f").documents] == [{"a": "b"}]


@pytest.mark.parametrize(
    ("data", "place"),
    [(b"a: b\nc: \xff", (2, 4)), ("a: b".encode("utf-16"), (1, 1)), (b"\x80", (1, 1))],
)
def test_other_encodings_are_refused_with_the_place(data: bytes, place: tuple[int, int]) -> None:
    found = decode(data, "f")
    assert isinstance(found, Problem)
    assert (found.rule, found.line, found.column) == ("yaml-syntax", *place)


def test_a_file_over_the_limit_is_refused() -> None:
    found = decode(b"#" * (MAX_BYTES + 1), "f")
    assert isinstance(found, Problem) and found.rule == "yaml-limit"
    assert isinstance(decode(b"#" * MAX_BYTES, "f"), str)
    assert places("#" * (MAX_BYTES + 1)) == [(1, 1, "yaml-limit")]


@pytest.mark.parametrize(("text", "place"), [("a: \x00", (1, 4)), ("a:\n  \x07b", (2, 3)), ("a: \ud800", (1, 4))])
def test_characters_that_yaml_forbids_are_pointed_at(text: str, place: tuple[int, int]) -> None:
    assert places(text) == [(*place, "yaml-syntax")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts_as_one_line(end: str) -> None:
    assert scalar(f"a:{end}{end}  b:{end}  - c", "a", "b", 0).place.line == 4


@pytest.mark.parametrize(
    ("source", "column"),
    [
        ("[a.b]", 5),  # plain: the text begins at column 5
        ("['a.b']", 6),
        ("['''.b']", 6),  # the text is '.b
        ('["a.b"]', 6),
        (r'["\x61.b"]', 6),
        ("[&x a.b]", 8),
        ("[!!str a.b]", 11),
    ],
)
def test_the_place_of_a_character_points_into_the_source(source: str, column: int) -> None:
    node = scalar(f"k: {source}", "k", 0)
    assert node.at(0).column == column
    dot = source.index(".") + 4
    assert node.at(node.value.index(".")).column == dot


def test_in_folded_text_the_place_is_where_it_begins() -> None:
    assert scalar("k: >-\n  a\n  b\n", "k").at(2) == scalar("k: >-\n  a\n  b\n", "k").place


def test_after_a_fault_reading_goes_on_at_the_next_document() -> None:
    source = read("a: [}\nb: 1\n---\nc: 2\n---\nd: ]\n---\ne: 5\n", "f")
    assert [plain(document) for document in source.documents] == [{"c": 2}, {"e": 5}]
    assert [(one.line, one.rule) for one in source.problems] == [(1, "yaml-syntax"), (6, "yaml-syntax")]
    assert find(source.documents[1], ("e",)).node.place.line == 8


def test_reading_stops_after_many_faults() -> None:
    assert len(read("a: [}\n---\n" * 500, "f").problems) == 20


def test_keys_are_texts_as_they_are_written() -> None:
    (document,) = read("{on: 1, 2: 3, null: 4, '5': 6}", "f").documents
    assert plain(document) == {"on": 1, "2": 3, "null": 4, "5": 6}


def test_scalars_mean_what_they_mean_to_kubernetes() -> None:
    text = "[yes, 'yes', 12, 0x10, 1.5, ~, 2026-01-01, !!str 7, text]"
    (document,) = read(text, "f").documents
    assert plain(document) == [True, "yes", 12, 16, 1.5, None, "2026-01-01", "7", "text"]


def test_merge_keys_give_way_to_the_table_s_own() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: {x: 4, <<: *a}\n"
    (document,) = read(text, "f").documents
    assert plain(document)["c"] == {"x": 3, "y": 1, "z": 2}
    assert plain(document)["d"] == {"x": 4, "y": 1}


def test_an_anchor_ends_with_its_document() -> None:
    assert places("a: &x 1\n---\nb: *x\n") == [(3, 4, "yaml-syntax")]


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000, "{a: " * 50_000, "&a [" * 1000 + "*a"])
def test_deep_nesting_is_refused_quickly(text: str) -> None:
    assert {one.rule for one in read(text, "f").problems} <= {"yaml-limit", "yaml-syntax"}
    assert read(text, "f").problems


@pytest.mark.parametrize("number", ["9" * 10_000, "0x", "1_", "0b", "-0x_", "1e999", "0o"])
def test_odd_numbers_are_no_crash(number: str) -> None:
    for problem in load_text(f"apiVersion: {number}\nkind: FieldPolicy\nmetadata: {{name: {number}}}\n", "f").problems:
        assert number not in problem.message or len(number) < 10
