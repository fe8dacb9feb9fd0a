"""What `report` and `suggest` share: which records are asked for, and reading them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from webhook.report.asking import Asked, Source
    from webhook.report.records import Record

F = TypeVar("F", bound=Callable[..., Any])

_SPAN = re.compile(r"(\d{1,9})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NOT = "!"  # no policy's name holds it
_UNUSABLE, _UNREACHED = 2, 3


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> dt.datetime | None:
    """A span back from now, or a day or moment (in UTC where no zone is given)."""
    if value is None:
        return None
    from webhook.report.ticks import read_moment

    if found := _SPAN.fullmatch(value):
        try:
            return dt.datetime.now(dt.UTC) - dt.timedelta(**{_UNITS[found.group(2)]: int(found.group(1))})
        except OverflowError:
            raise click.BadParameter(f"{value!r} is too far back", ctx, param) from None
    try:
        return read_moment(value)
    except ValueError:
        said = f"{value!r} is neither a span such as 7d, 24h or 2w, nor a day such as 2026-11-21"
        raise click.BadParameter(said, ctx, param) from None


def asking(command: F) -> F:
    """The arguments by which records are chosen."""
    for decorate in (
        click.option(
            "--policy",
            "policies",
            multiple=True,
            metavar="[!]GLOB",
            help="Of these policies, or with ! of all but these; repeatable.",
        ),
        click.option("--namespace", "namespaces", multiple=True, metavar="GLOB", help="In these; repeatable."),
        click.option("--since", callback=_moment, metavar="SPAN|DAY", help="7d, 24h, 2026-11-21; all when not given."),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Of the cluster whose reports are read; else KUBECONFIG, the pod's service account, ~/.kube/config.",
        ),
        click.argument("sources", metavar="[SOURCE]...", nargs=-1),
    ):
        command = decorate(command)
    return command


def asked(since: dt.datetime | None, namespaces: tuple[str, ...], policies: tuple[str, ...]) -> Asked:
    from webhook.policy.compiled import globs
    from webhook.report.asking import Asked

    without = [text.removeprefix(_NOT) for text in policies if text.startswith(_NOT)]
    wanted = [text for text in policies if not text.startswith(_NOT)]
    return Asked(since, globs(namespaces), globs(wanted), globs(without))


class Read(NamedTuple):
    """All records that were asked for, and what they were read from."""

    records: list[Record]
    sources: list[Source]
    notes: tuple[str, ...]  # beside those of the sources


def read(names: tuple[str, ...], wanted: Asked, kubeconfig: Path | None = None) -> Read:
    """What a reader should know is said on standard error."""
    from webhook.report.asking import Reading, Unreached, Unusable
    from webhook.report.summary import gather

    reading = Reading(wanted)
    try:
        sources = _opened(names, kubeconfig)
        records = gather(sources, reading)
    except Unusable as error:
        click.echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(_UNREACHED if isinstance(error, Unreached) else _UNUSABLE) from None
    notes = reading.notes()
    for note in (*(note for source in sources for note in source.notes()), *notes):
        click.echo(f"Note: {note}.", err=True)
    return Read(records, sources, notes)


def _opened(names: tuple[str, ...], kubeconfig: Path | None) -> list[Source]:
    from webhook.cli.common import STDIN
    from webhook.report.asking import Unreached
    from webhook.report.sources import KINDS, open_source

    if not names:
        from webhook.cluster.report_source import ClusterReports

        try:
            return [ClusterReports.connect(kubeconfig)]
        except Unreached as error:
            raise Unreached(f"{error}; or give a journal or a log as SOURCE") from None
    if kubeconfig is not None:
        raise click.UsageError("--kubeconfig is for the cluster's reports, which are read where no SOURCE is given")
    if names.count(STDIN) > 1:
        raise click.UsageError("standard input can be read only once")
    for one, other in combinations(names, 2):
        if _is_same(one, other):
            twice = f"{other} is given twice" if one == other else f"{one} and {other} are one file"
            raise click.UsageError(f"{twice}: every event would count twice")
    return [open_source(name, KINDS) for name in names]


def _is_same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False  # one is not there: that is told when it is opened
