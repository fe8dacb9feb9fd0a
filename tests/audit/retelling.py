"""The stories of another folder, told again where fieldwarden audits. Not a word of them is changed.

What a story says of Enforce it says of the first write on which the two differ; after that its object is another than the
story thinks. So a plain `assert` is evaluated, for the writes that it may hold, and not believed; an Answer is asked what
the story expected of it for as long as nothing has gone otherwise.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import pytest

from tests.audit.mirror import Tally
from tests.audit.servers import Beside
from tests.audit.told import LEFT_OUT, NAMED_ANEW, SHORT, is_of
from tests.stories.support import Answer, Story

TESTS = Path(__file__).parent.parent
_WRITES = frozenset({"apply", "flux", "kubectl", "program", "python"})
_STUMBLES = (AssertionError, AttributeError, LookupError, StopIteration, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Weighed(Answer):
    """An Answer by what the audit recorded. `sure`: the object is still as Enforce would have left it."""

    sure: bool
    tally: Tally

    def recorded(self, *events: str) -> Self:
        return self._expect(Counter(events))

    def rewrote(self, *events: str, recorded: Sequence[str] = ()) -> Self:
        return self._expect(Counter([*events, *recorded]))

    def denied(self, *events: str) -> Self:
        """Enforce may have found more, that alone would not have refused it."""
        return self._expect(Counter(events), more=True)

    def _expect(self, events: Counter[str], *, more: bool = False) -> Self:
        """A fault is noted, not raised: it may be a part of what is not believed."""
        found = Counter(self.found)
        if self.refused or self.rewritten:
            self.tally.faults.append(f"{self.refused} refused it, {self.rewritten} was rewritten")
        elif self.sure and (events - found or not (more or found == events)):
            self.tally.faults.append(f"the story says {list(events)}, recorded is {list(found)}")
        elif self.sure:
            self.tally.believed += 1
        return self


class Retold(Story):
    """A story whose every write is one step, and whose object Enforce may have left otherwise."""

    server: Any  # a Beside
    astray = False
    steps: ClassVar[int] = 0  # of all stories

    def _told(self, write: Callable[[], Any]) -> Answer:
        beside: Beside = self.server
        mark, tally = beside.would.mark(), beside.twins.mirror.tally
        before = tally.compared
        answer = super()._told(write)
        Retold.steps += 1
        tally.steps += 1
        tally.silent += tally.compared == before
        told = {field.name: getattr(answer, field.name) for field in fields(Answer)}
        weighed = Weighed(**told, sure=not self.astray, tally=tally)
        outcomes = {result["outcome"] for line in beside.would.reviews(mark) for result in line.get("results", ())}
        if outcomes & {"refused", "rewritten"}:
            self.astray = True
        return weighed


class Shelf(pytest.File):
    """The files of a folder of stories."""

    def __init__(self, *, folder: Path, **kw: Any) -> None:
        super().__init__(**kw)
        self.folder = folder

    def collect(self) -> Iterator[pytest.Collector]:
        for path in sorted(self.folder.glob("test_*.py")):
            book: Book = Book.from_parent(self, path=path, name=path.name, nodeid=f"{self.nodeid}::{path.name}")
            book.name = path.name
            yield book


class Book(pytest.Module):
    """One file of stories."""

    def _getobj(self) -> ModuleType:
        return loaded(self.path)

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        items = list(super().collect())
        out = [item for item in items if _named(LEFT_OUT, item.nodeid)]
        self.config.hook.pytest_deselected(items=out)
        for item in items:
            if why := _named(SHORT, item.nodeid):
                item.add_marker(pytest.mark.xfail(reason=why, raises=ValueError, strict=True))
        return [item for item in items if item not in out]


def _named(names: Mapping[str, str], nodeid: str) -> str | None:
    return next((why for name, why in names.items() if is_of(nodeid, name)), None)


def loaded(path: Path) -> ModuleType:
    """A module like the one in the file, in which no assert fails, and every story is one told again."""
    name = ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)
    module = ModuleType(f"{name}_retold")
    module.__file__ = str(path)
    tree = ast.fix_missing_locations(_Unbelieving().visit(ast.parse(path.read_text(), str(path))))
    module.__dict__["_weigh"] = weigh
    sys.modules[module.__name__] = module  # dataclasses look there
    exec(compile(tree, str(path), "exec"), module.__dict__)  # our own stories
    changed: dict[str, Any] = {"Story": Retold, **NAMED_ANEW.get(path.relative_to(TESTS).as_posix(), {})}
    module.__dict__.update({name: new for name, new in changed.items() if name in module.__dict__})
    return module


class _Unbelieving(ast.NodeTransformer):
    """`assert said` becomes `_weigh(lambda: said, steps)`."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        nobody = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        weighing = ast.Call(
            ast.Name("_weigh", ast.Load()), [ast.Lambda(nobody, node.test), ast.Constant(_steps(node.test))], []
        )
        return ast.copy_location(ast.Expr(weighing), node)


def _steps(said: ast.expr) -> int:
    """How often it has a story write."""
    calls = [node.func for node in ast.walk(said) if isinstance(node, ast.Call)]
    return sum(isinstance(call, ast.Attribute) and call.attr in _WRITES for call in calls)


def weigh(said: Callable[[], object], steps: int) -> None:
    """Whatever it comes to, once what it has a story write is written."""
    before = Retold.steps
    try:
        said()
    except _STUMBLES as error:
        if Retold.steps - before < steps:
            pytest.fail(f"it ended before all was written: {error!r}")
