"""Following a collection, against a server of which each answer is scripted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from webhook.cluster import ApiError, Denied, Gone, Listing, Missing, Unreachable, WatchEvent
from webhook.cluster.informer import LONGEST_PAUSE, Changed, Listed, Lost, News, Reached, Removed, follow


def item(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def bookmark(version: int) -> WatchEvent:
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


class Ended(Event):
    """Set when the script is over; remembers how long it was waited on."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0.0)
        return self.is_set()


@dataclass
class Scripted:
    """Answers in order: a Listing to a list, events (of which one may be an error) to a watch, or an error to either."""

    script: list[Any]
    ended: Ended = field(default_factory=Ended)
    asked: list[str] = field(default_factory=list)

    def list(self, path: str) -> Listing:
        self.asked.append("list")
        answer = self._next()
        assert isinstance(answer, Listing)
        return answer

    def watch(self, path: str, resource_version: str, timeout: float) -> Iterator[WatchEvent]:
        self.asked.append(f"watch {resource_version}")
        assert 240 <= timeout <= 300
        return self._events(self._next())

    def _events(self, events: list[WatchEvent | ApiError]) -> Iterator[WatchEvent]:
        for event in events:
            if isinstance(event, ApiError):
                raise event
            yield event

    def _next(self) -> Any:
        answer = self.script.pop(0)
        if not self.script:
            self.ended.set()
        if isinstance(answer, ApiError):
            raise answer
        return answer


def told(*script: Any, chance: float = 0.0) -> tuple[list[News], Scripted]:
    """What is told of a script, and what was asked. The last answer is not followed by another question."""
    server, news = Scripted(list(script)), []
    follow(server, "/api/v1/namespaces", news.append, server.ended, chance=lambda: chance)
    return news, server


EMPTY = Listing((), "7")


def test_what_is_there_is_told_and_then_what_happens() -> None:
    one, two = item("a", 5), item("b", 8)
    news, server = told(
        Listing((one,), "7"),
        [WatchEvent("ADDED", two), WatchEvent("MODIFIED", two), WatchEvent("DELETED", one)],
        [],
    )
    assert news[:2] == [Listed((one,)), Reached()]
    assert news[2:5] == [Changed(two), Changed(two), Removed(one)]
    assert server.asked[:2] == ["list", "watch 7"]


def test_a_watch_goes_on_from_the_last_bookmark() -> None:
    news, server = told(EMPTY, [WatchEvent("ADDED", item("a", 8)), bookmark(99)], [bookmark(120)], [])
    assert server.asked == ["list", "watch 7", "watch 99", "watch 120"]
    assert news.count(Reached()) >= 3, "a bookmark is a sign of life"


def test_a_watch_that_is_too_old_lists_again() -> None:
    news, server = told(EMPTY, Gone("too old", 410), Listing((item("a", 9),), "9"), [])
    assert server.asked == ["list", "watch 7", "list", "watch 9"]
    assert news[-3:-1] == [Listed((item("a", 9),)), Reached()]
    assert not any(isinstance(one, Lost) for one in news), "410 is how a server says it in good health"


def test_a_watch_that_becomes_too_old_lists_again() -> None:
    _, server = told(EMPTY, [bookmark(8), Gone("too old", 410)], Listing((), "50"), [])
    assert server.asked == ["list", "watch 7", "list", "watch 50"]


@pytest.mark.parametrize("error", [Unreachable("refused"), Denied("may not", 403), Missing("no such kind", 404)])
def test_after_any_other_fault_it_goes_on_where_it_was(error: ApiError) -> None:
    news, server = told(error, EMPTY, error, [bookmark(9), error], [])
    assert server.asked == ["list", "list", "watch 7", "watch 7", "watch 9"]
    assert news.count(Lost(str(error))) == 3


def test_a_server_that_stays_away_is_asked_more_and_more_seldom() -> None:
    away = [Unreachable("refused")] * 12
    _, server = told(*away, EMPTY, [bookmark(8)])
    assert server.ended.pauses[0] == 0, "the first time at once"
    assert server.ended.pauses[1:4] == [0.2, 0.4, 0.8]
    assert server.ended.pauses[11] == LONGEST_PAUSE
    _, server = told(*away, EMPTY, [bookmark(8)], chance=1.0)
    assert server.ended.pauses[1:4] == pytest.approx([0.3, 0.6, 1.2]), "not all of those who follow at one moment"


def test_once_there_is_news_the_next_fault_is_a_first_one_again() -> None:
    _, server = told(*[Unreachable("refused")] * 3, EMPTY, [bookmark(8), Unreachable("cut")], [bookmark(9)])
    assert server.ended.pauses == [0, 0.2, 0.4, 0]


def test_watches_that_end_at_once_do_not_spin() -> None:
    _, server = told(EMPTY, *[[]] * 5)
    assert server.ended.pauses == [0, 0.2, 0.4, 0.8, 1.6]


def test_watches_in_which_nothing_happens_follow_one_another_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.cluster.informer.monotonic", itertools.count(0, 100).__next__)
    _, server = told(EMPTY, *[[]] * 5)
    assert server.ended.pauses == []


def test_a_list_that_is_too_old_by_itself_does_not_spin() -> None:
    _, server = told(*[Gone("expired", 410)] * 4, EMPTY, [bookmark(8)])
    assert server.ended.pauses == [0, 0.2, 0.4, 0.8]


def test_nothing_is_told_after_the_end() -> None:
    server, news = Scripted([EMPTY, [WatchEvent("ADDED", item("a", 8)), WatchEvent("ADDED", item("b", 9))]]), []

    def tell(one: News) -> None:
        news.append(one)
        if isinstance(one, Changed):
            server.ended.set()

    server.script.append([])
    follow(server, "/api/v1/namespaces", tell, server.ended)
    assert news == [Listed(()), Reached(), Changed(item("a", 8))]


def test_a_fault_of_the_one_who_is_told_is_not_hidden() -> None:
    def tell(_: News) -> None:
        raise KeyError("name")

    with pytest.raises(KeyError):
        follow(Scripted([EMPTY, []]), "/api/v1/namespaces", tell, Ended())
