"""Records: what was found, folded. What the journal keeps, what reports are made of, and what is read back from them.

record = Record(policy="flux", rule="labels", event="change", ..., count=3, first=monday, last=friday)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Record:
    """What one writer did to one object, as often as it did so, as one rule saw it. Names and paths, never values.

    Everything down to `would` is the key by which repeats are folded; the rest is of all of them, or of the last.
    """

    policy: str
    rule: str
    event: str  # change, share, ghost, writer, impersonation, tamper, rename
    resource: str  # deployments.apps/status
    namespace: str  # "" for a cluster-scoped object
    name: str
    manager: str  # "" where nothing tells
    operation: str  # Apply, Update; "" where nothing tells
    user: str
    dry_run: bool
    outcome: str  # refused, rewritten, recorded
    would: str  # what Enforce would do, or did: deny, restore, reassign, release, prune, rename; record where nothing
    mode: str  # the policy's, capped by the server's
    owner: str  # whose claim it was about; "" for none
    paths: tuple[str, ...]  # of all repeats, sorted, at most MAX_PATHS of them
    count: int
    first: dt.datetime  # UTC
    last: dt.datetime
    days: Mapping[str, int] = field(default_factory=dict)  # how often by day, such as 2026-11-21, in UTC


MAX_PATHS = 100
