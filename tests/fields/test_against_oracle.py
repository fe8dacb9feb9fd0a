"""Path by path, the answers are those of the API server's own library (structured-merge-diff).

Sets come from a seeded generator rather than from Hypothesis: each operation is asked on as many as can be, in bulk, and
what differs is small enough to be read as it is.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pytest

from webhook.fields import FieldPath, FieldsError, FieldSet
from webhook.fields.steps import canonical_step, step_order
from webhook.sandbox import binaries

Tree: TypeAlias = dict[str, Any]
Question: TypeAlias = dict[str, Any]

COUNT = 4000
SEED = 20240229

STEPS = [
    "f:a", "f:b", "f:c", "f:spec", "f:metadata", "f:labels", "f:app.kubernetes.io/name", "f:", "f:.", "f:f:a", "f:é",
    "f:\U0001f600", "f:\uffff", "f:\u2028", 'f:"', "f:\\", "f:<&>", "f:a b",
    'k:{"name":"app"}', 'k:{"name":"<x>"}', 'k:{"name":"é\U0001f600"}', 'k:{"name":""}', 'k:{"port":80,"protocol":"TCP"}',
    'k:{"port":80}', 'k:{"port":"80"}', 'k:{"port":80.5}', 'k:{"port":-1}', 'k:{"a":true}', 'k:{"a":false}',
    'k:{"a":null}', 'k:{"a":1,"b":"x","c":false}', 'k:{"a":1,"c":"x"}', 'k:{"":0}', "k:{}", 'k:{"a":[1,"x"]}',
    'k:{"a":{"b":1}}', 'k:{"a":9007199254740993}',
    "v:1", "v:2", "v:10", "v:-1", "v:0", "v:1.5", "v:1e21", "v:1e-7", "v:0.00001", "v:123456789012345680000",
    "v:9007199254740993", 'v:"1"', 'v:"a"', 'v:"b"', 'v:""', 'v:"\\u0000"', 'v:"é"', 'v:"\\""', "v:true", "v:false",
    "v:null", "v:[]", "v:[1]", "v:[1,2]", 'v:["1"]', "v:{}", 'v:{"a":1}', 'v:{"a":1,"b":2}', 'v:{"b":1}', "v:[[]]",
    "i:0", "i:1", "i:2", "i:10", "i:-1", "i:9223372036854775807",
]  # fmt: skip
OTHERWISE = {
    'k:{"port":80,"protocol":"TCP"}': ['k:{"protocol":"TCP","port":80}', 'k:{ "port" : 80.0, "protocol":"\\u0054CP"}'],
    'k:{"a":1,"b":"x","c":false}': ['k:{"c":false,"b":"x","a":1}', 'k:{"b":"x","c":false,"a":1.0}'],
    'k:{"name":"<x>"}': ['k:{"name":"\\u003cx\\u003e"}'],
    'k:{"a":9007199254740993}': ['k:{"a":9007199254740992}'],
    "v:1": ["v:1.0", "v: 1", "v:1e0", "v:10e-1"],
    "v:0": ["v:-0.0", "v:0.0"],
    "v:1e21": ["v:1000000000000000000000", "v:1E+21"],
    "v:9007199254740993": ["v:9007199254740992", "v:9007199254740992.0"],
    'v:"é"': ['v:"\\u00e9"'],
    'v:{"a":1,"b":2}': ['v:{"b":2,"a":1}'],
    "i:1": ["i:+1", "i:01"],
}
"""Other spellings of some steps, which the server finds equal."""


class Generator:
    """Sets that share prefixes: a few steps are likely, and a second set is often cut from the first."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def step(self) -> str:
        step = self.chance.choice(STEPS[:4] if self.chance.random() < 0.5 else STEPS)
        if self.chance.random() < 0.3 and step in OTHERWISE:
            return self.chance.choice(OTHERWISE[step])
        if self.chance.random() < 0.02:  # any character but half ones
            return "f:" + "".join(chr(self.chance.randrange(0xD800)) for _ in range(3))
        return step

    def path(self) -> list[str]:
        return [self.step() for _ in range(self.chance.randint(1, 5))]

    def tree(self, depth: int = 3, width: int = 3) -> Tree:
        """fieldsV1 in any order and spelling; each step once, since of a key that occurs twice JSON keeps one."""
        tree: Tree = {}
        known: set[str] = set()
        for _ in range(self.chance.randint(1, width)):
            step = self.step()
            if canonical_step(step) not in known:
                known.add(canonical_step(step))
                tree[step] = self.below(depth - 1)
        return tree

    def below(self, depth: int) -> Tree:
        """What stands below a step: a leaf, in either form, or more."""
        if depth < 0 or self.chance.random() < 0.3:
            return {} if self.chance.random() < 0.8 else {".": {}}
        return {".": {}, **self.tree(depth)} if self.chance.random() < 0.4 else self.tree(depth)

    def other(self, tree: Tree) -> Tree:
        """A set near another: with some of its branches, leaves made of some, and others added."""
        out: Tree = {}
        for step, below in tree.items():
            fate = self.chance.random()
            if fate < 0.15:
                continue
            if fate < 0.3:
                out[step] = {}
            elif fate < 0.45 and below and "." not in below:
                out[step] = {".": {}, **below}
            else:
                out[step] = self.other(below)
        known = {canonical_step(step) for step in out if step != "."}
        if self.chance.random() < 0.3 and canonical_step(step := self.step()) not in known:
            out[step] = self.tree(1)
        return out

    def pair(self) -> tuple[Tree, Tree]:
        a = self.tree()
        b = self.other(a) if self.chance.random() < 0.7 else self.tree()
        return (a, b) if self.chance.random() < 0.5 else (b, a)


