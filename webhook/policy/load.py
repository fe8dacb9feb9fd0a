"""Files and folders to a PolicySet: all or nothing, with every problem at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from webhook.policy.compile import compile_policy
from webhook.policy.drafts import Draft, draft_of
from webhook.policy.lint import lint
from webhook.policy.lint_cross import lint_cross
from webhook.policy.model import API_VERSION, KIND
from webhook.policy.policyset import PolicySet
from webhook.policy.problems import Place, Problem, in_order, problem
from webhook.policy.source import MAX_BYTES, Node, Table, decode, find_value, read

_ENDINGS = (".yaml", ".yml")
_START = Place(1, 1)


@dataclass(frozen=True, slots=True)
class Loaded:
    """`policies` is None when any problem is an error; warnings never stop anything."""

    policies: PolicySet | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(one for one in self.problems if one.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(one for one in self.problems if one.severity == "warning")


@dataclass(frozen=True, slots=True)
class _File:
    """A file to read; one that a folder holds may also hold suites."""

    path: Path
    in_folder: bool


def load(paths: Iterable[Path], *, strict: bool = False) -> Loaded:
    """Reads files, and folders with all that is in them (`*.yaml`, `*.yml`; names that begin with a dot are left out).

    Never raises for what it reads. A file named must hold policies alone; in a folder documents of `kind: Suite` are
    passed over. With `strict`, owners by name alone in Enforce are errors.
    """
    drafts: list[Draft] = []
    problems: list[Problem] = []
    given = [Path(path) for path in paths]
    for found in _files(given):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        text = _text(found.path)
        if isinstance(text, Problem):
            problems.append(text)
            continue
        more, faults = _documents(text, str(found.path), suites=found.in_folder)
        drafts += more
        problems += faults
    if not drafts and not problems:
        where = str(given[0]) if given else "."
        problems.append(problem("no-policies", where, _START, "no policy is here"))
    return _loaded(drafts, problems, strict=strict)


def load_text(text: str, file: str, *, strict: bool = False) -> Loaded:
    """The same for one text, which is called `file` in problems."""
    drafts, problems = _documents(text, file, suites=False)
    if not drafts and not problems:
        problems.append(problem("no-policies", file, _START, "no policy is here"))
    return _loaded(drafts, problems, strict=strict)


def _loaded(drafts: list[Draft], problems: list[Problem], *, strict: bool) -> Loaded:
    for draft in drafts:
        problems += lint(draft, strict=strict)
    problems += lint_cross(drafts)
    found = in_order(problems)
    if any(one.severity == "error" for one in found):
        return Loaded(None, found)
    policies = [compile_policy(draft.policy, draft.file) for draft in drafts if draft.policy is not None]
    return Loaded(PolicySet(tuple(sorted(policies, key=lambda policy: policy.name))), found)


def _documents(text: str, file: str, *, suites: bool) -> tuple[list[Draft], list[Problem]]:
    source = read(text, file)
    drafts: list[Draft] = []
    problems = list(source.problems)
    for root in source.documents:
        kind = find_value(root, "kind")
        if suites and kind == "Suite":
            continue
        if (wrong := _wrong_kind(root, kind, file)) is not None:
            problems.append(wrong)
            continue
        draft, faults = draft_of(root, file)
        drafts.append(draft)
        problems += faults
    return drafts, problems


def _wrong_kind(root: Node, kind: object, file: str) -> Problem | None:
    advice = f"begin it with apiVersion: {API_VERSION} and kind: {KIND}"
    if not isinstance(root, Table):
        return problem("wrong-kind", file, root.place, "the document is not a mapping", advice=advice)
    if not {"apiVersion", "kind"} & set(root.entries):
        return problem("wrong-kind", file, root.place, "the document says neither apiVersion nor kind", advice=advice)
    if isinstance(kind, str) and kind != KIND and "kind" in root.entries:
        place = root.entries["kind"].node.place
        near = f"did you mean {KIND}?" if kind.lower().rstrip("s") == KIND.lower() else None
        return problem("wrong-kind", file, place, f"a {KIND} is expected here", advice=near)
    return None


def _files(paths: Iterable[Path]) -> Iterator[_File | Problem]:
    """Each file once, those of a folder in the order of their paths."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        try:
            about = path.stat()
        except (OSError, ValueError) as error:
            yield _unreadable(path, error)
            continue
        if stat.S_ISDIR(about.st_mode):
            yield from _folder(path, seen)
        elif (about.st_dev, about.st_ino) not in seen:
            seen.add((about.st_dev, about.st_ino))
            yield _File(path, in_folder=False)


def _folder(folder: Path, seen: set[tuple[int, int]]) -> Iterator[_File | Problem]:
    """Names with a leading dot are left out: a mounted ConfigMap holds each file twice, once below `..data`."""
    try:
        about = folder.stat()
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except OSError as error:
        yield _unreadable(folder, error)
        return
    if (about.st_dev, about.st_ino) in seen:  # a link back to a folder above
        return
    seen.add((about.st_dev, about.st_ino))
    for name in names:
        path = folder / name
        if name.startswith("."):
            continue
        try:
            about = path.stat()
        except OSError as error:
            if name.endswith(_ENDINGS):
                yield _unreadable(path, error)
            continue
        if stat.S_ISDIR(about.st_mode):
            yield from _folder(path, seen)
        elif name.endswith(_ENDINGS) and stat.S_ISREG(about.st_mode) and (about.st_dev, about.st_ino) not in seen:
            seen.add((about.st_dev, about.st_ino))
            yield _File(path, in_folder=True)


def _text(path: Path) -> str | Problem:
    try:
        with path.open("rb") as file:
            return decode(file.read(MAX_BYTES + 1), str(path))
    except (OSError, ValueError) as error:
        return _unreadable(path, error)


def _unreadable(path: Path, error: Exception) -> Problem:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "it cannot be read"
    return problem("unreadable-file", str(path), _START, reason)
