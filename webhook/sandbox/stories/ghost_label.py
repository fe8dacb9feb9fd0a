"""The ghost label: Git has dropped it, every apply succeeds, and it stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from webhook.sandbox.beside import serve_beside, usable
from webhook.sandbox.sandbox import Sandbox
from webhook.sandbox.stories.telling import FLUX, PATH, Act, Label, Part, Scene, Stage, Told, Wait

NAME = "ghost-label"
SUMMARY = "Git drops a label, Flux applies, and the label stays: without fieldwarden, and with it."
POLICY = Path(__file__).with_name("ghost-label.yaml")

_BY_FLUX = f"{FLUX} (Apply)"
_BY_HAND = "kubectl-label (Update)"
_WITHOUT = (
    "It is about the label team. Flux is played by kubectl, under Flux's manager and account. Flux's own clean-up, which takes claims away from the "
    "clients whose names it knows, is left out: this is what happens with all the others."
)
_WITH = "The same API server, with `fieldwarden serve` beside it and both webhooks registered. Its policy:"


def tell(sandbox: Sandbox, policies: Path, mode: str) -> Iterator[Told]:
    """Raises UnusablePolicies before anything else, NotAsTold after the first step that went otherwise."""
    usable(policies)
    stage = Stage(sandbox)
    yield Part("Without fieldwarden", _WITHOUT)
    yield from _becomes_a_ghost(stage, "web")
    yield from _is_shared(stage, "shop")
    yield Wait("starting fieldwarden and registering its webhooks")
    serve_beside(sandbox, policies, mode)
    yield Part("With fieldwarden", _WITH, _text(policies))
    yield from _is_released(stage, "api")
    yield from _is_pruned(stage, "shop")


def _becomes_a_ghost(stage: Stage, name: str) -> Iterator[Told]:
    stage.commit(name, label=False)
    yield from stage.step(Scene(f"Flux applies the Deployment {name}", Label(False, False)), name, stage.flux(name))

    labelled = Scene("During an incident somebody adds the label team by hand", Label(False, True, (_BY_HAND,)))
    yield from stage.step(labelled, name, _by_hand(stage, name))

    stage.commit(name, label=True)
    shared = Scene(
        "Git gets the label too, and Flux applies",
        Label(True, True, (_BY_FLUX, _BY_HAND)),
        moral="Now both own it. The values are equal, so there is no conflict, and nobody is told.",
    )
    yield from stage.step(shared, name, stage.flux(name))

    stage.commit(name, label=False)
    ghost = Label(False, True, (_BY_HAND,))
    dropped = Scene(
        "Git drops the label, and Flux applies",
        ghost,
        moral="Flux reports success. The server removes only what nobody else claims: the label stays.",
    )
    yield from stage.step(dropped, name, stage.flux(name))

    stays = Scene(
        "Flux applies again, as it does every few minutes",
        ghost,
        moral="It stays for ever, it is in no repository, and nothing says why.",
    )
    yield from stage.step(stays, name, stage.flux(name))


def _is_shared(stage: Stage, name: str) -> Iterator[Told]:
    """As far as the share, before fieldwarden is there."""
    stage.commit(name, label=False)
    first = stage.flux(name), _by_hand(stage, name)
    stage.commit(name, label=True)
    scene = Scene(
        f"With the Deployment {name} it has come half as far: Git still has the label",
        Label(True, True, (_BY_FLUX, _BY_HAND)),
    )
    yield from stage.step(scene, name, *first, stage.flux(name))


def _is_released(stage: Stage, name: str) -> Iterator[Told]:
    stage.commit(name, label=False)
    labelled = Scene(
        f"Flux applies a new Deployment, {name}, and somebody adds the label by hand", Label(False, True, (_BY_HAND,))
    )
    yield from stage.step(labelled, name, stage.flux(name), _by_hand(stage, name))

    stage.commit(name, label=True)
    released = Scene(
        "Git gets the label too, and Flux applies",
        Label(True, True, (_BY_FLUX,)),
        says=f"released {PATH} from {_BY_HAND}",
        moral="Release: the leftover claim goes at the very apply that would have made it a second owner.",
    )
    yield from stage.step(released, name, stage.flux(name))

    stage.commit(name, label=False)
    dropped = Scene("Git drops the label, and Flux applies", Label(False, False), moral="The label goes, as Git says.")
    yield from stage.step(dropped, name, stage.flux(name))


def _is_pruned(stage: Stage, name: str) -> Iterator[Told]:
    stage.commit(name, label=False)
    says = f"pruned {PATH}"
    tried = Scene(
        f"Git drops the label of {name}, owned by two since before; Flux tries it in a dry run",
        Label(False, False),
        says=says,
        moral="The dry run shows what the apply will do.",
    )
    yield from stage.dry_step(tried, name)

    pruned = Scene(
        "Flux applies",
        Label(False, False),
        says=says,
        moral="Prune: what Flux drops and only a leftover claim would keep alive goes there and then.",
    )
    yield from stage.step(pruned, name, stage.flux(name))


def _by_hand(stage: Stage, name: str) -> Act:
    return stage.kubectl("developer", "label", "deployment", name, "team=payments")


def _text(policies: Path) -> str:
    """The story's own policy in full; of others, where they lie."""
    return policies.read_text() if policies == POLICY else f"# {policies}\n"
