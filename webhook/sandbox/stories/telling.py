"""What stories are told in: parts, steps with what each client printed, and who claims the label after each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from webhook.fields import ABSENT, FieldPath, ManagedFields, value_at
from webhook.sandbox.client import Object
from webhook.sandbox.errors import SandboxError
from webhook.sandbox.sandbox import Completed, Sandbox

PATH = ".metadata.labels.team"
FLUX = "kustomize-controller"
_LABEL = FieldPath.parse(PATH)
_WARNING = "Warning:"


@dataclass(frozen=True, slots=True)
class Part:
    """A heading, with what there is to know before its steps, and, where fieldwarden is there, its policies' text."""

    title: str
    text: str
    policy: str = ""

    @property
    def guarded(self) -> bool:
        return bool(self.policy)


@dataclass(frozen=True, slots=True)
class Wait:
    """What is being done while nothing can be told."""

    text: str


@dataclass(frozen=True, slots=True)
class Act:
    """One command of somebody's, and what it printed, line by line."""

    user: str
    command: str
    printed: tuple[str, ...]
    status: int


@dataclass(frozen=True, slots=True)
class Label:
    """The label of one Deployment: whether Git and the cluster have it, and whose claims hold it."""

    in_git: bool
    in_cluster: bool
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """What the story says of a step. The client is told `says`, in a warning, or nothing where it is empty."""

    title: str
    label: Label
    says: str = ""
    moral: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What was done and seen. `differs` says in what it is not as the story tells it, and is empty when it is."""

    number: int
    title: str
    acts: tuple[Act, ...]
    label: Label
    moral: str
    differs: str
    dry_run: bool = False


Told: TypeAlias = Part | Wait | Step


class NotAsTold(Exception):
    """A step went otherwise than the story says."""

    def __init__(self, step: Step) -> None:
        super().__init__(f"Step {step.number} ({step.title}) is not as the story tells it: {step.differs}.")


class Stage:
    """Where a story plays: a sandbox, Deployments by name, and a folder that stands for Git."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._git = sandbox.folder / "git"
        self._git.mkdir()
        self._steps = 0

    def commit(self, name: str, *, label: bool) -> None:
        """From now on Git has the Deployment with or without the label."""
        self._file(name).write_text(json.dumps(_deployment(name, label=label), indent=2))

    def flux(self, name: str) -> Act:
        """Flux applies what Git has: server-side, by force, under its manager and its account."""
        return self._applied(name)[0]

    def kubectl(self, user: str, *args: str) -> Act:
        """Somebody's kubectl command."""
        return _act(user, args, self._sandbox.kubectl(*args, user=user, check=False))

    def step(self, scene: Scene, name: str, *acts: Act) -> Iterator[Step]:
        """Tells what was done, and what the label of a Deployment is now."""
        label = self._seen(name, self._stored(name))
        yield from self._told(scene, acts, label, _differences(scene, acts, label))

    def dry_step(self, scene: Scene, name: str) -> Iterator[Step]:
        """Flux applies in a dry run; tells what the label would be."""
        before = self._stored(name)
        act, done = self._applied(name, "--dry-run=server", "--show-managed-fields", "--output=json")
        label = self._seen(name, _decoded(done.stdout))
        differences = [*_differences(scene, (act,), label)]
        if self._stored(name) != before:
            differences.append("the dry run has changed what is stored")
        yield from self._told(scene, (act,), label, differences, dry_run=True)

    def _told(
        self, scene: Scene, acts: tuple[Act, ...], label: Label, differences: Iterable[str], *, dry_run: bool = False
    ) -> Iterator[Step]:
        self._steps += 1
        differs = "; ".join(differences)
        step = Step(self._steps, scene.title, acts, label, "" if differs else scene.moral, differs, dry_run)
        yield step
        if differs:
            raise NotAsTold(step)

    def _stored(self, name: str) -> Object:
        reply = self._sandbox.request("GET", self._sandbox.path_of(_deployment(name, label=False)))
        if reply.status != 200:
            raise SandboxError(f"The Deployment {name} cannot be read: {reply.body.get('message')}")
        return reply.body

    def _seen(self, name: str, found: Object) -> Label:
        claims = ManagedFields.of(found)
        in_git = value_at(json.loads(self._file(name).read_text()), _LABEL) is not ABSENT
        owners = tuple(str(identity) for identity in claims.holders(_LABEL))
        return Label(in_git, value_at(found, _LABEL) is not ABSENT, owners)

    def _applied(self, name: str, *more: str) -> tuple[Act, Completed]:
        args = ("apply", "--server-side", "--force-conflicts", f"--field-manager={FLUX}", *more)
        done = self._sandbox.kubectl(*args, "-f", str(self._file(name)), user="flux", check=False)
        shown = Completed("", done.stderr, done.returncode) if more else done  # an object in full is told by its label
        return _act("flux", (*args, "-f", self._file(name).name), shown), done

    def _file(self, name: str) -> Path:
        return self._git / f"{name}.yaml"  # JSON is YAML


def _decoded(text: str) -> Object:
    """What kubectl printed; nothing where that is no object."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _act(user: str, args: tuple[str, ...], done: Completed) -> Act:
    printed = tuple(line for line in (done.stderr + done.stdout).splitlines() if line.strip())
    return Act(user, " ".join(("kubectl", *args)), printed, done.returncode)


def _differences(scene: Scene, acts: tuple[Act, ...], label: Label) -> Iterator[str]:
    """In what a step differs from its scene, in words."""
    for act in acts:
        if act.status:
            yield f"`{act.command}` ended with status {act.status}"
    if label.in_cluster != scene.label.in_cluster:
        yield f"the label should be {_whether(scene.label)} and is {_whether(label)}"
    if set(label.owners) != set(scene.label.owners):
        yield f"{PATH} should be claimed by {_names(scene.label)} and is claimed by {_names(label)}"
    *earlier, last = ([line for line in act.printed if line.startswith(_WARNING)] for act in acts)
    if any(earlier) or (last and not scene.says):
        yield "the client should be told nothing and is warned"
    if scene.says and not any(scene.says in line for line in last):
        yield f"the client should be told '{scene.says}' and is not"


def _whether(label: Label) -> str:
    return "in the cluster" if label.in_cluster else "gone"


def _names(label: Label) -> str:
    return " and ".join(label.owners) or "nobody"


def _deployment(name: str, *, label: bool) -> Object:
    labels = {"app": name, **({"team": "payments"} if label else {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "nginx"}]},
            },
        },
    }
