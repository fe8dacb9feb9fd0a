"""`fieldwarden report`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from webhook.cli.common import colored, no_color, output, print_data
from webhook.cli.recorded import asked, asking, read


@click.command()
@asking
@output(("table", "json", "html"), "table")
@no_color
def report(
    sources: tuple[str, ...],
    since: dt.datetime | None,
    namespaces: tuple[str, ...],
    policies: tuple[str, ...],
    kubeconfig: Path | None,
    output: str,
    no_color: bool,
) -> None:
    """Say what Enforce would do to what was recorded.

    Policy by policy: who would fail, who would find a write rewritten, at which fields, how often and when last; who
    writes what under which name; fields that two managers take from each other; and how it went day by day. Names and
    paths only, never values.

    SOURCE is a journal that the server keeps (a copy of it, or the file itself: it is not changed), or its log, also
    compressed, and with the prefixes that kubectl logs puts; `-` reads standard input. Several are added up, so give
    one and the same event only once: the journal of a pod, or its log. Without any, the cluster's reports are read
    (serve --reports).

    \b
    Examples:
      fieldwarden report
      fieldwarden report journal.db
      fieldwarden report --since 7d --namespace 'team-*' -o html journal.db > report.html
      kubectl logs -n fieldwarden -l app.kubernetes.io/name=fieldwarden --tail=-1 | fieldwarden report -
      fieldwarden report --policy '!observe' journal.db
      fieldwarden report -o json journal.db | jq '.policies[] | {policy, writes}'

    Exit codes: 0 nothing of it would fail or be rewritten, or nothing is recorded (a note says so), 1 something would,
    2 a source cannot be read, or is no log of the server, 3 the cluster was not reached.
    """
    from webhook.report.summary import summarise

    wanted = asked(since, namespaces, policies)
    found = read(sources, wanted, kubeconfig)
    made = summarise(found.records, found.sources, wanted, dt.datetime.now(dt.UTC), found.notes)
    if output == "table":
        from webhook.report.drawn import tables

        color = colored(no_color)
        click.echo("\n\n".join(tables(made, color=color)), color=color)
    elif output == "html":
        from webhook.report.html import page

        click.echo(page(made))
    else:
        from webhook.report.plain_data import as_data

        print_data(as_data(made), output)
    raise click.exceptions.Exit(1 if made.would_act else 0)
