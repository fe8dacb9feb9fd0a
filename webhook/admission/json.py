"""JSON behind one function: the fast library, and the standard one for what nests deeper than that reads."""

from __future__ import annotations

import json
from typing import Any

import orjson


class JsonError(ValueError):
    """Bytes that are not JSON; the text says where, and never what stands there."""


def loads(body: bytes) -> Any:
    """Any JSON value. orjson stops at 1024 levels; a custom resource may nest deeper, and must not pass unseen."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        fault = f"{error.msg} at byte {error.pos}"
    try:
        return json.loads(body, parse_constant=_no_constant)
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except ValueError:
        raise JsonError(fault) from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def dumps(value: Any) -> bytes:
    """Compact JSON bytes, also of what nests deeper than orjson writes, and of numbers that it does not."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
