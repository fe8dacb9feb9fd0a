"""Follow a collection: list, then watch from there, for ever. What changes meanwhile is never missed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Protocol, TypeAlias

from webhook.cluster.api import Listing, Object, WatchEvent
from webhook.cluster.errors import ApiError, Gone

WATCH = 240.0
"""Seconds that one watch lasts, up to a quarter more, so that many followers do not come back together."""

SHORT = 1.0
"""Seconds. Something cuts off a watch that ends within, without news: it would be asked for again without end."""

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 3.0
"""Seconds before asking again after a fault; doubled at each, and up to half as long again."""


@dataclass(frozen=True, slots=True)
class Listed:
    """This is all there is; what was known before and is not here is gone."""

    items: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """An object is new, or is now so."""

    item: Object


@dataclass(frozen=True, slots=True)
class Removed:
    """An object is no more; as it was last."""

    item: Object


@dataclass(frozen=True, slots=True)
class Reached:
    """The API server has said something, if only that nothing changed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """It could not be asked, and will be again. What is known stays the best there is."""

    why: str


News: TypeAlias = Listed | Changed | Removed | Reached | Lost


class Source(Protocol):
    """What following needs of an Api."""

    def list(self, path: str) -> Listing: ...
    def watch(self, path: str, resource_version: str, timeout: float) -> Iterator[WatchEvent]: ...


Random: TypeAlias = Callable[[], float]
"""From 0 to 1."""


def follow(
    api: Source, path: str, on_event: Callable[[News], None], stop: Event, *, chance: Random = random.random
) -> None:
    """Tell `on_event` all that is in a collection and all that happens to it, until `stop` is set.

    It may take until the end of the running watch to notice `stop`. Only what `on_event` raises is raised.
    """
    _Follower(api, path, on_event, stop, chance).run()


class _Follower:
    def __init__(self, api: Source, path: str, tell: Callable[[News], None], stop: Event, chance: Random) -> None:
        self._api, self._path, self._tell, self._stop, self._chance = api, path, tell, stop, chance
        self._version = ""  # "" : nothing is known, or it is too old to go on from
        self._pause = 0.0

    def run(self) -> None:
        while not self._stop.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except Gone:
                # At once, but no faster than a server that calls its own list too old could bear.
                self._version = ""
                self._wait()
            except ApiError as error:
                self._tell(Lost(str(error)))
                self._wait()

    def _list(self) -> None:
        listing = self._api.list(self._path)
        self._tell(Listed(listing.items))
        self._version = listing.resource_version

    def _watch(self) -> None:
        events = self._api.watch(self._path, self._version, WATCH * (1 + self._chance() / 4))
        self._tell(Reached())
        quiet, began = True, monotonic()
        for event in events:
            if self._stop.is_set():
                return
            quiet, self._pause = False, 0.0
            match event.type:
                case "BOOKMARK":
                    self._tell(Reached())
                case "DELETED":
                    self._tell(Removed(event.object))
                case _:
                    self._tell(Changed(event.object))
            self._version = event.resource_version or self._version
        self._tell(Reached())
        if quiet and monotonic() - began < SHORT:
            self._wait()

    def _wait(self) -> None:
        self._stop.wait(self._pause * (1 + self._chance() / 2))
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
