"""Tables on a terminal or in a file: as wide as the one, and unbroken in the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNBOUNDED = 500  # where no terminal says how wide a line may be


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with a style of rich's, such as `bold red`."""

    text: str
    style: str = ""


def print_table(headers: Sequence[str], rows: Iterable[Sequence[Cell | str]], *, color: bool) -> None:
    """Prints rows under headers to standard output. Texts are printed as they are, never as markup."""
    console = Console(no_color=not color, highlight=False)
    if not console.is_terminal:
        console = Console(no_color=True, highlight=False, width=_UNBOUNDED)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell) for cell in row))
    console.print(table)


def _text(cell: Cell | str) -> Text:
    return Text(cell) if isinstance(cell, str) else Text(cell.text, style=cell.style)
