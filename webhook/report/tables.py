"""Tables as text: as wide as the terminal, and unbroken where there is none."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNBOUNDED = 1000  # where no terminal says how wide a line may be


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with a style of rich's, such as `bold red`."""

    text: str
    style: str = ""


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell | str]], *, color: bool) -> str:
    """Rows under headers. Texts stand as they are, never as markup.

    >>> print(table(("Case", "Outcome"), [("one", Cell("passed", "green")), ("[two]", "failed")], color=False))
    Case    Outcome
    ───────────────
    one     passed
    [two]   failed
    """
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for header in headers:
        made.add_column(header, overflow="fold")
    for row in rows:
        made.add_row(*(_text(cell) for cell in row))
    buffer = io.StringIO()
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNBOUNDED
    Console(
        file=buffer, width=width, color_system="standard" if color else None, force_terminal=color, highlight=False
    ).print(made)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def _text(cell: Cell | str) -> Text:
    return Text(cell) if isinstance(cell, str) else Text(cell.text, style=cell.style)
