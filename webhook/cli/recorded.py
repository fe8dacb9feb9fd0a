"""What `report` and `suggest` share: which records are asked for, and reading them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from webhook.report.asking import Asked, Source
    from webhook.report.records import Record

F = TypeVar("F", bound=Callable[..., Any])

_SPAN = re.compile(r"(\d{1,9})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
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
        click.option("--policy", "policies", multiple=True, metavar="GLOB", help="Of these policies; repeatable."),
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

    return Asked(since, globs(namespaces), globs(policies))


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
    for note in (*(note for source in sources for note in source.notes()), *reading.notes()):
        click.echo(f"Note: {note}.", err=True)
    return Read(records, sources, reading.notes())


def _opened(names: tuple[str, ...], kubeconfig: Path | None) -> list[Source]:
    from webhook.cli.common import STDIN
    from webhook.report.sources import KINDS, open_source

    if not names:
        from webhook.cluster.report_source import ClusterReports

        return [ClusterReports.connect(kubeconfig)]
    if kubeconfig is not None:
        raise click.UsageError("--kubeconfig is for the cluster's reports, which are read where no SOURCE is given")
    if names.count(STDIN) > 1:
        raise click.UsageError("standard input can be read only once")
    return [open_source(name, KINDS) for name in names]
