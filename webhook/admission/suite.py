"""Policy suites: cases that a folder of policies must decide as they say, without a cluster.

A suite is YAML of kind `Suite`. Each case is one write, captured or in the user's words, and what is expected of the
decision on it. The evaluator is the server's own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from webhook.admission.decide import decide
from webhook.admission.mutate import DoubtfulPatch
from webhook.admission.review import BadCall, review_of
from webhook.admission.suite_check import failures_of
from webhook.admission.suite_model import Captured, Case, Suite
from webhook.admission.suite_read import read_suites
from webhook.admission.suite_write import WriteError, review_of_write
from webhook.fields import FieldsError
from webhook.policy.compiled import Mode
from webhook.policy.load import load
from webhook.policy.policyset import PolicySet
from webhook.policy.problems import Place, Problem

_ENDINGS = (".yaml", ".yml")
_LOOKS_LIKE = re.compile(rb"^kind:\s*['\"]?Suite\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CaseReport:
    """How one case went. `failures` says what was expected and what came; empty where it passed."""

    name: str
    line: int
    seconds: float
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """How the suites of one file went. With `problems` cases may be missing, so it has not passed."""

    file: str
    cases: tuple[CaseReport, ...]
    problems: tuple[Problem, ...] = ()
    policies_load: bool = True

    @property
    def passed(self) -> bool:
        return not self.problems and all(case.passed for case in self.cases)


def find_suites(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files named, and those with suites in the folders named and below them, each once, in order."""
    found: dict[Path, None] = {}
    for path in paths:
        for file in _walk(path) if path.is_dir() else (path,):
            found.setdefault(file)
    return tuple(found)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        elif path.suffix in _ENDINGS and path.is_file() and _may_hold_suites(path):
            yield path


def _may_hold_suites(path: Path) -> bool:
    try:
        return _LOOKS_LIKE.search(path.read_bytes()) is not None
    except OSError:
        return True  # running it says what is wrong


def run_suite(path: Path) -> SuiteReport:
    """Runs the suites of one file. Never raises for what it reads: all that is wrong is in the report."""
    suites, problems = read_suites(path)
    cases: list[CaseReport] = []
    found = list(problems)
    policies_load = True
    for suite in suites:
        policies, faults = _policies(suite)
        found += faults
        if policies is None:
            policies_load = False
            continue
        for case in suite.cases:
            outcome = _run(case, policies, str(path))
            if isinstance(outcome, Problem):
                found.append(outcome)
            else:
                cases.append(outcome)
    return SuiteReport(str(path), tuple(cases), tuple(found), policies_load)


def _policies(suite: Suite) -> tuple[PolicySet | None, tuple[Problem, ...]]:
    """The suite's policies, all in its mode. Warnings about policies are the linter's to tell."""
    loaded = load(suite.policies)
    if loaded.policies is None:
        return None, loaded.errors
    if not loaded.policies.policies:
        return None, (
            _problem(suite.file, suite.policies_place, "no-policies", "no policy is there", "check the path"),
        )
    if suite.mode is None:
        return loaded.policies, ()
    return PolicySet(tuple(replace(policy, mode=suite.mode) for policy in loaded.policies.policies)), ()


def _run(case: Case, policies: PolicySet, file: str) -> CaseReport | Problem:
    begin = time.perf_counter()
    try:
        if isinstance(case.what, Captured):
            body = case.what.review
        else:
            body = review_of_write(case.what, shows_claims=case.phase == "mutate")
        decision = decide(policies, review_of(body), case.phase, Mode.ENFORCE)
        written = body["request"].get("object")  # null in a deletion
        failures = tuple(failures_of(case.expect, decision, written if isinstance(written, dict) else {}))
    except BadCall as error:
        return _problem(file, case.place, "unreadable-review", f"{case.name}: {error.message}", "see the review")
    except FieldsError as error:
        return _problem(file, case.place, "unreadable-review", f"{case.name}: {error.message}", "see managedFields")
    except DoubtfulPatch as error:
        failures = (f"the mutating call answers with an error: {error}",)
    except WriteError as error:
        return _problem(file, case.place, "impossible-write", f"{case.name}: {error}", "see docs/suites.md")
    return CaseReport(case.name, case.place.line, time.perf_counter() - begin, failures)


def _problem(file: Path | str, place: Place, rule: str, message: str, advice: str) -> Problem:
    return Problem("error", str(file), place.line, place.column, rule, message, advice)
