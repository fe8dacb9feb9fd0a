"""Which policies of a cluster may be in force together, when not all of them can.

A faulty one is left out alone. Of two that cannot both be, the one stays that was in force before, else the older one;
what the files hold comes before all. Where an earlier version of a policy was in force, it stays.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webhook.cluster.api import Object
from webhook.cluster.resource import PLURAL, FieldProblem, located, problems_of, text_of
from webhook.policy import Problem, load

Texts = dict[str, str]
"""Policies by name, as documents."""

MOST_TOLD = 10
"""Reasons why a policy is left out: it may clash with every other."""

_LONGEST = 240  # a file's name may have 255 bytes, a policy's 253


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A policy that is not in force as it is in the cluster; `earlier`: an earlier version of it is."""

    name: str
    problems: tuple[str, ...]
    earlier: bool

    def __str__(self) -> str:
        state = "stays in force as it last was good" if self.earlier else "is not in force"
        return f"{PLURAL}/{self.name} {state}: {'; '.join(self.problems)}"


@dataclass(frozen=True, slots=True)
class Settled:
    """The policies to be in force, and those of the cluster that are not."""

    texts: Texts
    left_out: tuple[LeftOut, ...]


def file_name(policy: str) -> str:
    """Where a policy lies in a folder.

    >>> file_name("labels-come-from-git"), len(file_name("a" * 253))
    ('labels-come-from-git.yaml', 69)
    """
    return f"{policy if len(policy) <= _LONGEST else hashlib.sha256(policy.encode()).hexdigest()}.yaml"


@dataclass(frozen=True, slots=True)
class Clash:
    """Why policies do not load as one set, and which of the cluster's it is about: one that is faulty, or two."""

    text: str
    between: frozenset[str]


@dataclass(slots=True)
class Together:
    """Whether policies load as one set with those in files."""

    files: Sequence[Path]
    scratch: Path  # a folder for drafts
    strict: bool = False

    def errors(self, texts: Mapping[str, str]) -> tuple[str, ...]:
        """Why they do not."""
        return tuple(clash.text for clash in self.clashes(texts))

    def clashes(self, texts: Mapping[str, str]) -> tuple[Clash, ...]:
        """The same, with whose fault it is; nothing where the files are at fault themselves, for then nothing can be said."""
        folder = Path(tempfile.mkdtemp(prefix=".together-", dir=self.scratch))
        try:
            names = {str(folder / file_name(name)): name for name in texts}
            for file, name in names.items():
                Path(file).write_text(texts[name], encoding="utf-8")
            found = load([*self.files, folder], strict=self.strict).problems
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        errors = [problem for problem in found if problem.severity == "error"]
        if not errors or (self.files and load(self.files, strict=self.strict).policies is None):
            return ()
        return tuple(
            Clash(_told(problem, names, texts), frozenset(texts.keys() & {names.get(problem.file), problem.other}))
            for problem in errors
        )


def _told(problem: Problem, names: Mapping[str, str], texts: Mapping[str, str]) -> str:
    name = names.get(problem.file)
    if name is None:
        return str(problem)
    return "; ".join(map(str, located((problem,), texts[name])))


@dataclass(slots=True)
class Settling:
    """Remembers what the linter said of texts that it has seen."""

    together: Together
    _known: dict[str, tuple[FieldProblem, ...]] = field(default_factory=dict)

    def settle(self, resources: Iterable[Object], good: Mapping[str, str]) -> Settled:
        """`good` is what is in force now, by name."""
        wanted: Texts = {}
        faults: dict[str, tuple[str, ...]] = {}
        ages: dict[str, str] = {}
        known: dict[str, tuple[FieldProblem, ...]] = {}
        for resource in resources:
            name, text = resource["metadata"]["name"], text_of(resource)
            ages[name] = str(resource["metadata"].get("creationTimestamp", ""))
            known[text] = problems = self._lint(resource, text)
            errors = tuple(str(one) for one in problems if one.is_error)
            if errors:
                faults[name] = errors
            else:
                wanted[name] = text
        self._known = known
        order = sorted(wanted, key=lambda name: (good.get(name) != wanted[name], ages[name], name))
        texts = self._admit({}, [(name, wanted[name]) for name in order], faults)
        older = [(name, good[name]) for name in sorted(faults) if good.get(name, wanted.get(name)) != wanted.get(name)]
        texts = self._admit(texts, older, {})
        left_out = (LeftOut(name, problems, name in texts) for name, problems in sorted(faults.items()))
        return Settled(dict(sorted(texts.items())), tuple(left_out))

    def problems(self, resource: Object) -> tuple[FieldProblem, ...]:
        """What the linter says of one resource by itself."""
        return self._lint(resource, text_of(resource))

    def _lint(self, resource: Object, text: str) -> tuple[FieldProblem, ...]:
        found = self._known.get(text)
        return found if found is not None else problems_of(resource, strict=self.together.strict)

    def _admit(self, base: Texts, more: list[tuple[str, str]], faults: dict[str, tuple[str, ...]]) -> Texts:
        """The base, and of the others all that load with it and with those before them. The rest and why goes into `faults`."""
        left = dict(more)
        while left and (clashes := self.together.clashes({**base, **left})):
            for name, told in _out(clashes, base, list(left)).items():
                faults[name] = told
                del left[name]
        return {**base, **left}


def _out(clashes: Sequence[Clash], base: Iterable[str], order: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Who must go and why: whoever is faulty alone, or beside the base or one before him who stays.

    All clashes of a set are told at once, so this is found out by one load, however many there are.
    """
    stay, out = set(base), {}
    by_name: dict[str, list[Clash]] = {}
    for clash in clashes:
        for name in clash.between:
            by_name.setdefault(name, []).append(clash)
    for name in order:
        told = [clash.text for clash in by_name.get(name, ()) if clash.between - {name} <= stay]
        if told:
            out[name] = first_of(told, MOST_TOLD)
        else:
            stay.add(name)
    return out or {order[-1]: first_of([clash.text for clash in clashes], MOST_TOLD)}


def first_of(told: Sequence[str], most: int) -> tuple[str, ...]:
    """As many as people read, and how many more there are.

    >>> first_of(["a", "b", "c"], 3), first_of(["a", "b", "c"], 1)
    (('a', 'b', 'c'), ('a', 'and 2 more'))
    """
    rest = len(told) - most
    return tuple(told) if rest <= 0 else (*told[:most], f"and {rest} more")


def name_in(text: str) -> str:
    """The name of the policy in a document that `text_of` made."""
    return str(json.loads(text)["metadata"]["name"])
