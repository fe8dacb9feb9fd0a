"""`fieldwarden lint`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.common import ANY, STDIN, colored, counted, no_color, output, print_data, read_bytes

if TYPE_CHECKING:
    from webhook.policy import Loaded, Problem

_COLORS = {"error": "red", "warning": "yellow"}


@click.command()
@click.argument("paths", metavar="FILE|DIR...", nargs=-1, required=True, type=ANY)
@click.option("--strict", is_flag=True, help="Owners known by name alone, in Enforce, are errors.")
@output(("table", "json", "yaml"), "table")
@no_color
def lint(paths: tuple[Path, ...], strict: bool, output: str, no_color: bool) -> None:
    """Say everything that is wrong in policies, each problem with file:line:column and advice.

    All that is given is one set, as the server would load it: two policies that can never both be satisfied are found
    too. Folders are walked for *.yaml and *.yml. `-` reads standard input. Errors keep a set from loading, warnings
    never do.

    \b
    Examples:
      fieldwarden lint policies/
      fieldwarden lint --strict -o json policy.yaml
      kubectl get configmap policies -o jsonpath='{.data.policy\\.yaml}' | fieldwarden lint -

    Exit codes: 0 no error, 1 at least one, 2 wrong use.
    """
    loaded = _load(paths, strict=strict)
    if output == "table":
        _print(loaded, paths, color=colored(no_color))
    else:
        print_data(_data(loaded), output)
    raise click.exceptions.Exit(1 if loaded.errors else 0)


def _load(paths: tuple[Path, ...], *, strict: bool) -> Loaded:
    from webhook.policy import Problem, load, load_text
    from webhook.policy.load import Loaded
    from webhook.policy.source import decode

    if all(str(path) != STDIN for path in paths):
        return load(paths, strict=strict)
    if len(paths) > 1:
        raise click.UsageError("- reads all policies from standard input: give it alone")
    text = decode(read_bytes(paths[0]), "<stdin>")
    return Loaded(None, (text,)) if isinstance(text, Problem) else load_text(text, "<stdin>", strict=strict)


def _print(loaded: Loaded, paths: tuple[Path, ...], *, color: bool) -> None:
    for problem in loaded.problems:
        click.echo(_line(problem, color=color), color=color)
    told = [counted(len(loaded.errors), "error"), counted(len(loaded.warnings), "warning")]
    if loaded.policies is None:
        click.echo(f"{', '.join(told)}. Nothing of this would load.")
        return
    told = [told[1] if loaded.warnings else "no problems"]
    click.echo(f"{counted(len(loaded.policies.policies), 'policy')}, {told[0]}.")
    if loaded.policies.policies and all(str(path) != STDIN for path in paths):
        folders = " ".join(str(path) for path in paths if path.is_dir())
        click.echo(f"Next: fieldwarden test {folders or 'SUITE'}, or fieldwarden review FILE --policies {paths[0]}")


def _line(problem: Problem, *, color: bool) -> str:
    text = str(problem)
    if not color:
        return text
    word = f" {problem.severity}: "
    return text.replace(word, click.style(word, fg=_COLORS[problem.severity], bold=True), 1)


def _data(loaded: Loaded) -> dict[str, Any]:
    return {
        "problems": [
            {
                "severity": problem.severity,
                "file": problem.file,
                "line": problem.line,
                "column": problem.column,
                "rule": problem.rule,
                "message": problem.message,
                "advice": problem.advice,
            }
            for problem in loaded.problems
        ],
        "errors": len(loaded.errors),
        "warnings": len(loaded.warnings),
        "policies": [policy.name for policy in loaded.policies.policies] if loaded.policies is not None else [],
    }
