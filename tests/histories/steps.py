"""The steps of a history. Each is a name and a seed, and becomes a write when it meets the object as it is then."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import jsonpatch

from tests.histories import forging
from tests.histories.kinds import LAST_APPLIED
from tests.histories.shapes import MISSING, Facet, Object, at, drop, put
from tests.histories.world import APPLY, JSON_PATCH, MERGE_PATCH, PUT, SCALE_VERSION, STRATEGIC_PATCH, World, Write

APPLIERS = ("flux", "argocd", "kubectl", "helm")
UPDATERS = ("kubectl-edit", "kubectl-patch", "flux", "argocd", "node-fetch", "größe")
MANAGERS = (*APPLIERS, *UPDATERS[:3])
USERS = ("developer", "flux", "admin", "argocd")


class Step(NamedTuple):
    name: str
    seed: int


Make = Callable[[Random, World], "Write | None"]


def create(rng: Random, world: World) -> Write | None:
    version = rng.choice(world.kind.versions)
    manager = rng.choice(MANAGERS)
    whole = {**world.empty(version), **world.kind.base()}
    if rng.random() < 0.4:
        _edit(rng, whole, world.kind.facets_in(version), rng.randrange(5), removing=False)
        world.manifests[manager] = copy.deepcopy(whole)
        return Write("create", "PATCH", APPLY, whole, version, "Apply", manager, force=True, user=rng.choice(USERS))
    whole.setdefault("metadata", {})
    _edit(rng, whole, world.kind.facets_in(version), rng.randrange(7), removing=False)
    honest = None
    if rng.random() < 0.35:
        honest = copy.deepcopy(whole)
        entries: forging.Entries = []
        for _ in range(rng.choice((1, 1, 2))):
            forging.add(rng, entries, version, MANAGERS)
        whole["metadata"]["managedFields"] = entries
    named = rng.random() < 0.6
    return Write("create", "POST", PUT, whole, version, "Update", manager, named, honest=honest, user=rng.choice(USERS))


def apply(rng: Random, world: World) -> Write | None:
    version = _version(rng, world)
    manager = rng.choice(APPLIERS)
    manifest = copy.deepcopy(world.manifests.get(manager) or world.empty(version))
    manifest["apiVersion"] = version
    facets = world.kind.facets_in(version)
    how = rng.choice(("edit", "edit", "same", "drop", "copy", "everything"))
    if how == "edit":
        _edit(rng, manifest, facets, rng.choice((1, 1, 2, 4)), removing=rng.random() < 0.3)
    elif how == "drop":
        _edit(rng, manifest, facets, rng.choice((1, 2, 6)), removing=True, only=True)
    elif how in ("copy", "everything"):
        live = world.get(version) or {}
        for facet in facets if how == "everything" else rng.sample(facets, min(3, len(facets))):
            value = at(live, facet.place)
            if value is not MISSING:
                put(manifest, facet.place, copy.deepcopy(value))
    dry_run = rng.random() < 0.15
    if not dry_run:
        world.manifests[manager] = copy.deepcopy(manifest)
    force = rng.random() < 0.7
    return Write(f"apply ({how})", "PATCH", APPLY, manifest, version, "Apply", manager, force=force, dry_run=dry_run)


def update(rng: Random, world: World) -> Write | None:
    return _update(rng, world, "update", lambda obj, facets: _edit(rng, obj, facets, rng.choice((1, 1, 2, 4))))


def remove(rng: Random, world: World) -> Write | None:
    return _update(
        rng,
        world,
        "remove",
        lambda obj, facets: _edit(rng, obj, facets, rng.choice((1, 2, 5)), removing=True, only=True),
    )


def noop(rng: Random, world: World) -> Write | None:
    return _update(rng, world, "no-op", lambda obj, facets: None)


def reorder(rng: Random, world: World) -> Write | None:
    def shuffle(obj: Object, facets: tuple[Facet, ...]) -> None:
        for names in world.kind.keyed:
            for items in _lists(obj, names):
                rng.shuffle(items)
        if rng.random() < 0.3:
            _edit(rng, obj, facets, 1)

    return _update(rng, world, "reorder", shuffle)


def duplicate(rng: Random, world: World) -> Write | None:
    """A key twice in one list, where the server lets it in."""

    def double(obj: Object, facets: tuple[Facet, ...]) -> None:
        for items in _lists(obj, ("spec", "template", "spec", "containers")):
            env = items[0].setdefault("env", [])
            env.append({"name": "A", "value": rng.choice("123")})

    return _update(rng, world, "duplicate", double) if world.kind.name == "Deployment" else None


def client_side_apply(rng: Random, world: World) -> Write | None:
    version = world.kind.versions[0]

    def edit(obj: Object, facets: tuple[Facet, ...]) -> None:
        _edit(rng, obj, facets, rng.randrange(3))
        last = {**world.empty(version), "data": {"n": str(rng.randrange(5))}}
        put(obj, ("metadata", "annotations", LAST_APPLIED), json.dumps(last) + "\n")

    write = _update(rng, world, "client-side apply", edit, version)
    return write and write_as(write, "kubectl-client-side-apply", named=True)


def burst(rng: Random, world: World) -> Write | None:
    """One of many names, so that the cap on Update claims is reached."""
    write = update(rng, world)
    return write and write_as(write, f"m{rng.randrange(14)}", named=write.named)


def write_as(write: Write, manager: str, *, named: bool) -> Write:
    return replace(write, manager=manager, named=named)


def forge(rng: Random, world: World) -> Write | None:
    """Claims edited by hand, with or without a change of values in the same write."""
    version = _version(rng, world)
    live = world.get(version)
    if live is None:
        return None
    values = copy.deepcopy(live)
    if rng.random() < 0.5:
        _edit(rng, values, world.kind.facets_in(version), rng.choice((1, 2)))
    forged = copy.deepcopy(values)
    entries = forged["metadata"].setdefault("managedFields", [])
    if not forging.forge(rng, entries, version, MANAGERS):
        return None
    manager, named = rng.choice(MANAGERS), rng.random() < 0.6
    if rng.random() < 0.3:
        patch, honest = _patch(live, forged), _patch(live, values)
        return Write("forge", "PATCH", JSON_PATCH, patch, version, "Update", manager, named, honest=honest)
    return Write("forge", "PUT", PUT, forged, version, "Update", manager, named, honest=values)


def migrate(rng: Random, world: World) -> Write | None:
    """kubectl's own way from client-side to server-side apply: whole claims into the Apply claim of its name."""
    live = world.get()
    if live is None:
        return None
    entries = copy.deepcopy(live["metadata"].get("managedFields", []))
    annotation = f"f:{LAST_APPLIED}"
    sources = [
        entry
        for entry in entries
        if entry["operation"] == "Update"
        and not entry.get("subresource")
        and annotation in entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations", {})
    ]
    if not sources:
        return None
    manager = rng.choice(("kubectl", "flux"))
    target = next(
        (e for e in entries if e["manager"] == manager and e["operation"] == "Apply" and not e.get("subresource")), None
    )
    if target is None:
        target = {**copy.deepcopy(sources[0]), "manager": manager, "operation": "Apply"}
        entries.append(target)
    elif target["apiVersion"] != sources[0]["apiVersion"]:
        return None
    for source in sources:
        forging._merge(target["fieldsV1"], copy.deepcopy(source["fieldsV1"]))
        entries.remove(source)
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
    version = world.kind.versions[0]
    return Write("migrate", "PATCH", JSON_PATCH, patch, version, "Update", manager, migration=True)


