"""The mirror: a process that follows the cluster's policies and namespaces, and keeps a folder as they are.

While the API server cannot be asked, what was read last stays: nobody who judges notices.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from webhook.cluster.access import Unconfigured
from webhook.cluster.api import Api, Object
from webhook.cluster.informer import Changed, Listed, Lost, News, Reached, Removed, follow
from webhook.cluster.mirrored import Mirrored, MirrorState
from webhook.cluster.resource import NAMESPACES, POLICIES, name_of, text_of
from webhook.cluster.settling import LeftOut, Settling, Together

T = TypeVar("T")
What: TypeAlias = Literal["policies", "namespaces"]
PATHS: dict[What, str] = {"policies": POLICIES, "namespaces": NAMESPACES}

TICK = 0.5
"""Seconds between two looks at whether the files, or those who started this, have changed."""

REST, LONGEST_UNREST = 0.1, 1.0
"""Seconds without news, and with it, after which what has come is written."""


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """What a mirror is told when it is started.

    It keeps `folder`, and drafts in `scratch`. `files` are the policies that come before the cluster's, and `version` tells when they change. `report` is told how
    it goes, and `alive` says whether anybody still wants to know.
    """

    folder: Path
    scratch: Path
    kubeconfig: Path | None
    files: Sequence[Path]
    version: Callable[[], object]
    strict: bool
    report: Callable[[MirrorState], None]
    alive: Callable[[], bool]
    log: Any


class Mirror:
    """What is known of the cluster, and what of it is written down. Knows no clock and no network."""

    def __init__(self, mirrored: Mirrored, settling: Settling, log: Any) -> None:
        self.state = MirrorState(read=mirrored.is_read)
        self._mirrored, self._settling, self._log = mirrored, settling, log
        self._policies: dict[str, Object] | None = None  # None until they have been read
        self._namespaces: dict[str, dict[str, str]] | None = None
        self._unwritten: set[What] = {"policies", "namespaces"}
        self._lost: dict[What, str] = dict.fromkeys(PATHS, self.state.failure)
        self._contacts: dict[What, float] = dict.fromkeys(PATHS, 0.0)
        self._left_out: tuple[LeftOut, ...] = ()

    def take(self, what: What, news: News, now: float) -> None:
        """Learn something. `now` is seconds since the epoch."""
        if isinstance(news, Lost):
            if not self._lost[what]:
                self._log.warning("the API server cannot be followed", what=what, why=news.why)
            self._lost[what] = news.why
            return
        if self._lost[what] and self._contacts[what]:
            self._log.info("the API server is followed again", what=what)
        self._lost[what], self._contacts[what] = "", now
        if isinstance(news, Reached):
            return
        if what == "policies":
            self._take_policy(news)
        else:
            self._take_namespace(news)

    def forget_files(self) -> None:
        """The files have changed: what may be in force beside them is to be settled anew."""
        self._unwritten.add("policies")

    def write(self) -> None:
        """Write what has changed, once all has been read. Raises OSError; what was written before then stays."""
        if self._namespaces is not None and "namespaces" in self._unwritten:
            self._mirrored.write_namespaces(self._namespaces)
            self._unwritten.discard("namespaces")
        if self._policies is not None and self._namespaces is not None and "policies" in self._unwritten:
            self._write_policies(list(self._policies.values()))
            self._unwritten.discard("policies")
        lost = "; ".join(dict.fromkeys(why for why in self._lost.values() if why))
        self.state = replace(
            self.state,
            failure=lost,
            read=self._mirrored.is_read,
            contact=min(self._contacts.values()),
            namespaces=len(self._namespaces or ()),
            left_out=tuple(map(str, self._left_out)),
        )

    def _write_policies(self, resources: list[Object]) -> None:
        good = self._mirrored.texts()
        settled = self._settling.settle(resources, good)
        if settled.texts != good or not self._mirrored.is_read:
            self._mirrored.write_policies(settled.texts)
            self._log.info("policies read from the cluster", policies=len(settled.texts))
        for one in settled.left_out:
            if one not in self._left_out:
                self._log.error(
                    "a policy is left out", policy=one.name, problems=one.problems[:20], earlier_in_force=one.earlier
                )
        self._left_out = settled.left_out
        self.state = replace(self.state, policies=len(settled.texts))

    def _take_policy(self, news: Listed | Changed | Removed) -> None:
        known = self._policies or {}
        changed = known_after(known, news, lambda item: item)
        if self._policies is None or differ(known, changed):
            self._unwritten.add("policies")
        self._policies = changed

    def _take_namespace(self, news: Listed | Changed | Removed) -> None:
        known = self._namespaces or {}
        changed = known_after(known, news, _labels)
        if self._namespaces is None or known != changed:
            self._unwritten.add("namespaces")
        self._namespaces = changed


def known_after(known: dict[str, T], news: Listed | Changed | Removed, of: Callable[[Object], T]) -> dict[str, T]:
    """What is known by name once news has come. `of` says what is kept of an object."""
    match news:
        case Listed(items):
            return {name_of(item): of(item) for item in items}
        case Changed(item):
            return {**known, name_of(item): of(item)}
        case Removed(item):
            return {name: other for name, other in known.items() if name != name_of(item)}


def differ(known: dict[str, Object], changed: dict[str, Object]) -> bool:
    """Whether any policy is another one. A status, or a label, makes none."""
    return known.keys() != changed.keys() or any(
        text_of(item) != text_of(known[name]) for name, item in changed.items() if item is not known[name]
    )


def _labels(namespace: Object) -> dict[str, str]:
    return dict(namespace["metadata"].get("labels") or {})


Told: TypeAlias = "tuple[What, News] | BaseException"


def run(settings: MirrorSettings) -> None:
    """Keep the folder as the cluster is, until nobody wants to know, or nothing says where the cluster is."""
    settling = Settling(Together(settings.files, settings.scratch, settings.strict))
    mirror = Mirror(Mirrored(settings.folder), settling, settings.log)
    settings.report(mirror.state)
    try:
        api = Api.connect(settings.kubeconfig, agent="fieldwarden-mirror")
    except Unconfigured as error:
        settings.log.error("the cluster cannot be followed", why=str(error))
        settings.report(replace(mirror.state, failure=str(error)))
        return
    told: queue.SimpleQueue[Told] = queue.SimpleQueue()
    for what in PATHS:
        threading.Thread(target=_follow, args=(api, what, told), name=what, daemon=True).start()
    _keep(mirror, settings, told)


def _follow(api: Api, what: What, told: queue.SimpleQueue[Told]) -> None:
    try:
        follow(api, PATHS[what], lambda news: told.put((what, news)), threading.Event())
    except BaseException as error:
        told.put(error)


def _keep(mirror: Mirror, settings: MirrorSettings, told: queue.SimpleQueue[Told]) -> None:
    reported, version = mirror.state, settings.version()
    while settings.alive():
        for one in _together(told):
            if isinstance(one, BaseException):
                raise one
            mirror.take(*one, time.time())
        if (newest := settings.version()) != version:
            version = newest
            mirror.forget_files()
        try:
            mirror.write()
        except OSError as error:  # no room, for one: tried again at the next tick
            settings.log.error("what was read from the cluster cannot be written", why=error.strerror)
        if mirror.state != reported:
            reported = mirror.state
            settings.report(reported)


def _together(told: queue.SimpleQueue[Told]) -> list[Told]:
    """News that come close together; none after a tick."""
    found: list[Told] = []
    end = time.monotonic() + LONGEST_UNREST
    patience = TICK
    while time.monotonic() < end:
        try:
            found.append(told.get(timeout=patience))
        except queue.Empty:
            break
        patience = REST
    return found


def alive_with(parent: int) -> Callable[[], bool]:
    """Whether the process that started this one is still there."""
    return partial(_has_parent, parent)


def _has_parent(parent: int) -> bool:
    return os.getppid() == parent
