"""`fieldwarden review`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.common import ANY, MODES, STDIN, colored, no_color, output, print_data, read_bytes

if TYPE_CHECKING:
    from webhook.admission import Answer, Decision
    from webhook.policy import PolicySet

_STYLES = {"refused": "bold red", "rewritten": "green", "recorded": "yellow"}
_NOTHING_TO_REWRITE = "Nothing is rewritten. What policies deny or record, the validating call says."
_POLICIES = click.Path(path_type=Path, exists=True)


@click.command()
@click.argument("file", metavar="FILE|-", type=ANY)
@click.option("--policies", multiple=True, required=True, type=_POLICIES, help="A folder or file; repeatable.")
@click.option(
    "--phase",
    type=click.Choice(("validate", "mutate")),
    default="validate",
    show_default=True,
    help="Which of the two calls it is. The mutating one rewrites; the validating one judges all else.",
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

    With --phase mutate the answer carries the patch, as base64 in response.patch. -o table shows what was rewritten,
    whose the paths were before and after, and what the patch touches, never values. Only policies in Enforce rewrite.
    On /scale the mutating call alone sees claims, and denies what needs them.

    \b
    Examples:
      fieldwarden review review.json --policies policies/
      fieldwarden review review.json --policies policies/ -o table
      fieldwarden review review.json --policies policies/ --phase mutate -o table
      fieldwarden review review.json --policies policies/ --phase mutate | jq -r .response.patch | base64 -d

    Exit codes: 0 allowed, 1 denied, 2 the review cannot be read, 4 the policies do not load.
    """
    from webhook.admission import BadCall, DoubtfulPatch, Engine
    from webhook.policy import Mode

    engine = Engine(_load(policies), Mode(mode))
    body = read_bytes(file)
    try:
        answer = engine.answer(body, "mutate" if phase == "mutate" else "validate")
    except BadCall as error:
        where = "<stdin>" if str(file) == STDIN else file
        raise click.UsageError(f"{where}: {error.message} [{error.reason}]") from None
    except DoubtfulPatch as error:
        raise click.ClickException(f"the server would answer with an HTTP error, and no patch: {error}") from None
    if output == "table":
        _print(answer, phase, color=colored(no_color))
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


def _print(answer: Answer, phase: str, *, color: bool) -> None:
    decision, asked = answer.decision, answer.review
    resource = f"{asked.resource.resource}/{asked.subresource}" if asked.subresource else asked.resource.resource
    where = f"{asked.namespace}/{asked.name}" if asked.namespace else asked.name
    verdict = click.style("allowed", fg="green") if decision.allowed else click.style("denied", fg="red", bold=True)
    patched = " with a patch" if decision.patch else ""
    click.echo(f"{verdict}{patched}: {asked.operation} {resource} {where} by {asked.user.name}", color=color)
    for text in _tables(decision, color=color):
        click.echo(text, color=color)
    for warning in decision.warnings:
        click.echo(f"Warning: {warning}")
    if decision.message:
        click.echo(decision.message)
    elif not decision.results:
        rewrites = phase == "mutate" and asked.subresource != "scale"
        click.echo(_NOTHING_TO_REWRITE if rewrites else "No policy has anything to say about it.")


def _tables(decision: Decision, *, color: bool) -> Iterator[str]:
    """What was found; whose the rewritten paths were and are; and what the patch touches."""
    from webhook.report.tables import Cell, table

    if decision.results:
        found = [
            (
                Cell(result.kind, "bold"),
                f"{result.policy}/{result.rule}",
                str(result.mode),
                result.would,
                Cell(result.outcome, _STYLES[result.outcome]),
                "\n".join(result.paths),
            )
            for result in decision.results
        ]
        yield table(("Event", "Policy/rule", "Mode", "Wants", "Outcome", "Paths"), found, color=color)
    owned = dict.fromkeys(item for result in decision.results for item in result.ownership)
    if owned:
        rows = [(item.path or "the whole claim", _claimants(item.before), _claimants(item.after)) for item in owned]
        yield "\n" + table(("Path", "Claimed before by", "Claimed now by"), rows, color=color)
    if decision.patch:
        steps = [
            (step["op"], "\n".join(step[key] for key in ("from", "path") if key in step)) for step in decision.patch
        ]
        yield "\n" + table(("Patch", "Path"), steps, color=color)


def _claimants(names: tuple[str, ...]) -> str:
    return "\n".join(names) or "nobody"