def status(rng: Random, world: World) -> Write | None:
    if not world.kind.status:
        return None
    version = _version(rng, world)
    live = world.get(version, "status")
    if live is None:
        return None
    new = copy.deepcopy(live)
    _edit(rng, new, world.kind.status, rng.choice((0, 1, 2)))
    if rng.random() < 0.2:  # the server takes no claims from a body sent to a subresource
        forging.forge(rng, new["metadata"].setdefault("managedFields", []), version, MANAGERS)
    manager, named = rng.choice(("flux", "kubelet", "controller")), rng.random() < 0.5
    return _sent(rng, world, "status", live, new, version, manager, named, "status")


def scale(rng: Random, world: World) -> Write | None:
    if not world.kind.has_scale:
        return None
    version = world.kind.versions[0]
    live = world.get(version, "scale")
    if live is None:
        return None
    replicas = rng.choice((1, 2, 3, 4, live["spec"].get("replicas", 0)))
    manager, named = rng.choice(("kubectl", "autoscaler", "flux")), rng.random() < 0.5
    how, dry_run = rng.choice(("put", "merge", "apply")), rng.random() < 0.1
    if how == "put":
        body = copy.deepcopy(live)
        body.setdefault("spec", {})["replicas"] = replicas
        return Write("scale", "PUT", PUT, body, version, "Update", manager, named, "scale", dry_run=dry_run)
    body = {"spec": {"replicas": replicas}}
    if how == "merge":
        return Write("scale", "PATCH", MERGE_PATCH, body, version, "Update", manager, named, "scale", dry_run=dry_run)
    meta = {"name": world.name, "namespace": world.namespace}
    body = {"apiVersion": SCALE_VERSION, "kind": "Scale", "metadata": meta, **body}
    return Write("scale", "PATCH", APPLY, body, version, "Apply", manager, True, "scale", force=True)


