"""Which JSON library reads a review fastest: the measurement behind docs/adr/0002."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.material import interleaved, review

CANDIDATES = {"json": "loads", "orjson": "loads", "msgspec.json": "decode", "ujson": "loads", "rapidjson": "loads"}


def run() -> None:
    """Prints a line for each library that is installed; only orjson and the standard one are dependencies."""
    found: dict[str, Callable[[bytes], Any]] = {}
    for module, function in CANDIDATES.items():
        try:
            found[module] = getattr(importlib.import_module(module), function)
        except ImportError:
            continue
    for name in ("cap-eviction", "large-flux-apply"):
        body = json.dumps(json.loads(review(name)), separators=(",", ":")).encode()
        figures = interleaved({module: partial(partial, load, body) for module, load in found.items()}, 1000)
        told = ", ".join(
            f"{module} {taken:.0f} µs" for module, taken in sorted(figures.items(), key=lambda item: item[1])
        )
        print(f"Reading {name} ({len(body) // 1000} KB): {told}")
