"""The steps of histories in which there is much to rewrite: Git applies most objects, and drops what others keep alive."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random

from tests.histories import steps
from tests.histories.shapes import MISSING, at, drop, put
from tests.histories.steps import Step
from tests.histories.world import APPLY, PUT, World, Write

GIT = "flux"
WEIGHTS = {
    "update": 30,
    "remove": 10,
    "apply": 20,
    "adopt": 8,
    "give up": 12,
    "forge": 12,
    "scale": 8,
    "burst": 5,
    "client_side_apply": 4,
    "migrate": 3,
    "status": 3,
    "noop": 2,
    "reorder": 3,
    "duplicate": 1,
    "finalize": 1,
}


def history(rng: Random, length: int) -> list[Step]:
    return [Step(name, rng.getrandbits(32)) for name in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length)]


def made(step: Step, world: World) -> Write | None:
    """The write that a step is now; a creation while there is no object, by Git mostly."""
    rng = Random(step.seed)
    if world.get() is None and rng.random() < 0.8:
        world.manifests.clear()
        return _born(rng, world)
    make = _OWN.get(step.name)
    return make(rng, world) if make is not None and world.get() is not None else steps.made(step, world)


def _born(rng: Random, world: World) -> Write:
    version = world.kind.versions[0]
    whole = {**world.empty(version), **world.kind.base()}
    facets = world.kind.facets_in(version)
    for facet in rng.sample(facets, min(rng.randrange(4, 12), len(facets))):
        put(whole, facet.place, copy.deepcopy(rng.choice(facet.values)))
    if rng.random() < 0.3:
        return Write("create", "POST", PUT, whole, version, "Update", "kubectl-edit")
    return _git(world, whole, "create")


def adopt(rng: Random, world: World) -> Write:
    """Git applies much of what there is."""
    version = world.kind.versions[0]
    live, manifest = world.get(version) or {}, _manifest(world)
    for facet in world.kind.facets_in(version):
        value = at(live, facet.place)
        if value is not MISSING and rng.random() < 0.7:
            put(manifest, facet.place, copy.deepcopy(value))
    return _git(world, manifest, "adopt")


def give_up(rng: Random, world: World) -> Write:
    """Git drops some of what it applied."""
    manifest = _manifest(world)
    present = [
        facet for facet in world.kind.facets_in(world.kind.versions[0]) if at(manifest, facet.place) is not MISSING
    ]
    for facet in rng.sample(present, min(rng.choice((1, 2, 5)), len(present))):
        drop(manifest, facet.place, empty_too=rng.random() < 0.7)
    return _git(world, manifest, "give up")


def _manifest(world: World) -> dict[str, object]:
    manifest = copy.deepcopy(world.manifests.get(GIT)) or world.empty(world.kind.versions[0])
    manifest["apiVersion"] = world.kind.versions[0]
    return manifest


def _git(world: World, manifest: dict[str, object], what: str) -> Write:
    world.manifests[GIT] = copy.deepcopy(manifest)
    return Write(what, "PATCH", APPLY, manifest, world.kind.versions[0], "Apply", GIT, force=True, user="flux")


_OWN: dict[str, Callable[[Random, World], Write]] = {"adopt": adopt, "give up": give_up}
