"""What several commands share: options, standard input, and data as JSON or YAML."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

STDIN = "-"
MODES = ("Audit", "Warn", "Enforce")
ANY = click.Path(path_type=Path, allow_dash=True, exists=True)


def output(formats: Sequence[str], default: str) -> Callable[[F], F]:
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=default, show_default=True, help="How to print."
    )


no_color = click.option("--no-color", is_flag=True, help="Print without colours.")


def colored(no_color: bool) -> bool:
    """Whether to colour what goes to standard output: on a terminal, unless somebody does not want it."""
    import os

    return not no_color and not os.environ.get("NO_COLOR") and sys.stdout.isatty()


def print_data(value: Any, form: str) -> None:
    """Prints plain data as `json` or `yaml`."""
    if form == "json":
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
        return
    import yaml

    click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120), nl=False)


def read_bytes(path: Path) -> bytes:
    """A file, or standard input for `-`; raises UsageError where it cannot be read."""
    if str(path) == STDIN:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "error"), counted(2, "error"), counted(2, "policy")
    ('1 error', '2 errors', '2 policies')
    """
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else many}"
