"""The command line."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code; `arguments` are those of the process where not given."""
    from webhook.cli.app import run

    return run(arguments)
