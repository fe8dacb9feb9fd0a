"""The commands, each loaded only when it is called, and how every one of them ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click

from webhook.cli.ending import Unwritten, prepare

OK, FOUND, USAGE, UNREACHED, UNLOADABLE = range(5)
"""Exit codes: fine; found something; wrong use; cluster not reached; policies do not load."""
_COMPLETE = "_FIELDWARDEN_COMPLETE"
_INTERRUPTED, _BROKEN_PIPE = 130, 141  # 128 and the signal's number, as in a shell

COMMANDS = {
    "lint": "Say what is wrong in policy files, with its place.",
    "test": "Run suites of cases against policies, offline.",
    "review": "Answer one AdmissionReview as the server would.",
    "serve": "Answer the API server's admission reviews over HTTPS.",
    "controller": "Register the webhook in its cluster, and keep its certificates.",
    "report": "Say what Enforce would do to what was recorded.",
    "suggest": "Propose policies from what was recorded.",
    "sandbox": "A real API server on loopback, to try policies on.",
    "demo": "Replay real clients' writes against policies.",
    "schema": "Print the JSON Schema of policies, for editors.",
}
"""In the order in which people need them. Each lives in the module of its name."""

EPILOG = """\b
Examples:
  fieldwarden lint policies/
  fieldwarden test policies/ --junit results.xml
  fieldwarden review review.json --policies policies/ -o table
  fieldwarden serve --policies policies/ --self-signed tls/
  fieldwarden sandbox run --policies policies/ -- bash

\b
Exit codes:
  0  fine
  1  found something: problems, failed cases, a denial
  2  wrong use, input that cannot be read, or output that cannot be written
  3  the cluster, or the sandbox, was not reached
  4  the policies do not load
"""


class _Lazy(click.Group):
    """A group that imports a command's module when the command is called, so that --help is quick."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"webhook.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        click.echo(f"fieldwarden {version('fieldwarden')}")
    except PackageNotFoundError:
        click.echo("fieldwarden (not installed as a package)")
    ctx.exit()


@click.group(cls=_Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Print the version."
)
def app() -> None:
    """Field-ownership policy for Kubernetes.

    fieldwarden works out from an AdmissionReview what a write did to the ownership of an object's fields, compares
    that with policies, and denies, warns or records. Policies are files: lint them, test them with suites, try them on
    captured reviews or in a sandbox, then serve them to an API server.
    """


def run(arguments: Sequence[str] | None) -> int:
    """Runs a command; returns its exit code. What goes wrong is told in a line, never by a traceback."""
    try:
        prepare()
        if _COMPLETE in os.environ:  # a shell asks for completions
            app.main(prog_name=_called(), complete_var=_COMPLETE)
        code = _invoked(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _hushed(_BROKEN_PIPE)
    except Unwritten as error:
        return _hushed(USAGE, f"Error: the output cannot be written: {error}")


def _invoked(arguments: Sequence[str] | None) -> int:
    try:
        # not app.main(): that ends with 1, which says "found something", when the reader of a pipe has gone
        with app.make_context(_called(), list(sys.argv[1:] if arguments is None else arguments)) as context:
            app.invoke(context)
        return OK
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Aborted.", err=True)
        return _INTERRUPTED


def _called() -> str:
    return "kubectl fieldwarden" if Path(sys.argv[0]).name == "kubectl-fieldwarden" else "fieldwarden"


def _hushed(code: int, said: str = "") -> int:
    """An exit code. What is still in the output's buffers goes nowhere, without complaint at exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream is sys.stderr and said:
            with suppress(OSError, Unwritten):
                click.echo(said, err=True)
                continue
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code
