"""One step of a field path, as fieldsV1 spells it: `f:` a field, `k:` an item by its keys, `v:` a set member, `i:` an index.

A step stays a string: the canonical one, in which JSON is compact, its keys are sorted and whole numbers have no
fraction, so that steps are equal exactly when the API server finds them equal (it compares keys as JSON, not as text).
The order is structured-merge-diff's: fields, keys, values, indices.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, TypeAlias

from webhook.fields.errors import FieldsError, TooDeep

Order: TypeAlias = tuple[Any, ...]

_FIELD, _KEY, _VALUE, _INDEX = "f:", "k:", "v:", "i:"
_WHOLE_NUMBER = re.compile(r"[+-]?0*[0-9]{1,19}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_EXACT = 1 << 53
"""Up to here every whole number is a number of its own for the server, which reads numbers as 64-bit floats."""

_SHORT = 256
"""Characters. A longer step is worked out anew each time: the caches must not keep what any client cares to write."""


def field_step(name: str) -> str:
    return _FIELD + name


def key_step(keys: dict[str, Any]) -> str:
    """The step to the item with these keys.

    >>> key_step({"protocol": "TCP", "port": 80})
    'k:{"port":80,"protocol":"TCP"}'
    """
    return _KEY + _dump(keys)


def value_step(value: Any) -> str:
    return _VALUE + _dump(value)


def index_step(index: int) -> str:
    return f"{_INDEX}{index}"


def canonical_step(text: str) -> str:
    """The canonical spelling of a fieldsV1 key; raises FieldsError for what is none.

    >>> canonical_step('k:{"b": 1.0, "a": "x"}')
    'k:{"a":"x","b":1}'
    """
    return _known_spelling(text) if len(text) <= _SHORT else _canonical_step(text)


def _canonical_step(text: str) -> str:
    kind, rest = text[:2], text[2:]
    if kind == _FIELD:
        return text
    if kind == _KEY:
        keys = _load(text, rest)
        if not isinstance(keys, dict):
            raise FieldsError('a key step holds a JSON object, such as k:{"name":"app"}', text, 2)
        return key_step(keys)
    if kind == _VALUE:
        return value_step(_load(text, rest))
    if kind == _INDEX:
        if _WHOLE_NUMBER.fullmatch(rest) is None or not -(1 << 63) <= int(rest) < 1 << 63:
            raise FieldsError("an index step holds a whole number, such as i:0", text, 2)
        return index_step(int(rest))
    raise FieldsError("unknown kind of step: f:, k:, v: and i: are known", text, 0)


_known_spelling = lru_cache(maxsize=1 << 15)(_canonical_step)


def step_value(step: str) -> Any:
    """What a canonical step says: a field's name, an item's keys (dict), a set member, an index (int). To be read only."""
    if step[:2] == _FIELD:
        return step[2:]
    return _known_value(step) if len(step) <= _SHORT else json.loads(step[2:])


@lru_cache(maxsize=1 << 15)
def _known_value(step: str) -> Any:
    return json.loads(step[2:])


def step_order(step: str) -> Order:
    """A sort key in the server's order of steps."""
    return _known_order(step) if len(step) <= _SHORT else _step_order(step)


def _step_order(step: str) -> Order:
    kind, value = step[:2], step_value(step)
    if kind == _FIELD:
        return (0, value)
    if kind == _KEY:
        return (1, tuple((name, _value_order(value[name])) for name in sorted(value)))
    if kind == _VALUE:
        return (2, _value_order(value))
    return (3, value)


_known_order = lru_cache(maxsize=1 << 15)(_step_order)


def _value_order(value: Any) -> Order:
    """structured-merge-diff's order of values: numbers, strings, booleans, lists, maps, null."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (3, tuple(_value_order(item) for item in value))
    if isinstance(value, dict):
        return (4, tuple((name, _value_order(value[name])) for name in sorted(value)))
    return (5,)


def _load(text: str, rest: str) -> Any:
    try:
        return json.loads(rest, parse_constant=_no_constant)
    except RecursionError:
        raise TooDeep("a step's JSON is nested too deeply") from None
    except ValueError as error:
        raise FieldsError(f"a step's JSON cannot be read: {error}", text, 2 + getattr(error, "pos", 0)) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _dump(value: Any) -> str:
    try:
        text = json.dumps(normal(value), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    except RecursionError:
        raise TooDeep("a step's JSON is nested too deeply") from None
    # Half a character is no text that could be sent on; the server reads it as this too.
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def normal(value: Any) -> Any:
    """A JSON value in which numbers that the server finds equal are one: 1.0 is 1, 2**53 + 1 is 2**53.

    Raises FieldsError for a number that no 64-bit float holds.
    """
    if value.__class__ is str or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, dict):
        return {name: normal(item) for name, item in value.items()}
    return value


def _number(value: float) -> float:
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return value
    try:
        number = float(value)
        return int(number) if number.is_integer() else _finite(number)
    except OverflowError:
        raise FieldsError("a step's JSON holds a number that is out of range") from None


def _finite(number: float) -> float:
    if number != number or number in (float("inf"), float("-inf")):
        raise OverflowError
    return number
