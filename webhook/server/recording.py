"""What a worker does with results: into the journal, before the answer leaves where that takes no time to speak of."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import orjson

from webhook.report.sightings import pack
from webhook.server.inbox import Sender
from webhook.server.state import ResultLike
from webhook.server.users import Shown, as_it_is


class Recorder:
    """One worker's. Without a sender nothing is recorded."""

    def __init__(self, sender: Sender | None = None, shown: Shown = as_it_is) -> None:
        self._sender, self._shown = sender, shown

    def record(self, results: Sequence[ResultLike]) -> None:
        """Of one review. Returns within milliseconds, whatever state the disk is in, and never raises."""
        if self._sender is None or not results:
            return
        try:
            user = None if self._shown is as_it_is else self._shown(results[0].user)
            self._sender.send(pack(results, time.time_ns() // 1000, user, _dumps), len(results))
        except Exception:
            self._sender.lose(len(results))


def _dumps(told: Any) -> bytes:
    try:
        return orjson.dumps(told)
    except TypeError:  # a lone surrogate in a name
        return json.dumps(told).encode()
