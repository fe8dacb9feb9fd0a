"""`fieldwarden review`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.common import ANY, MODES, STDIN, colored, no_color, output, print_data, read_bytes

if TYPE_CHECKING:
    from webhook.admission import Answer
    from webhook.policy import PolicySet

_POLICIES = click.Path(path_type=Path, exists=True)


@click.command()
@click.argument("file", metavar="FILE|-", type=ANY)
@click.option("--policies", multiple=True, required=True, type=_POLICIES, help="A folder or file; repeatable.")
@click.option(
    "--phase",
    type=click.Choice(("validate", "mutate")),
    default="validate",
    show_default=True,
    help="Which of the two calls it is. What needs claims on /scale is judged in the mutating one.",
)
@click.option(
    "--mode", type=click.Choice(MODES), default="Enforce", show_default=True, help="The most a policy may do."
)
@output(("json", "yaml", "table"), "json")
@no_color
def review(file: Path, policies: tuple[Path, ...], phase: str, mode: str, output: str, no_color: bool) -> None:
    """Answer one AdmissionReview as the server would send the answer.

    The review comes from a file, or from standard input with `-`. Policies keep their own modes, which --mode caps: a
    policy in Audit denies nothing here either, and the answer's audit annotations say what it found.

    \b
    Examples:
      fieldwarden review review.json --policies policies/
      fieldwarden review review.json --policies policies/ -o table
      fieldwarden review scale.json --policies policies/ --phase mutate

    Exit codes: 0 allowed, 1 denied, 2 the review cannot be read, 4 the policies do not load.
    """
    from webhook.admission import BadCall, Engine
    from webhook.policy import Mode

    engine = Engine(_load(policies), Mode(mode))
    body = read_bytes(file)
    try:
        answer = engine.answer(body, "mutate" if phase == "mutate" else "validate")
    except BadCall as error:
        where = "<stdin>" if str(file) == STDIN else file
        raise click.UsageError(f"{where}: {error.message} [{error.reason}]") from None
    if output == "table":
        _print(answer, color=colored(no_color))
    else:
        print_data(json.loads(answer.response), output)
    raise click.exceptions.Exit(0 if answer.decision.allowed else 1)


def _load(paths: tuple[Path, ...]) -> PolicySet:
    from webhook.policy import load

    loaded = load(paths)
    for problem in loaded.problems:
        click.echo(str(problem), err=True)
    if loaded.policies is None:
        click.echo("Error: the policies do not load.", err=True)
        raise click.exceptions.Exit(4)
    return loaded.policies


def _print(answer: Answer, *, color: bool) -> None:
    from webhook.report.tables import Cell, table

    decision, asked = answer.decision, answer.review
    resource = f"{asked.resource.resource}/{asked.subresource}" if asked.subresource else asked.resource.resource
    where = f"{asked.namespace}/{asked.name}" if asked.namespace else asked.name
    verdict = click.style("allowed", fg="green") if decision.allowed else click.style("denied", fg="red", bold=True)
    click.echo(f"{verdict}: {asked.operation} {resource} {where} by {asked.user.name}", color=color)
    if decision.results:
        rows = [
            (
                Cell(result.kind, "bold"),
                f"{result.policy}/{result.rule}",
                str(result.mode),
                Cell(result.would, "red" if result.outcome == "refused" else "yellow"),
                "\n".join(result.paths),
            )
            for result in decision.results
        ]
        click.echo(table(("Event", "Policy/rule", "Mode", "Wants", "Paths"), rows, color=color), color=color)
    for warning in decision.warnings:
        click.echo(f"Warning: {warning}")
    if decision.message:
        click.echo(decision.message)
    if not decision.results:
        click.echo("No policy has anything to say about it.")
