"""The folder between the mirror and those who judge: the one writes what the cluster holds, the others read files.

policies -> .3/        a link to the newest version, swapped whole: one file for each policy
namespaces.json        name to labels, replaced whole
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.cluster.resource import PLURAL, UNTRUE, located
from webhook.cluster.settling import Texts, file_name, name_in
from webhook.policy import Loaded, PolicySet, Problem, load

Labels = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class MirrorState:
    """How the mirror does. Times are seconds since the epoch, 0 for never."""

    failure: str = "it has not answered yet"  # why the API server cannot be followed; empty while it is
    read: bool = False  # whether all that there is has been read once, by this mirror or one before it
    contact: float = 0.0  # when it was last heard of
    policies: int = 0  # taken from the cluster
    namespaces: int = 0
    left_out: tuple[str, ...] = ()  # sentences, one for each policy


@dataclass(frozen=True, slots=True)
class Mirrored:
    """The folder. It is complete from when `policies` is there."""

    folder: Path

    @property
    def policies(self) -> Path:
        return self.folder / "policies"

    @property
    def namespaces(self) -> Path:
        return self.folder / "namespaces.json"

    @property
    def is_read(self) -> bool:
        """Whether all of the cluster's policies and namespaces have been read once."""
        return self.policies.exists()

    def texts(self) -> Texts:
        """The policies that are there, by name."""
        found = (file.read_text(encoding="utf-8") for file in sorted(self.policies.glob("*.yaml")))
        return {name_in(text): text for text in found}

    def write_policies(self, texts: Mapping[str, str]) -> None:
        """All at once: whoever reads sees these or those of before. The version before stays for who is reading it."""
        before = self.policies.readlink().name if self.policies.is_symlink() else ".0"
        new = self.folder / f".{int(before[1:]) + 1}"
        shutil.rmtree(new, ignore_errors=True)  # of a mirror that was killed here
        new.mkdir()
        for name, text in texts.items():
            (new / file_name(name)).write_text(text, encoding="utf-8")
        link = self.folder / ".next"
        link.unlink(missing_ok=True)
        link.symlink_to(new.name)
        link.replace(self.policies)
        for old in self.folder.glob(".[0-9]*"):
            if old.name not in (before, new.name):
                shutil.rmtree(old, ignore_errors=True)

    def write_namespaces(self, labels: Labels) -> None:
        draft = self.folder / ".namespaces.json"
        draft.write_text(json.dumps(labels), encoding="utf-8")
        draft.replace(self.namespaces)


class KnownLabels:
    """The labels of namespaces, as the mirror last wrote them. Swapped whole; safe to ask from any thread."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._labels: Labels = {}

    def __call__(self, namespace: str) -> Mapping[str, str] | None:
        return self._labels.get(namespace)

    def refresh(self) -> None:
        """Read them again if they have changed."""
        try:
            stat = self._file.stat()
            seen = (stat.st_ino, stat.st_mtime_ns)
            if seen != self._seen:
                self._labels = json.loads(self._file.read_bytes())
                self._seen = seen
        except (OSError, ValueError):  # not written yet; what is known stays
            return


@dataclass(frozen=True, slots=True)
class MirroredProblem:
    """A problem of a policy from the cluster, by field."""

    severity: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class LoadedMirrored:
    """As `webhook.policy.Loaded`, with problems that name resources and fields."""

    policies: PolicySet | None
    problems: tuple[MirroredProblem, ...]


def load_mirrored(paths: Sequence[Path], *, strict: bool = False) -> LoadedMirrored:
    """What `webhook.policy.load` makes of the mirrored policies. An empty folder is no problem."""
    loaded = load(paths, strict=strict)
    told = (one for problem in loaded.problems for one in _told(problem))
    return LoadedMirrored(loaded.policies, tuple(told))


def _told(problem: Problem) -> list[MirroredProblem]:
    if problem.rule == "no-policies":
        return []
    try:
        text = Path(problem.file).read_text(encoding="utf-8")
        found, where = located((problem,), text), f"{PLURAL}/{name_in(text)}"
    except (OSError, ValueError, KeyError, TypeError):
        return [MirroredProblem(problem.severity, str(problem))]
    return [MirroredProblem(problem.severity, f"{where}: {problem.severity}: {one}") for one in found]


def load_files(paths: Sequence[Path], *, strict: bool = False) -> Loaded:
    """`webhook.policy.load`, for files beside a cluster, which knows the labels of its namespaces."""
    loaded = load(paths, strict=strict)
    return Loaded(loaded.policies, tuple(one for one in loaded.problems if one.rule not in UNTRUE))


def united(files: PolicySet | None, cluster: PolicySet, labels: KnownLabels) -> PolicySet:
    """One set, with the labels of namespaces. Of two policies with one name the file's is in it."""
    first = files.policies if files is not None else ()
    names = {policy.name for policy in first}
    return PolicySet((*first, *(policy for policy in cluster.policies if policy.name not in names)), labels)
