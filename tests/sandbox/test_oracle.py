"""The oracle answers as the API server's own library; the answers here were worked out by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from webhook.sandbox import binaries

Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def ask() -> Ask:
    program = binaries({"oracle"})["oracle"]

    def questions(*asked: dict[str, Any]) -> list[dict[str, Any]]:
        lines = "".join(json.dumps(question) + "\n" for question in asked)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.split("\n")[:-1]]

    return questions


LABELS = {"f:metadata": {"f:labels": {"f:app": {}, "f:team": {}}}}
TEAM = {"f:metadata": {"f:labels": {"f:team": {}}}}
APP = {"f:metadata": {"f:labels": {"f:app": {}}}}
ITEM = {"f:spec": {"f:ports": {'k:{"port":80}': {".": {}, "f:name": {}}}}}


def test_the_algebra_of_two_sets(ask: Ask) -> None:
    both = {"a": LABELS, "b": TEAM}
    answers = ask(
        {"op": "union", "a": APP, "b": TEAM},
        {"op": "intersection", **both},
        {"op": "difference", **both},
        {"op": "equals", **both},
        {"op": "equals", "a": TEAM, "b": TEAM},
    )
    assert answers == [{"set": LABELS}, {"set": TEAM}, {"set": APP}, {"bool": False}, {"bool": True}]


def test_only_the_recursive_difference_removes_what_lies_below(ask: Ask) -> None:
    whole = {"f:spec": {"f:ports": {'k:{"port":80}': {}}}}
    plain, recursive = ask(
        {"op": "difference", "a": ITEM, "b": whole}, {"op": "recursive_difference", "a": ITEM, "b": whole}
    )
    assert plain == {"set": {"f:spec": {"f:ports": {'k:{"port":80}': {"f:name": {}}}}}}
    assert recursive == {"set": {}}


def test_questions_about_one_set(ask: Ask) -> None:
    item = ["f:spec", "f:ports", 'k:{"port":80}']
    answers = ask(
        {"op": "leaves", "a": ITEM},
        {"op": "below", "a": ITEM, "path": ["f:spec", "f:ports"]},
        {"op": "has", "a": ITEM, "path": item},
        {"op": "has", "a": ITEM, "path": ["f:spec", "f:ports"]},
        {"op": "size", "a": ITEM},
        {"op": "iterate", "a": ITEM},
    )
    assert answers == [
        {"set": {"f:spec": {"f:ports": {'k:{"port":80}': {"f:name": {}}}}}},
        {"set": {'k:{"port":80}': {".": {}, "f:name": {}}}},
        {"bool": True},
        {"bool": False},
        {"size": 2},
        {
            "paths": [
                {"steps": item, "text": ".spec.ports[port=80]"},
                {"steps": [*item, "f:name"], "text": ".spec.ports[port=80].name"},
            ]
        },
    ]


def test_keys_are_compared_as_json(ask: Ask) -> None:
    keyed = {'k:{"protocol":"TCP","port":80}': {}}
    (answer,) = ask({"op": "roundtrip", "a": keyed})
    assert answer == {"set": {'k:{"port":80,"protocol":"TCP"}': {}}}


def test_steps_are_sorted_by_kind_and_then_by_value(ask: Ask) -> None:
    steps = ["i:1", 'v:"a"', 'k:{"name":"a"}', "f:b", "f:a", "v:2", "v:1"]
    (answer,) = ask({"op": "order", "path": steps})
    assert answer == {"path": ["f:a", "f:b", 'k:{"name":"a"}', "v:1", "v:2", 'v:"a"', "i:1"]}


def test_any_text_comes_through_unharmed(ask: Ask) -> None:
    odd = {"f:<&>": {}, "f:\u2028 \U0001f600": {}, 'v:"\\"é"': {}}
    back, built = ask({"op": "roundtrip", "a": odd}, {"op": "from_paths", "paths": [[step] for step in odd]})
    assert {json.dumps(key) for key in back["set"]} == {json.dumps(key) for key in odd}
    assert built == back


def test_a_bad_question_is_answered_and_the_next_one_too(ask: Ask) -> None:
    answers = ask(
        {"op": "guess"},
        {"op": "leaves"},
        {"op": "has", "a": {}, "path": ["nonsense"]},
        {"op": "union", "a": {"k:{": {}}, "b": {}},
        {"op": "size", "a": {}},
    )
    assert [list(answer) for answer in answers] == [["error"]] * 4 + [["size"]]
    assert "guess" in answers[0]["error"]
    assert "nonsense" in answers[2]["error"]
