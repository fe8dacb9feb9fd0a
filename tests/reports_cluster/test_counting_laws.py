"""Whatever happens in between, in the end each report tells what the journals recorded, no more and no less."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reports_cluster.world import NAMESPACES, Crash, Object, World, seen_once
from webhook.cluster.errors import Denied, Missing, Unreachable
from webhook.cluster.report_objects import place

STEPS = (
    ("record",) * 6
    + ("publish",) * 6
    + ("start", "end", "delete", "coarsen", "forget", "resync", "hours", "late", "days", "days")
)
TROUBLES = ("",) * 12 + ("others",) * 4 + ("before", "after", "late", "kill", "done", "unserved", "forbidden")
DEEPEST = 3
SYNCED = dt.timedelta(hours=20)
"""So often at least a process that lives sees the cluster: else it is taken for gone."""


class Chance:
    """Lets everything happen to a world, also within a call of somebody's."""

    def __init__(self, world: World, data: st.DataObject, *, apart: bool) -> None:
        self.world, self.data, self.apart, self.depth = world, data, apart, 0
        self.recorded: Counter[str] = Counter()  # by day, ever
        self.steps: tuple[str, ...] = STEPS
        self.troubles: tuple[str, ...] = TROUBLES
        world.cluster.before = self.on_call

    def on_call(self, method: str, path: str, act: Callable[[], Object]) -> None:
        """Before a call is done: it may fail, be done and fail, come late, kill who asks; others may act first."""
        what = self.data.draw(st.sampled_from(self.troubles))
        if what == "others" and self.depth < DEEPEST:
            self.depth += 1
            try:
                self.happen()
            finally:
                self.depth -= 1
        if what == "before":
            raise Unreachable(path)
        if what == "after":
            act()
            raise Unreachable(path)
        if what == "late" and method != "GET":
            self.world.cluster.late.append(act)
            raise Unreachable(path)
        if what == "unserved":
            raise Missing(path, 404)
        if what == "forbidden":
            raise Denied(path, 403)
        if what == "kill":
            raise Crash
        if what == "done":
            act()
            raise Crash

    def happen(self) -> None:
        world, draw = self.world, self.data.draw
        what = draw(st.sampled_from(self.steps))
        pods = sorted(world.pods)
        number = draw(st.sampled_from(pods)) if pods else 0
        if what == "start" or not pods:
            world.start()
        elif what == "record":
            name, namespace = draw(st.integers(0, 5)), draw(st.sampled_from(NAMESPACES))
            dry_run = draw(st.integers(0, 9)) == 0
            self.recorded[f"{world.now:%Y-%m-%d}"] += not dry_run
            world.pods[number].journal.record(seen_once(name, namespace, world.now, dry_run=dry_run))
        elif what in ("publish", "resync"):
            hurried = draw(st.integers(0, 3)) == 0
            world.publish(number, whole=what == "resync", hurry=lambda: hurried)
        elif what == "coarsen":
            world.pods[number].journal.coarsen(draw(st.integers(1, 2)))
        elif what == "forget":
            world.pods[number].journal.forget()
        elif what == "late":
            world.cluster.deliver()
        elif what == "delete" and world.cluster.objects:
            world.delete(draw(st.sampled_from(sorted(world.cluster.objects))))
        elif self.depth == 0 and what == "end":
            world.end(number, arrive=not self.apart)
        elif self.depth == 0 and what in ("hours", "days"):
            for _ in range(4 if what == "days" else 1):
                self.wait(draw(st.integers(1, 19)) if what == "hours" else 19)

    def wait(self, hours: int) -> None:
        """Time goes by; unless processes may be cut off from the cluster, each sees it often enough.

        No write is on its way for hours: the API server gives up after a minute.
        """
        world = self.world
        world.cluster.deliver()
        world.now += dt.timedelta(hours=hours)
        if self.apart:
            return
        trouble, world.cluster.before = world.cluster.before, lambda method, path, act: None
        for number, pod in world.pods.items():
            if world.now - pod.synced > SYNCED:
                world.publish(number, whole=True)
        world.cluster.before = trouble


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_reports_tell_exactly_what_journals_recorded(data: st.DataObject) -> None:
    world = World(keep_days=3000)
    chance = Chance(world, data, apart=False)
    for _ in range(data.draw(st.integers(5, 40))):
        chance.happen()
    world.settle()
    assert world.cluster.counted() == world.expected


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_who_was_wrongly_taken_for_gone_doubles_nothing(data: st.DataObject) -> None:
    """By day: rows may have become coarser since. What it recorded on days after that is told in full."""
    world = World(keep_days=3000)
    chance = Chance(world, data, apart=True)
    for _ in range(data.draw(st.integers(5, 40))):
        chance.happen()
    world.settle()
    told: Counter[str] = Counter()
    for (_, day), count in world.cluster.counted().items():
        told[day] += count
    assert told <= chance.recorded
    for pod in world.pods.values():
        mine = world.cluster.counted(pod.journal.id)
        seals = world.cluster.sealed(pod.journal.id)
        later = {}
        for key, (_, record) in pod.journal.rows.items():
            # What is of several namespaces may have been told in any of them before.
            sealed = seals.get(record.namespace, "") if place(record) else max(seals.values(), default="")
            if not record.dry_run:
                later |= {(key, day): count for day, count in record.days.items() if day > sealed}
        assert mine == later


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_is_too_old_goes_from_every_count(data: st.DataObject) -> None:
    world = World(keep_days=3)
    chance = Chance(world, data, apart=False)
    for _ in range(data.draw(st.integers(5, 30))):
        chance.happen()
    chance.wait(19)
    world.start()
    world.settle()
    oldest = f"{world.now - dt.timedelta(days=3):%Y-%m-%d}"
    assert world.cluster.counted() == Counter({at: n for at, n in world.expected.items() if at[1] >= oldest})


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_where_nothing_goes_wrong_no_report_needs_to_be_looked_at_twice(data: st.DataObject) -> None:
    """What has changed in the journals is enough, once everybody has begun."""
    world = World(keep_days=3000)
    chance = Chance(world, data, apart=False)
    world.cluster.before = lambda method, path, act: None
    chance.steps = ("record",) * 8 + ("publish",) * 4 + ("start", "coarsen", "forget")
    for _ in range(data.draw(st.integers(5, 40))):
        chance.happen()
    for number in [*world.pods, *world.pods]:  # once more where a journal had forgotten what was gone
        world.publish(number)
    assert world.cluster.counted() == world.expected


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_fails_is_made_up_for_within_minutes(data: st.DataObject) -> None:
    """Without a look at everything, as long as nobody meddles with the reports, whoever reports lives, and no write comes
    after its time."""
    world = World(keep_days=3000)
    chance = Chance(world, data, apart=False)
    chance.steps = ("record",) * 8 + ("publish",) * 6 + ("start", "coarsen", "forget")
    chance.troubles = ("",) * 8 + ("others",) * 4 + ("before", "after", "unserved", "forbidden")
    for _ in range(data.draw(st.integers(5, 40))):
        chance.happen()
    world.cluster.before = lambda method, path, act: None
    world.cluster.deliver()
    for _ in range(4):
        world.now += dt.timedelta(minutes=1)
        for number in world.pods:
            world.publish(number)
    assert world.cluster.counted() == world.expected