@pytest.fixture(scope="module")
def ask() -> Callable[[Iterable[Question]], list[dict[str, Any]]]:
    program = binaries({"oracle"})["oracle"]

    def questions(asked: Iterable[Question]) -> list[dict[str, Any]]:
        lines = "".join(json.dumps(question) + "\n" for question in asked).encode()
        done = subprocess.run([program], input=lines, capture_output=True, check=True)
        return [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]

    return questions


Ask: TypeAlias = Callable[[Iterable[Question]], list[dict[str, Any]]]


def same_answers(ask: Ask, asked: list[Question], ours: Callable[[Question], Any], key: str) -> None:
    """Asks the oracle everything at once; a difference shows the question and both answers."""
    answers = ask(asked)
    assert len(answers) == len(asked) >= 2000
    differ = []
    for question, answer in zip(asked, answers, strict=True):
        mine = ours(question)
        if "error" in answer or theirs(answer, key) != mine:
            differ.append(f"asked: {json.dumps(question)}\noracle: {json.dumps(answer)}\nours: {mine!r}")
    assert not differ, f"{len(differ)} of {len(asked)} differ:\n" + "\n\n".join(sorted(differ, key=len)[:5])


def theirs(answer: dict[str, Any], key: str) -> Any:
    return in_order(answer[key]) if key == "set" else answer[key]


def in_order(tree: Tree) -> list[tuple[str, Any]]:
    """A fieldsV1 object with its order, its steps as JSON has them (the server escapes, and writes 1e-7)."""
    return [(step if step == "." else canonical_step(step), in_order(below)) for step, below in tree.items()]


def read(tree: Tree) -> FieldSet:
    return FieldSet.from_fields_v1(tree)


def written(made: FieldSet) -> list[tuple[str, Any]]:
    return in_order(made.to_fields_v1())


PAIRS: dict[str, Callable[[FieldSet, FieldSet], FieldSet]] = {
    "union": lambda a, b: a | b,
    "intersection": lambda a, b: a & b,
    "difference": lambda a, b: a - b,
    "recursive_difference": lambda a, b: a.recursive_difference(b),
}


@pytest.mark.parametrize("op", PAIRS)
def test_operations_on_two_sets_are_the_servers(ask: Ask, op: str) -> None:
    make = Generator(SEED + len(op))
    asked = [{"op": op, "a": a, "b": b} for a, b in (make.pair() for _ in range(COUNT))]
    same_answers(ask, asked, lambda q: written(PAIRS[op](read(q["a"]), read(q["b"]))), "set")


def test_sets_are_equal_when_the_servers_are(ask: Ask) -> None:
    make = Generator(SEED)
    asked = [
        {"op": "equals", "a": a, "b": a if make.chance.random() < 0.3 else b}
        for a, b in (make.pair() for _ in range(COUNT))
    ]
    same_answers(ask, asked, lambda q: read(q["a"]) == read(q["b"]), "bool")


def test_leaves_are_the_servers(ask: Ask) -> None:
    make = Generator(SEED + 1)
    asked = [{"op": "leaves", "a": make.tree()} for _ in range(COUNT)]
    same_answers(ask, asked, lambda q: written(read(q["a"]).leaves()), "set")


def test_a_set_is_read_and_written_as_by_the_server(ask: Ask) -> None:
    make = Generator(SEED + 2)
    asked = [{"op": "roundtrip", "a": make.tree()} for _ in range(COUNT)]
    same_answers(ask, asked, lambda q: written(read(q["a"])), "set")


def test_a_step_in_two_spellings_is_read_as_by_the_server(ask: Ask) -> None:
    make = Generator(SEED + 3)

    def tree(depth: int) -> Tree:
        below = {step: tree(depth - 1) if depth else {} for step in (make.step() for _ in range(3))}
        for step in list(below):
            if step in OTHERWISE:
                below[make.chance.choice(OTHERWISE[step])] = tree(depth - 1) if depth else {}
        return {".": {}, **below} if make.chance.random() < 0.3 and depth < 2 else below

    asked = [{"op": "roundtrip", "a": tree(2)} for _ in range(COUNT)]
    same_answers(ask, asked, lambda q: written(read(q["a"])), "set")


