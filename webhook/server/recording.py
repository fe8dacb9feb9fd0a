"""What a worker does with results: into the journal, before the answer leaves where that takes no time to speak of."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import orjson

from webhook.report.sightings import pack
from webhook.server.inbox import Sender, Sent
from webhook.server.state import ResultLike
from webhook.server.users import Shown, as_it_is


class Recorder:
    """One worker's. Never raises: what it cannot record is counted as lost."""

    def __init__(self, sender: Sender, shown: Shown = as_it_is) -> None:
        self._sender, self._shown = sender, shown

    def record(self, results: Sequence[ResultLike]) -> Sent | None:
        """What one review found. It is written while whatever else is to be done for the answer is done."""
        try:
            user = None if self._shown is as_it_is else self._shown(results[0].user)
            return self._sender.put(pack(results, time.time_ns() // 1000, user, _dumps), len(results))
        except Exception:
            self._sender.lose(len(results))
            return None

    def wait(self, sent: Sent | None) -> None:
        """Before the answer leaves. Takes milliseconds at most, whatever state the disk is in."""
        if sent:
            self._sender.wait(sent)


def _dumps(told: Any) -> bytes:
    try:
        return orjson.dumps(told)
    except TypeError:  # a lone surrogate in a name
        return json.dumps(told).encode()
