"""A suite's file: YAML to cases, with every problem and its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast, get_args

from webhook.admission.json import JsonError, loads
from webhook.admission.suite_expect import read_expectation
from webhook.admission.suite_model import (
    SUBRESOURCES,
    Captured,
    Case,
    Client,
    Operation,
    StandingClaim,
    Suite,
    Write,
)
from webhook.admission.suite_nodes import Fields, Notes, data
from webhook.policy.compiled import Mode
from webhook.policy.evaluate import Phase
from webhook.policy.problems import Problem
from webhook.policy.source import Node, Scalar, Source, Table, decode, plain, read

API_VERSION = "fieldwarden.dev/v1alpha1"
KIND = "Suite"

_SUITE = ("apiVersion", "kind", "metadata", "policies", "mode", "cases")
_WRITE = (
    "old",
    "new",
    "claims",
    "applied",
    "user",
    "groups",
    "manager",
    "operation",
    "subresource",
    "dryRun",
    "resource",
)
_CASE = ("name", "review", *_WRITE, "phase", "expect")
_CLAIM = ("manager", "operation", "subresource", "fields")
_START = "begin it with apiVersion: fieldwarden.dev/v1alpha1 and kind: Suite"


def read_suites(file: Path) -> tuple[tuple[Suite, ...], tuple[Problem, ...]]:
    """All suites of a file (a file may hold several documents), and all that is wrong with it. Never raises."""
    source = _source(file)
    notes = Notes(str(file), list(source.problems))
    suites = [suite for root in source.documents if (suite := _Reader(file, notes).suite(root)) is not None]
    if not source.documents and not notes.problems:
        notes.problems.append(Problem("error", str(file), 1, 1, "no-cases", "no suite is here", _START))
    return tuple(suites), tuple(sorted(notes.problems, key=lambda p: (p.line, p.column, p.rule)))


def _source(file: Path) -> Source:
    try:
        text = decode(file.read_bytes(), str(file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be read"
        return Source((), (Problem("error", str(file), 1, 1, "unreadable-file", reason, "check the path"),))
    return read(text, str(file)) if isinstance(text, str) else Source((), (text,))


class _Reader:
    """Reads the documents of one file."""

    def __init__(self, file: Path, notes: Notes) -> None:
        self.file = file
        self.notes = notes

    def suite(self, root: Node) -> Suite | None:
        if not isinstance(root, Table):
            self.notes.report("wrong-kind", root.place, "the document is not a mapping", _START)
            return None
        if "kind" in root.entries and plain(root.entries["kind"].node) != KIND:
            self.notes.report("wrong-kind", root.entries["kind"].node.place, f"a {KIND} is expected here", _START)
            return None
        suite = Fields(self.notes, root, _SUITE)
        suite.choice("apiVersion", (API_VERSION,))
        if (metadata := suite.fields("metadata", ("name",))) is not None:
            metadata.text("name")
        mode = suite.choice("mode", tuple(Mode))
        policies = suite.texts("policies")
        cases = suite.items("cases")
        if not suite.require(("apiVersion", "kind", "policies", "cases"), root.place) or not policies or not cases:
            return None
        read_cases = [case for node in cases if (case := self._case(suite, node)) is not None]
        self._once(read_cases)
        return Suite(
            file=self.file,
            policies=tuple(self.file.parent / text for text in policies),
            policies_place=suite.place("policies"),
            mode=Mode(mode) if mode is not None else None,
            cases=tuple(read_cases),
        )

    def _once(self, cases: list[Case]) -> None:
        seen: set[str] = set()
        for case in cases:
            if case.name in seen:
                self.notes.report(
                    "duplicate-case", case.place, "there is a case of this name already", "give each its own name"
                )
            seen.add(case.name)

    def _case(self, suite: Fields, node: Node) -> Case | None:
        case = suite.fields_of(node, _CASE)
        if case is None or not case.require(("name", "expect"), node.place):
            return None
        before = len(self.notes.problems)
        name = case.text("name")
        phase = cast(Phase, case.choice("phase", get_args(Phase)) or "validate")
        expect = read_expectation(case, phase)
        what = self._what(case)
        if name is None or expect is None or what is None or len(self.notes.problems) > before:
            return None
        return Case(name, node.place, phase, what, expect)

    def _what(self, case: Fields) -> Captured | Write | None:
        if "review" not in case:
            return self._write(case)
        for key in _WRITE:
            if key in case:
                self.notes.report(
                    "case-shape", case.place(key), f"{key} beside review", "a review says all this itself: remove it"
                )
        review = self._data(case, "review")
        return Captured(review) if review is not None else None

    def _write(self, case: Fields) -> Write | None:
        if "new" not in case:
            self.notes.report("case-shape", case.table.place, "the case writes nothing", "add review, or new and user")
            return None
        if not case.require(("user", "manager", "operation"), case.table.place):
            return None
        new = self._object(case, "new")
        old = self._object(case, "old") if "old" in case else None
        user, manager = case.text("user"), case.text("manager")
        operation = case.choice("operation", get_args(Operation))
        subresource = case.choice("subresource", SUBRESOURCES) or ""
        claims = self._claims(case)
        applied = case.patterns("applied")
        if applied is not None and operation == "Update":
            self.notes.report("case-shape", case.place("applied"), "an Update applies nothing", "remove applied")
        if "claims" in case and old is None:
            self.notes.report("case-shape", case.place("claims"), "a creation meets no claims", "add old, or remove it")
        if new is None or user is None or manager is None or operation is None:
            return None
        return Write(
            old=old,
            new=new,
            claims=claims,
            applied=applied,
            client=Client(
                user=user,
                groups=case.texts("groups") or (),
                manager=manager,
                operation=cast(Operation, operation),
                subresource=subresource,
                dry_run=bool(case.flag("dryRun")),
            ),
            resource=case.text("resource"),
        )

    def _claims(self, case: Fields) -> tuple[StandingClaim, ...]:
        found = []
        for node in (case.items("claims") or ()) if "claims" in case else ():
            claim = case.fields_of(node, _CLAIM)
            if claim is None or not claim.require(("manager", "operation"), node.place):
                continue
            manager, operation = claim.text("manager"), claim.choice("operation", get_args(Operation))
            subresource = claim.choice("subresource", SUBRESOURCES) or ""
            patterns = claim.patterns("fields")
            if manager is not None and operation is not None:
                found.append(StandingClaim(manager, cast(Operation, operation), subresource, patterns))
        return tuple(found)

    def _object(self, case: Fields, key: str) -> dict[str, Any] | None:
        found = self._data(case, key)
        if found is None:
            return None
        place = case.place(key)
        if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in ("apiVersion", "kind")):
            self.notes.report("bad-object", place, f"{key} is no object of Kubernetes", "give it apiVersion and kind")
            return None
        metadata = found.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            self.notes.report("bad-object", place, f"{key} has no name", "give it metadata: {name: ...}")
            return None
        return found

    def _data(self, case: Fields, key: str) -> Any:
        """What a key holds: an object written in place, or a file, whose path is relative to the suite."""
        node = case.node(key)
        if not isinstance(node, Scalar):
            return data(node) if node is not None else None
        text = case.text(key)
        if text is None:
            return None
        path = self.file.parent / text
        try:
            body = path.read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it cannot be read"
            self.notes.report("unreadable-file", node.place, f"{text}: {reason}", "paths are relative to the suite")
            return None
        return self._yaml(path, node) if path.suffix in (".yaml", ".yml") else self._json(body, node)

    def _json(self, body: bytes, node: Scalar) -> Any:
        try:
            return loads(body)
        except JsonError as error:
            self.notes.report("unreadable-file", node.place, f"{node.value} is not JSON: {error}", "see the file")
            return None

    def _yaml(self, path: Path, node: Scalar) -> Any:
        source = _source(path)
        self.notes.problems += source.problems
        if len(source.documents) != 1:
            if not source.problems:
                self.notes.report(
                    "unreadable-file", node.place, f"{node.value} holds no single document", "see the file"
                )
            return None
        return data(source.documents[0])