def test_the_size_is_the_servers(ask: Ask) -> None:
    make = Generator(SEED + 4)
    asked = [{"op": "size", "a": make.tree()} for _ in range(COUNT)]
    same_answers(ask, asked, lambda q: len(read(q["a"])), "size")


def test_a_set_made_of_paths_is_the_servers(ask: Ask) -> None:
    make = Generator(SEED + 5)
    asked = [
        {"op": "from_paths", "paths": [make.path() for _ in range(make.chance.randint(0, 6))]} for _ in range(COUNT)
    ]
    same_answers(ask, asked, lambda q: written(FieldSet.from_paths(map(tuple, q["paths"]))), "set")


def some_path(make: Generator, tree: Tree) -> list[str]:
    """A path that is often in a set, or nearly."""
    path: list[str] = []
    while (steps := [step for step in tree if step != "."]) and make.chance.random() < 0.85:
        path.append(make.chance.choice(steps))
        tree = tree[path[-1]]
    return path if path and make.chance.random() < 0.8 else [*path, make.step()]


def test_a_set_has_the_paths_that_the_servers_has(ask: Ask) -> None:
    make = Generator(SEED + 6)
    asked = [{"op": "has", "a": tree, "path": some_path(make, tree)} for tree in (make.tree() for _ in range(COUNT))]
    said = [answer["bool"] for answer in ask(asked)]
    assert 500 < sum(said) < COUNT - 500
    same_answers(ask, asked, lambda q: tuple(map(canonical_step, q["path"])) in read(q["a"]), "bool")


def test_what_lies_below_a_prefix_is_the_servers(ask: Ask) -> None:
    make = Generator(SEED + 7)
    asked = [{"op": "below", "a": tree, "path": some_path(make, tree)} for tree in (make.tree() for _ in range(COUNT))]

    def below(question: Question) -> list[tuple[str, Any]]:
        prefix = tuple(map(canonical_step, question["path"]))
        made = read(question["a"])
        rest = FieldSet.from_paths(path[len(prefix) :] for path in made if path.starts_with(prefix))
        assert made.has_prefix(prefix) == (bool(rest) or prefix in made)
        return written(rest)

    same_answers(ask, asked, below, "set")


def test_steps_are_sorted_as_by_the_server(ask: Ask) -> None:
    make = Generator(SEED + 8)
    asked = [
        {"op": "order", "path": list({canonical_step(step): step for step in make.chance.sample(STEPS, 12)}.values())}
        for _ in range(COUNT)
    ]
    answers = [{"path": [canonical_step(step) for step in answer["path"]]} for answer in ask(asked)]
    same_answers(lambda _: answers, asked, lambda q: sorted(map(canonical_step, q["path"]), key=step_order), "path")


SIMPLE = re.compile(r'f:[\w-]+|i:-?\d+|v:("\w*"|[-\w.]+)|k:\{("\w+":("\w*"|[-\w.]+),?)*\}', re.ASCII)


def simple(path: tuple[str, ...]) -> bool:
    """Whether the server's text of a path can mean nothing else: it quotes no names, and escapes as Go does."""
    return all(map(SIMPLE.fullmatch, path)) and "f:labels" not in path[:-2]


def test_paths_are_iterated_in_the_servers_order_and_text(ask: Ask) -> None:
    make = Generator(SEED + 9)
    asked = [{"op": "iterate", "a": make.tree()} for _ in range(COUNT)]
    texts = 0
    for question, answer in zip(asked, ask(asked), strict=True):
        ours = list(read(question["a"]))
        listed = [(tuple(map(canonical_step, path["steps"])), path["text"]) for path in answer["paths"]]
        assert [tuple(path) for path in ours] == [steps for steps, _ in listed], json.dumps(question)
        for path, (steps, text) in zip(ours, listed, strict=True):
            if simple(steps):
                texts += 1
                assert FieldPath.parse(text) == path, json.dumps(question)
                if "e+" not in text and "=-0" not in text:  # 1e+06 where people write 1000000
                    assert str(path) == text, json.dumps(question)
    assert texts >= 2000


def test_what_the_server_cannot_read_is_reported(ask: Ask) -> None:
    """The other way round does not hold: the server drops unknown kinds of steps in silence, and here they are reported."""
    faulty = [
        "k:[]",
        "k:1",
        "k:{",
        "v:{",
        "v:tru",
        "v:1e999",
        "i:",
        "i:x",
        "i:1.5",
        "i:1_0",
        "i: 1",
        "i:9223372036854775808",
        "f",
        "",
        "fa",
    ]
    answers = ask([{"op": "has", "a": {}, "path": [step]} for step in faulty])
    assert [list(answer) for answer in answers] == [["error"]] * len(faulty)
    for step in faulty:
        with pytest.raises(FieldsError):
            canonical_step(step)
