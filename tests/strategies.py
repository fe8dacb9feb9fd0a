"""Hypothesis strategies for steps, paths, sets, fieldsV1 texts and objects.

Names come from a small pool first, so that two sets that are drawn apart have paths in common.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from webhook.fields import FieldPath, FieldSet
from webhook.fields.steps import field_step, index_step, key_step, value_step

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)  # half characters (surrogates) too
TEXT = st.text(max_size=5)
NAMES = st.sampled_from(["a", "b", "c", "metadata", "labels", "annotations"]) | st.sampled_from(
    ["", ".", "*", "a.b/c", "[", "]", '"', "\\", "=", "k:{}", "é", "\u2028", "\U0001f600", "0", "-1", " "]
)
NUMBERS = (
    st.sampled_from([0, 1, 1.0, -1, 1.5, 80, 1e21, 1e-7, 2**53, 2**53 + 1])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
SCALARS = st.sampled_from(["1", "a", "", "x*", True, False, None, 1]) | NUMBERS | TEXT
JSON = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3), max_leaves=6
)

_KEYS = st.dictionaries(NAMES | TEXT, SCALARS, max_size=3)
COMMON_STEPS = st.sampled_from(
    ["f:a", "f:b", "f:c", "f:metadata", "f:labels", 'k:{"a":1}', 'k:{"a":1,"b":"x"}', "v:1", 'v:"1"', "i:0"]
)


def steps(names: st.SearchStrategy[str] = NAMES | TEXT) -> st.SearchStrategy[str]:
    """Canonical steps of all four kinds."""
    return (
        COMMON_STEPS
        | names.map(field_step)
        | _KEYS.map(key_step)
        | (SCALARS | JSON).map(value_step)
        | st.integers(-(2**63), 2**63 - 1).map(index_step)
    )


STEPS = steps()
PATHS = st.lists(STEPS, min_size=1, max_size=5).map(FieldPath)
COMMON_PATHS = st.lists(COMMON_STEPS, min_size=1, max_size=4).map(FieldPath)
SETS = st.lists(COMMON_PATHS | PATHS, max_size=8).map(FieldSet.from_paths)
SOME_SETS = st.lists(COMMON_PATHS | PATHS, min_size=1, max_size=8).map(FieldSet.from_paths)


def spelt(step: str, draw: st.DrawFn) -> str:
    """Another spelling of a canonical step, which the server finds equal."""
    kind, rest = step[:2], step[2:]
    if kind == "f:" or not draw(st.booleans()):
        return step
    if kind == "i:":
        sign = "" if rest.startswith("-") else draw(st.sampled_from(["", "+", "00"]))
        return kind + sign + rest
    value = json.loads(rest)
    if isinstance(value, dict):
        value = dict(draw(st.permutations(list(value.items()))))
    spaced = draw(st.sampled_from([(", ", ": "), (",", ":"), (" ,  ", " : ")]))
    return (
        kind
        + json.dumps(_floats(value), separators=spaced, ensure_ascii=draw(st.booleans()))
        + draw(st.sampled_from(["", " ", "\n"]))
    )


def _floats(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [_floats(item) for item in value]
    if isinstance(value, dict):
        return {name: _floats(item) for name, item in value.items()}
    return value


@st.composite
def spellings(draw: st.DrawFn, of: FieldSet) -> dict[str, Any]:
    """fieldsV1 of a set, as a client might write it: any order, other spellings, `.` in leaves and full of junk."""

    def write(node: dict[str, Any]) -> dict[str, Any]:
        if not node:
            return draw(st.sampled_from([{}, {}, {".": {}}]))
        out: dict[str, Any] = {}
        for step in draw(st.permutations(list(node))):
            if step == ".":
                out["."] = draw(st.sampled_from([{}, {}, {"f:junk": {}}]))
            else:
                out[spelt(step, draw)] = write(node[step])
        return out

    tree = write(of.to_fields_v1()) if of else {}
    return {**tree, ".": {}} if draw(st.booleans()) else tree


@st.composite
def spelt_sets(draw: st.DrawFn) -> tuple[FieldSet, dict[str, Any]]:
    """A set, and some fieldsV1 that means it."""
    chosen = draw(SETS)
    return chosen, draw(spellings(chosen))


# Objects: two versions of one, with lists that the claims know as keyed, as sets, and as atomic.

PLAIN = st.sampled_from([0, 1, True, False, None, "a", "b", "", 1.5])
_FIELDS = st.sampled_from(["a", "b", "c"])
_KEYED = st.fixed_dictionaries({"name": st.sampled_from(["x", "y", "z"]), "port": st.sampled_from([1, 2])})
_UNKEYED = st.just(
    {}
)  # rare, and makes the list one value; an item with some of its keys is told from others by its list alone
ITEMS = st.lists(
    st.builds(
        lambda keys, rest: {**keys, **rest},
        st.sampled_from([True] * 15 + [False]).flatmap(lambda keyed: _KEYED if keyed else _UNKEYED),
        st.dictionaries(_FIELDS, PLAIN, max_size=2),
    ),
    max_size=4,
)
MEMBERS = st.lists(st.sampled_from(["x", "y", 1, 2, True]), max_size=4)
ATOMIC = st.lists(PLAIN, max_size=3)
TREES = st.recursive(
    PLAIN, lambda below: st.dictionaries(_FIELDS, below, max_size=3) | st.lists(PLAIN, max_size=3), max_leaves=8
)
OBJECTS = st.fixed_dictionaries(
    {"apiVersion": st.sampled_from(["v1", "example.com/v1"])},
    optional={
        "spec": st.fixed_dictionaries(
            {}, optional={"items": ITEMS, "members": MEMBERS, "atomic": ATOMIC, "tree": TREES}
        ),
        "data": TREES,
    },
)
CLAIMED = {
    "f:spec": {
        "f:items": {'k:{"name":"x","port":1}': {".": {}, "f:a": {}}},
        "f:members": {'v:"x"': {}},
        "f:atomic": {},
    }
}
"""What shows which lists of OBJECTS have keys."""
