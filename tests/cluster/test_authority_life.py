"""Years of renewals in which whatever can fail does: nobody is cut off at any moment, and nothing is trusted for ever."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster.trust_world import (
    AUTHORITY,
    DAY,
    HOUR,
    LEAF,
    LIFETIMES,
    MINUTE,
    START,
    Conflict,
    Failed,
    World,
)
from webhook.certificates import certificates_in, new_authority

PODS = ("one", "two", "three")

times = st.sampled_from([dt.timedelta(), MINUTE, 6 * MINUTE, 10 * HOUR, 2 * DAY, 5 * DAY])
happening = st.one_of(
    st.tuples(st.just("jump"), st.sampled_from([10 * MINUTE, 6 * HOUR, DAY])),
    st.tuples(st.just("control"), st.integers(0, 3)),
    st.tuples(st.just("stall"), st.integers(0, 1)),
    st.tuples(st.just("wake"), st.integers(0, 2)),
    st.tuples(st.just("sync"), st.sampled_from(PODS)),
    st.tuples(st.just("start"), st.sampled_from(PODS)),
    st.tuples(st.just("notice"), st.integers(0, 1)),
    st.tuples(st.just("lose"), st.sampled_from([LEAF, AUTHORITY])),
    st.tuples(st.just("damage"), st.integers(0, 7)),
)
Story = list[tuple[dt.timedelta, tuple[str, object]]]


def begin(seed: int) -> World:
    """Installed: rules are not registered before the bundle, so nobody is called who is not trusted yet."""
    world = World(Random(seed))
    world.settle()
    world.advance(LIFETIMES.settle)
    for pod in PODS:
        world.start(pod)
    world.catch_up()
    return world


def happen(world: World, kind: str, value: object) -> None:
    match kind, value:
        case "jump", dt.timedelta():
            world.now += value
        case "control", int():
            some_control(world, value)
        case "stall", int():
            world.stalled.append(world.observe(blind=bool(value)))
        case "wake", int() if world.stalled:
            snapshot = world.stalled.pop(value % len(world.stalled))
            with suppress(Conflict):  # whoever sleeps between reading and writing
                world.control(snapshot, pause=lambda: world.advance(world.random.choice((MINUTE, 7 * MINUTE, DAY))))
        case "sync", str() if value in world.pods:
            world.sync(value)
        case "start", str():
            world.start(value)
        case "notice", int():
            world.notice(value)
        case "lose", str():
            world.tamper(value, None)
        case "damage", int():
            damage(world, value)
    world.catch_up()


def some_control(world: World, fails_at: int) -> None:
    """A controller whose first, second or third write fails; 3 is none of them."""
    writes = iter(range(100))
    with suppress(Failed, Conflict):
        for _ in range(4):
            if world.control(world.observe(), fails=lambda: next(writes) == fails_at):
                return


def damage(world: World, how: int) -> None:
    name, prefix = ((AUTHORITY, "ca"), (LEAF, "tls"))[how % 2]
    data = dict(world.secrets.get(name, {}))
    match how // 2:
        case 0:
            data[f"{prefix}.key"] = new_authority("a stranger", world.now, DAY).key_pem
        case 1:
            data[f"{prefix}.crt"] = data.get(f"{prefix}.crt", b"")[:100]
        case 2:
            data.pop(f"{prefix}.key", None)
        case 3:
            data = {}
    world.tamper(name, data)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1000), st.lists(st.tuples(times, happening), min_size=40, max_size=100))
def test_whatever_happens_every_pod_is_trusted_everywhere(seed: int, story: Story) -> None:
    world = begin(seed)
    for time, (kind, value) in story:
        world.advance(time)
        happen(world, kind, value)
    in_the_end_one_authority_is_trusted(world)


def in_the_end_one_authority_is_trusted(world: World) -> None:
    """Once all is quiet, at most an authority that is being introduced or let go stands beside the one that signs."""
    for pod in PODS:
        if pod not in world.pods:
            world.start(pod)
    for _ in range(120):
        world.advance(6 * HOUR)
        world.settle()
        signing = certificates_in(world.secrets[AUTHORITY].get("ca.crt", b""))
        if signing and all(certificates_in(bundle.history[-1][0]) == signing for bundle in world.bundles.values()):
            return
    raise AssertionError("an authority stays in a bundle")


@pytest.mark.parametrize("seed", range(2))
def test_over_years_authorities_come_and_go(seed: int) -> None:
    random, world = Random(seed), begin(seed)
    longest, years = 0, 3 * 365 * DAY
    while world.now < START + years:
        happen(world, "control", random.randrange(5))
        kind = random.choice(("jump", "stall", "wake", "start", "sync"))
        value: object = random.choice(PODS) if kind in ("start", "sync") else random.randrange(2)
        happen(world, kind, random.choice((HOUR, DAY)) if kind == "jump" else value)
        world.advance(random.choice((HOUR, DAY)))
        longest = max(longest, *(len(certificates_in(bundle.history[-1][0])) for bundle in world.bundles.values()))
    assert len(set(world.signers) - {b""}) > years / LIFETIMES.authority
    assert longest == 2
