"""One of several controllers acts: the one whose name stands in a Lease, and who renews it.

    leader = Leader(api, "/apis/coordination.k8s.io/v1/namespaces/fieldwarden/leases/fieldwarden", "pod-1")
    leader.turn(); leader.leads                # False until the Lease is ours

As in Kubernetes' own controllers, a Lease has ended when it was not renewed for its duration by the clock of whoever
looks, so that clocks need not agree; and who cannot renew it stops acting before others may begin.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from time import monotonic
from typing import Any

from webhook.cluster.api import Api, Object
from webhook.cluster.errors import ApiError

DURATION = 15
"""Seconds after its last renewal from which others may take a Lease."""

DEADLINE = 10.0
"""Seconds after our last renewal from which we no longer act."""

RETRY = 2.0
"""Seconds between two turns."""


class Leader:
    """One candidate. `turn` is for one thread; `leads` may be asked from any."""

    def __init__(self, api: Api, path: str, name: str, clock: Callable[[], float] = monotonic) -> None:
        self.why = "the Lease has not been read yet"  # why we do not lead; empty while we do
        self._api, self._path, self._name, self._clock = api, path, name, clock
        self._renewed: float | None = None
        self._seen: tuple[object, float] | None = None  # another's record, and since when it stands so

    @property
    def leads(self) -> bool:
        renewed = self._renewed
        return renewed is not None and self._clock() - renewed < DEADLINE

    def turn(self) -> None:
        """Take the Lease if it is free, renew it if it is ours. Never raises for what the API server says."""
        began = self._clock()
        try:
            lease = self._api.get(self._path)
            if not self._may_take(lease, began):
                return
            self._api.replace(self._path, self._taken(lease))
        except ApiError as error:
            if not self.leads:
                self._renewed, self.why = None, str(error)
            return
        self._renewed, self._seen, self.why = began, None, ""

    def release(self) -> None:
        """Let another begin at once. What cannot be said is found out by time."""
        if not self.leads:
            return
        self._renewed, self.why = None, "released"
        try:
            lease = self._api.get(self._path)
            spec = lease.get("spec") or {}
            if spec.get("holderIdentity") == self._name:
                self._api.replace(self._path, {**lease, "spec": {**spec, "holderIdentity": "", "renewTime": _now()}})
        except ApiError:
            return

    def _may_take(self, lease: Object, now: float) -> bool:
        spec: dict[str, Any] = lease.get("spec") or {}
        holder = spec.get("holderIdentity")
        if not holder or holder == self._name:
            return True
        record = (holder, spec.get("renewTime"), spec.get("leaseTransitions"))
        if self._seen is None or self._seen[0] != record:
            self._seen = (record, now)
        self._renewed, self.why = None, f"{holder} leads"
        return now - self._seen[1] >= (spec.get("leaseDurationSeconds") or DURATION)

    def _taken(self, lease: Object) -> Object:
        spec: dict[str, Any] = dict(lease.get("spec") or {})
        now = _now()
        if spec.get("holderIdentity") != self._name:
            spec["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = now
        spec |= {"holderIdentity": self._name, "leaseDurationSeconds": DURATION, "renewTime": now}
        return {**lease, "spec": spec}


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
