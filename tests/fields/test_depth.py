"""Whatever nests too deeply for the interpreter is either followed or refused with a FieldsError: nothing else, no crash."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from webhook.fields import Claim, FieldPath, FieldsError, FieldSet, ManagedFields, Pattern, compare, value_at
from webhook.fields.steps import canonical_step

LEVELS = 5_000
AT_ONCE = {"union", "difference", "moved", "compare maps", "read", "held"}
"""Questions whose time must not grow with the square of the depth: anybody may write a claim that is deep."""

IN_A_THREAD = """
import sys, threading
sys.setrecursionlimit({limit})
from tests.fields.test_depth import try_everything
failed = []
def run():
    try:
        print(try_everything({levels}))
    except BaseException as error:
        failed.append(error)
thread = threading.Thread(target=run)
thread.start()
thread.join()
if failed:
    raise failed[0]
"""


def nested(levels: int, step: str = "f:a", end: Any = None) -> Any:
    tree: Any = {} if end is None else end
    for _ in range(levels):
        tree = {step: tree}
    return tree


def wrapped(levels: int, end: Any) -> Any:
    value = end
    for _ in range(levels):
        value = [value]
    return value


def claims(tree: Any) -> ManagedFields:
    return ManagedFields.parse([{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": tree}])


def claim(tree: Any) -> Claim:
    return claims(tree).claims()[0]


def sets(levels: int) -> tuple[FieldSet, FieldSet]:
    """Two deep sets, equal but for what lies at the bottom; building them from paths needs no recursion."""
    path = FieldPath(("f:a",) * levels)
    return FieldSet.from_paths([path]), FieldSet.from_paths([path, (*path, "f:b")])


def questions(levels: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    one, other = sets(levels)
    path = FieldPath(("f:a",) * levels)
    tree, another = nested(levels), nested(levels, end={"f:b": {}})
    yield "read", lambda: FieldSet.from_fields_v1(tree)
    yield "read items", lambda: FieldSet.from_fields_v1(nested(levels, "v: 1"))
    yield "union", lambda: one | other
    yield "intersection", lambda: one & other
    yield "difference", lambda: other - one
    yield "recursive difference", lambda: other.recursive_difference(one)
    yield "leaves", other.leaves
    yield "pattern", lambda: Pattern.parse(".a" * levels).select(one)
    yield "glob", lambda: Pattern.parse(".*" * levels).touched(one)
    yield "claim", lambda: claim(tree).fields
    yield "held", lambda: claim(another).held_of(one)
    yield "values", lambda: claim(another).values_with(claim(tree), other)
    yield "moved", lambda: claim(another).moved_from(claim(tree))
    yield "parse", lambda: ManagedFields.parse(list(map(dict, [claim(tree).entry])), like=claims(nested(levels)))
    yield "holds", lambda: claim(tree).holds(path)
    yield "key", lambda: canonical_step('k:{"a":' + "[" * levels + "]" * levels + "}")
    yield "member", lambda: canonical_step("v:" + '{"a":' * levels + "1" + "}" * levels)
    yield "member's text", lambda: FieldPath.parse("[=" + "[" * levels + "]" * levels + "]")
    yield "order", lambda: sorted(FieldSet.from_paths([("v:" + "[" * n + "]" * n,) for n in (levels, levels - 1)]))
    yield "value", lambda: value_at(nested(levels, "a"), path)
    yield "value in a set", lambda: value_at([wrapped(levels, 1)], ("v:[[1]]",))
    for name, make in (("maps", lambda end: nested(levels, "a", end)), ("lists", lambda end: wrapped(levels, end))):
        yield f"compare {name}", lambda make=make: compare({"spec": make(1)}, {"spec": make(2)}, [claims(tree)])  # type: ignore[misc]
        yield f"compare equal {name}", lambda make=make: compare({"spec": make(1)}, {"spec": make(1)}, [claims(tree)])  # type: ignore[misc]
        yield f"compare new {name}", lambda make=make: compare({}, {"spec": make(1)}, [claims(tree)])  # type: ignore[misc]


def try_everything(levels: int) -> tuple[list[str], list[str]]:
    """The questions that were answered and those that were refused; another error than FieldsError is passed on."""
    done: list[str] = []
    refused: list[str] = []
    for name, ask in questions(levels):
        begin = time.thread_time()
        try:
            ask()
            done.append(name)
        except FieldsError as error:
            assert "too deeply" in error.message or "is expected" in error.message, error
            refused.append(name)
        if name in AT_ONCE:
            assert time.thread_time() - begin < 1, f"{name} takes long: does it look all the way down on every level?"
    return done, refused


@pytest.mark.parametrize("levels", [900, LEVELS])
def test_any_nesting_is_followed_or_refused(levels: int) -> None:
    done, refused = try_everything(levels)
    assert {"holds", "value"} <= set(done)
    assert levels == 900 or {"read", "compare maps", "compare lists"} <= set(refused)


def test_what_a_set_is_asked_without_making_another_works_at_any_depth() -> None:
    one, other = sets(LEVELS)
    path = FieldPath(("f:a",) * LEVELS)
    assert len(other) == 2 and list(other) == [path, (*path, "f:b")]
    assert path in one and one.has_prefix(path[:-1]) and one.is_leaf(path) and not other.is_leaf(path)
    assert one == FieldSet.from_paths([path]) and one != other
    assert hash(one) == hash(FieldSet.from_paths([path]))
    assert pickle.loads(pickle.dumps(other)) == other
    assert FieldSet.from_paths(other) == other
    assert other.to_fields_v1().keys() == {"f:a"}
    assert repr(one) == f"FieldSet({'.a' * LEVELS})"


def test_a_long_path_is_read_and_written() -> None:
    for text in (".a" * LEVELS, "[0]" * LEVELS, '[a=1,b="x"]' * LEVELS, '["."]' * LEVELS):
        path = FieldPath.parse(text)
        assert len(path) == LEVELS and str(path) == text
        assert Pattern.parse(text).touches(path)
    with suppress(FieldsError):
        Pattern.parse("[*]" * LEVELS).touches(("f:a",) * LEVELS)


@pytest.mark.parametrize("levels", [2_500, 5_500, 10_000])
def test_a_thread_with_a_raised_limit_does_not_crash(levels: int) -> None:
    """As in a server process, but on a stack of the default size: the C stack must not run out before the limit."""
    program = IN_A_THREAD.format(limit=12_000, levels=levels)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-2000:]}"
    print(done.stdout)