def finalize(rng: Random, world: World) -> Write | None:
    """Delete what has a finalizer: it stays, and is written on; else nothing."""
    live = world.get()
    if live is not None and live["metadata"].get("finalizers"):
        world.delete()
    return None


STEPS: dict[str, tuple[Make, int]] = {
    "apply": (apply, 26),
    "update": (update, 20),
    "remove": (remove, 10),
    "noop": (noop, 3),
    "reorder": (reorder, 3),
    "duplicate": (duplicate, 1),
    "client_side_apply": (client_side_apply, 4),
    "burst": (burst, 12),
    "forge": (forge, 16),
    "migrate": (migrate, 4),
    "status": (status, 6),
    "scale": (scale, 7),
    "finalize": (finalize, 1),
}


def history(rng: Random, length: int) -> list[Step]:
    names = list(STEPS)
    weights = [STEPS[name][1] for name in names]
    return [Step(name, rng.getrandbits(32)) for name in rng.choices(names, weights, k=length)]


def made(step: Step, world: World) -> Write | None:
    """The write that a step is now; a creation while there is no object."""
    rng = Random(step.seed)
    if world.get() is None:
        world.manifests.clear()
        return create(rng, world)
    return STEPS[step.name][0](rng, world)


def _version(rng: Random, world: World) -> str:
    versions = world.kind.versions
    return versions[0] if len(versions) == 1 or rng.random() < 0.7 else rng.choice(versions[1:])


def _edit(
    rng: Random, obj: Object, facets: tuple[Facet, ...], count: int, *, removing: bool = True, only: bool = False
) -> None:
    present = [facet for facet in facets if at(obj, facet.place) is not MISSING]
    for _ in range(count):
        if present and (only or (removing and rng.random() < 0.3)):
            drop(obj, rng.choice(present).place, empty_too=rng.random() < 0.5)
        elif not only:
            facet = rng.choice(facets)
            put(obj, facet.place, copy.deepcopy(rng.choice(facet.values)))


def _update(
    rng: Random, world: World, what: str, edit: Callable[[Object, tuple[Facet, ...]], None], version: str = ""
) -> Write | None:
    version = version or _version(rng, world)
    live = world.get(version)
    if live is None:
        return None
    new = copy.deepcopy(live)
    edit(new, world.kind.facets_in(version))
    manager = rng.choice(UPDATERS)
    named = rng.random() < 0.55 or not manager.isascii()  # a User-Agent of other letters does not arrive whole
    return _sent(rng, world, what, live, new, version, manager, named, "")


def _sent(
    rng: Random, world: World, what: str, live: Object, new: Object, version: str, manager: str, named: bool, sub: str
) -> Write:
    """A new state of the object as one of the requests that bring it about."""
    hows = ["put", "put", "merge", "json"] + (["strategic"] if world.kind.strategic else [])
    how = rng.choice(hows)
    method = "PUT" if how == "put" else "PATCH"
    if how == "put":
        if rng.random() < 0.3:
            new["metadata"].pop("managedFields", None)
        body, content_type = new, PUT
    elif how == "json":
        body, content_type = _patch(live, new), JSON_PATCH
    else:
        body, content_type = _merge_patch(live, new), MERGE_PATCH if how == "merge" else STRATEGIC_PATCH
    dry_run = rng.random() < 0.1
    user = rng.choice(USERS)
    return Write(what, method, content_type, body, version, "Update", manager, named, sub, dry_run=dry_run, user=user)


def _patch(old: Object, new: Object) -> list[Any]:
    operations: list[Any] = jsonpatch.make_patch(old, new).patch
    return operations


def _merge_patch(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch = {name: None for name in old if name not in new}
    changed = {name: _merge_patch(old.get(name), value) for name, value in new.items() if old.get(name) != value}
    return {**patch, **changed}


def _lists(obj: Any, names: tuple[str, ...]) -> list[list[Any]]:
    """The lists at a path of names, through the items of those above."""
    found = [obj]
    for name in names:
        found = [
            below[name] for value in found for below in (value if isinstance(value, list) else [value]) if name in below
        ]
    return [value for value in found if isinstance(value, list)]
