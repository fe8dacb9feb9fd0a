"""The table of a replay: what each client did, the answer, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

Outcome = Literal["denied", "rewritten", "recorded", "allowed", "error"]
_STYLES = {"denied": "bold red", "rewritten": "cyan", "recorded": "yellow", "allowed": "green", "error": "bold magenta"}
_WIDTH = 118  # where nobody's terminal says otherwise


@dataclass(frozen=True, slots=True)
class Replayed:
    """One review that was sent and answered."""

    what: str
    outcome: Outcome
    why: str


def print_replay(rows: Iterable[Replayed], *, color: bool = True) -> None:
    """Prints the table to standard output, as wide as the terminal."""
    console = Console(no_color=not color, highlight=False)
    if not console.is_terminal:
        console = Console(no_color=True, highlight=False, width=_WIDTH)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=False, padding=(0, 1))
    table.add_column("What the client did", ratio=5)
    table.add_column("Answer", no_wrap=True)
    table.add_column("Why", ratio=6)
    for row in rows:
        table.add_row(Text(row.what), Text(row.outcome, style=_STYLES[row.outcome]), Text(row.why))
    console.print(table)
