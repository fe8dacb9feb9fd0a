"""`fieldwarden sandbox story`."""

from __future__ import annotations

import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.common import MODES, colored, no_color, output, print_data
from webhook.cli.ending import leaving_on, told_plainly

if TYPE_CHECKING:
    from webhook.sandbox.stories import Act, NotAsTold, Part, Step, Story, Told

_INDENT = "   "
_WIDEST = 100  # columns of running text
_WARNING = "Warning:"  # how kubectl begins one
_FOLDER = click.Path(exists=True, path_type=Path)


@click.command()
@click.argument("name", required=False)
@click.option("--list", "listing", is_flag=True, help="Only list the stories.")
@click.option("--policies", type=_FOLDER, help="Tell it with these policies instead of the story's own.")
@click.option(
    "--mode", type=click.Choice(MODES), default="Enforce", show_default=True, help="The most a policy may do."
)
@output(("text", "json"), "text")
@no_color
def story(name: str | None, listing: bool, policies: Path | None, mode: str, output: str, no_color: bool) -> None:
    """Tell a story on a real API server, step by step; without NAME, list the stories.

    Each step is done by real clients and checked against what the story says. A sandbox of its own is started for it,
    and nothing is left running.

    \b
    Examples:
      fieldwarden sandbox story ghost-label
      fieldwarden sandbox story ghost-label --policies my-policies/     does it end as well with yours?

    Exit codes: 0 all went as told, 1 a step did not, 2 there is no such story, 3 the sandbox cannot start, 4 the policies
    do not load.
    """
    from webhook.sandbox.stories import STORIES

    if name is None or listing:
        _list(output)
        return
    if name not in STORIES:
        raise click.UsageError(f"There is no story {name}; there are: {', '.join(STORIES)}.")
    if output == "json":
        differs = _as_data(STORIES[name], policies, mode)
    else:
        differs = tell(STORIES[name], policies, mode, color=colored(no_color))
    if differs is not None:
        raise click.ClickException(str(differs))
    if output == "text":
        _closing_words(name)


def tell(story: Story, policies: Path | None, mode: str, *, color: bool) -> NotAsTold | None:
    """Plays a story and prints it as it happens; what went otherwise, if anything did."""
    from webhook.sandbox.stories import Part, Step

    guarded = False

    def show(told: Told) -> None:
        nonlocal guarded
        if isinstance(told, Part):
            guarded = told.guarded
            click.echo(_part(told), color=color)
        elif isinstance(told, Step):
            click.echo(_step(told, guarded=guarded, color=color), color=color)

    return _play(story, policies, mode, show)


def _play(story: Story, policies: Path | None, mode: str, show: Callable[[Told], None]) -> NotAsTold | None:
    """Plays a story on a sandbox of its own; says on standard error what is being waited for."""
    from webhook.sandbox import Sandbox, binaries
    from webhook.sandbox.stories import NotAsTold, Wait

    with told_plainly(), leaving_on(signal.SIGTERM, signal.SIGHUP), _hushed_at_the_end():
        programs = binaries()
        _progress("starting etcd and kube-apiserver")
        with Sandbox.start(programs) as running:
            try:
                for told in story.tell(running, policies or story.policies, mode):
                    _progress(told.text if isinstance(told, Wait) else "")
                    show(told)
            except NotAsTold as differs:
                return differs
            _progress("ending the sandbox")
    return None


@contextmanager
def _hushed_at_the_end() -> Iterator[None]:
    try:
        yield
    finally:
        _progress("")


def _progress(text: str) -> None:
    """Replaces the line of what is being done, on a terminal only."""
    if sys.stderr.isatty():
        sys.stdout.flush()
        sys.stderr.write(f"\r\x1b[K{text}..." if text else "\r\x1b[K")
        sys.stderr.flush()


def _part(part: Part) -> str:
    lines = [click.style(part.title, bold=True), "─" * _width(), *_wrapped(part.text, _width())]
    if part.policy:
        lines += ["", *(_INDENT + click.style(line, dim=True) for line in part.policy.splitlines())]
    return "\n".join([*lines, ""])


def _step(step: Step, *, guarded: bool, color: bool) -> str:
    lines = [click.style(f"{step.number}. {step.title}", bold=True)]
    for act in step.acts:
        lines += _act(act)
    lines += ["", *(_INDENT + line for line in _label(step, color=color).splitlines())]
    if step.moral:
        moral = _wrapped(step.moral, _width() - len(_INDENT))
        lines += ["", *(_INDENT + click.style(line, fg="green" if guarded else "red") for line in moral)]
    return "\n".join([*lines, ""])


def _act(act: Act) -> Iterator[str]:
    yield f"{_INDENT}{click.style(f'{act.user} $', dim=True)} {act.command}"
    for line in act.printed:
        yield _INDENT + (click.style(line, fg="yellow") if line.startswith(_WARNING) else line)


def _label(step: Step, *, color: bool) -> str:
    """Whether Git and the cluster have the label, and whose claims hold it."""
    from webhook.report.tables import table

    label, where = step.label, "in the dry run" if step.dry_run else "in the cluster"
    owner, *others = label.owners or ("nobody",)
    rows = [(_yes(label.in_git), _yes(label.in_cluster), owner), *(("", "", other) for other in others)]
    return table(("team in Git", where, "claimed by"), rows, color=color)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _yes(there: bool) -> str:
    return "yes" if there else "no"


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _list(form: str) -> None:
    from webhook.sandbox.stories import STORIES

    if form == "json":
        print_data([{"name": one.name, "summary": one.summary} for one in STORIES.values()], form)
        return
    for one in STORIES.values():
        click.echo(f"{one.name}\n    {one.summary}")


def _as_data(story: Story, policies: Path | None, mode: str) -> NotAsTold | None:
    """Plays a story and prints it as one JSON object at its end; what went otherwise, if anything did."""
    from webhook.sandbox.stories import Part, Step

    parts: list[dict[str, Any]] = []

    def show(told: Told) -> None:
        if isinstance(told, Part):
            parts.append({"title": told.title, "steps": []})
        elif isinstance(told, Step):
            parts[-1]["steps"].append(asdict(told))

    differs = _play(story, policies, mode, show)
    print_data({"story": story.name, "as_told": differs is None, "parts": parts}, "json")
    return differs


def typed() -> str:
    """What to type to call this fieldwarden, from here."""
    here, on_path = Path(sys.argv[0]), shutil.which("fieldwarden")
    if here.name != "fieldwarden" or not here.exists() or (on_path and here.samefile(on_path)):
        return "fieldwarden"
    with suppress(ValueError):
        return str(here.resolve().relative_to(Path.cwd()))
    return str(here)


def _closing_words(name: str) -> None:
    command = typed()
    click.echo("Next:")
    for what, why in (
        (f"sandbox story {name} --policies DIR", "the same with your policies: does it end as well?"),
        (
            "sandbox run --policies DIR -- bash",
            "an API server of your own, guarded by them, to try kubectl on",
        ),
        ("lint DIR", "what is wrong in them, with its place"),
    ):
        click.echo(f"  {command} {what}\n      {why}")
