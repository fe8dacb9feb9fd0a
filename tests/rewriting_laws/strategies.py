"""Random writes of random objects, and policies that would rewrite them."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.histories import forging
from tests.histories.kinds import CONFIGMAP, DEPLOYMENT, SERVICE, WIDGET
from tests.histories.shapes import MISSING, Facet, Kind, Object, at, drop, put
from tests.rewriting_laws import policies, simulated
from tests.rewriting_laws.policies import Document
from tests.rewriting_laws.simulated import State
from webhook.admission.suite_model import Client, Write
from webhook.admission.suite_write import review_of_write
from webhook.fields import Identity
from webhook.sandbox.users import users

KINDS = (DEPLOYMENT, DEPLOYMENT, CONFIGMAP, SERVICE, WIDGET, WIDGET)
APPLIERS = ("flux", "flux", "argocd", "kubectl", "helm")
UPDATERS = ("kubectl-edit", "kubectl-edit", "kubectl-patch", "flux", "node-fetch", "m1")
MANAGERS = ("flux", "argocd", "kubectl-edit", "node-fetch")
USERS = users()
REPLICAS = ("f:spec", "f:replicas")
LEFTOVERS = frozenset((*policies.ON_SHARE, *policies.ON_GHOST))
CHANGES = frozenset(policies.ON_CHANGE)
TAMPERING = frozenset(policies.ON_TAMPER)
SEED = os.environ.get("LAWS_SEED", "fieldwarden")
PEOPLE = ("developer", "developer", "admin", "oncall")


class Case(NamedTuple):
    """One write, and the policies that it meets. Plain JSON, so that it can be pinned."""

    policies: list[Document]
    review: dict[str, Any]


class _Step(NamedTuple):
    """One write: the state that it leaves, the claim that it wrote under, and what it is called."""

    state: State
    me: Identity


class Recipe(NamedTuple):
    """What a case is made from: one number, from which all else follows, and what is left out of it."""

    number: int
    actions: tuple[str, ...] = policies.ACTIONS
    most: int = 1  # policies
    document: Document | None = None  # the one policy, where it is given
    without: frozenset[str] = frozenset()  # names of steps and rules

    def rng(self, name: str) -> Random:
        return Random(f"{SEED}/{self.number}/{name}")


def recipes(
    actions: Collection[str] = policies.ACTIONS, most: int = 1, document: Document | None = None
) -> st.SearchStrategy[Recipe]:
    """Writes under one to `most` policies, each of which wants some of the actions.

    Hypothesis draws one number for each: of many numbers it would draw most from few.
    """
    return st.integers(0, (1 << 32) - 1).map(lambda number: Recipe(number, tuple(actions), most, document))


def made(recipe: Recipe) -> Case:
    rng = recipe.rng("case")
    kind = rng.choice(KINDS)
    documents = [recipe.document] if recipe.document is not None else []
    for number in range(0 if documents else rng.randint(1, recipe.most)):
        document = policies.policy(recipe.rng(f"policy {number}"), f"p{number}", kind, recipe.actions)
        rules = [rule for rule in document["spec"]["rules"] if f"p{number}/{rule['name']}" not in recipe.without]
        document["spec"]["rules"] = rules
        if rules:
            documents.append(document)
    return Case(documents, _review_of(recipe, kind))


def _review_of(recipe: Recipe, kind: Kind) -> dict[str, Any]:
    """What an API server would ask about the last of a few writes."""
    shares = recipe.rng("birth").random() < (0.15 if LEFTOVERS.isdisjoint(recipe.actions) else 0.5)
    state = (_adopted if shares else _born)(recipe.rng("birth"), kind)
    time = 1
    for number in range(recipe.rng("length").choice((0, 1, 1, 2, 3, 4))):
        rng = recipe.rng(f"step {number}")
        time += rng.choice((0, 1, 2))
        if f"step {number}" not in recipe.without:
            state = _written(rng, state, time).state
    rng = recipe.rng("last")
    time += rng.choice((0, 1, 2))
    if rng.random() < 0.08:
        return _scale_review(rng, state, time) if kind.has_scale else _review(rng, state, _noop(rng, state))
    if rng.random() < (0.05 if TAMPERING.isdisjoint(recipe.actions) else 0.5 / len(recipe.actions)):
        return _review(rng, state, _forged(rng, state, time))
    if shares and rng.random() < 0.5:
        return _review(rng, state, _applied(rng, state, time, "flux"))
    if CHANGES.issuperset(recipe.actions) and rng.random() < 0.6:
        return _review(rng, state, _updated(rng, state, time))
    return _review(rng, state, _written(rng, state, time))


def shrunk(recipe: Recipe, fails: Callable[[Case], bool]) -> Recipe:
    """The same recipe without the steps and rules that a failure does not need."""
    names = [f"step {number}" for number in range(4)]
    names += [f"p{number}/r{rule}" for number in range(recipe.most) for rule in range(3)]
    for name in names:
        shorter = recipe._replace(without=recipe.without | {name})
        if made(shorter).policies and fails(made(shorter)):
            recipe = shorter
    return recipe


def _born(rng: Random, kind: Kind, manager: str = "") -> State:
    version = kind.versions[0]
    values: Object = {"apiVersion": version, "kind": kind.name, "metadata": {"name": "it", "namespace": "team-a"}}
    values.update(kind.base())
    _edit(rng, values, kind, rng.randrange(3, 12), removing=0)
    if not manager and rng.random() < 0.75:
        return simulated.created(kind, values, Identity("flux", "Apply"), 1)
    return simulated.created(kind, values, Identity(manager or rng.choice(UPDATERS), "Update", "", version), 1)


def _adopted(rng: Random, kind: Kind) -> State:
    """What somebody made by hand, and Git has now."""
    state = _born(rng, kind, "kubectl-edit")
    manifest = _empty(state)
    _copy(rng, state, manifest, rng.randrange(4, len(kind.facets)))
    return simulated.applied(state, "flux", manifest, 1)


def _written(rng: Random, state: State, time: int) -> _Step:
    return (_applied if rng.random() < 0.45 else _updated)(rng, state, time)


def _applied(rng: Random, state: State, time: int, manager: str = "") -> _Step:
    manager = manager or rng.choice(APPLIERS)
    manifest = copy.deepcopy(state.manifests.get(manager)) or _empty(state)
    how = rng.choice(("edit", "drop", "drop", "copy"))
    if how == "copy":
        _copy(rng, state, manifest, 4)
    else:
        _edit(rng, manifest, state.kind, rng.choice((1, 2, 4)), removing=0.2 if how == "edit" else 1)
    return _Step(simulated.applied(state, manager, manifest, time), Identity(manager, "Apply"))


def _copy(rng: Random, state: State, manifest: Object, count: int) -> None:
    for facet in rng.sample(state.kind.facets, count):
        value = at(state.values, facet.place)
        if value is not MISSING:
            put(manifest, facet.place, copy.deepcopy(value))


def _updated(rng: Random, state: State, time: int) -> _Step:
    values = copy.deepcopy(state.values)
    _edit(rng, values, state.kind, rng.choice((1, 2, 4, 6)), removing=rng.choice((0, 0.3, 0.3, 1)))
    if rng.random() < 0.1:
        _shuffle(rng, values, state.kind)
    me = _updater(rng, state)
    return _Step(simulated.updated(state, me, values, time), me)


def _forged(rng: Random, state: State, time: int) -> _Step:
    """Claims edited by hand, mostly with nothing else."""
    entries = simulated.entries_of(state.claims)
    forging.forge(rng, entries, state.version, MANAGERS)
    served = [entry for entry in entries if entry.get("apiVersion") == state.version]
    values = copy.deepcopy(state.values)
    if rng.random() < 0.3:
        _edit(rng, values, state.kind, 1, removing=0.3)
    me = _updater(rng, state)
    return _Step(simulated.updated(state, me, values, time, simulated.claims_of(served)), me)


def _noop(rng: Random, state: State) -> _Step:
    return _Step(state, _updater(rng, state))


def _updater(rng: Random, state: State) -> Identity:
    return Identity(rng.choice(UPDATERS), "Update", "", state.version)


def _empty(state: State) -> Object:
    return {"apiVersion": state.version, "kind": state.kind.name, "metadata": {"name": "it", "namespace": "team-a"}}


def _edit(rng: Random, obj: Object, kind: Kind, count: int, *, removing: float) -> None:
    for _ in range(count):
        present = [facet for facet in kind.facets if at(obj, facet.place) is not MISSING]
        if removing and present and rng.random() < removing:
            _drop(rng, obj, rng.choice(present))
        elif removing < 1:
            facet = rng.choice(kind.facets)
            put(obj, facet.place, copy.deepcopy(rng.choice(facet.values)))


def _drop(rng: Random, obj: Object, facet: Facet) -> None:
    """A value, or something above it."""
    length = rng.choice((len(facet.place), len(facet.place), len(facet.place) - 1, len(facet.place) - 2))
    drop(obj, facet.place[: max(length, 2)], empty_too=rng.random() < 0.5)


def _shuffle(rng: Random, obj: Object, kind: Kind) -> None:
    for names in kind.keyed:
        items = at(obj, names)
        if isinstance(items, list):
            rng.shuffle(items)


def _review(rng: Random, before: State, step: _Step) -> dict[str, Any]:
    written = step.state.shown()
    written["metadata"].setdefault("managedFields", [])
    write = Write(before.shown(), written, (), None, _client(rng, step.me), before.kind.plural)
    made = review_of_write(write)
    if not step.state.claims:
        made["request"]["object"]["metadata"].pop("managedFields", None)
    if step.me.operation == "Update" and rng.random() < 0.4:
        made["request"]["options"].pop("fieldManager", None)
    return made


def _scale_review(rng: Random, state: State, time: int) -> dict[str, Any]:
    """A write of replicas through /scale, as the mutating call shows it."""
    values = copy.deepcopy(state.values)
    put(values, ("spec", "replicas"), rng.choice((1, 2, 4)))
    manager = rng.choice(("kubectl", "autoscaler", "flux"))
    tracked = any(REPLICAS in entry.paths for entry in state.claims.values())
    if rng.random() < 0.3:
        me = Identity(manager, "Apply", "scale")
        mine = simulated.Entry(frozenset({REPLICAS}), state.version, time)
        claims = {**simulated.updated(state, me, values, time).claims, me: mine}
    else:
        me = Identity(manager, "Update", "scale", state.version)
        claims = dict(simulated.updated(state, me, values, time).claims if tracked else state.claims)
    after = State(state.kind, values, claims)
    made = _review(rng, state, _Step(after, me))
    for key in ("object", "oldObject"):
        made["request"][key]["metadata"].get("managedFields", []).sort(key=simulated.order)
    return made


def _client(rng: Random, me: Identity) -> Client:
    """Who writes: the account behind a name, or somebody else under it."""
    user = me.manager if me.manager in USERS and rng.random() < 0.7 else rng.choice(PEOPLE)
    return Client(USERS[user].name, USERS[user].groups, me.manager, me.operation, me.subresource, False)
