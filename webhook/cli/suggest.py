"""`fieldwarden suggest`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from webhook.cli.recorded import asked, asking, read


@click.command()
@asking
@click.option(
    "--deny-seen", is_flag=True, help="Propose also what would have refused writes that were seen; they are listed."
)
def suggest(
    sources: tuple[str, ...],
    since: dt.datetime | None,
    namespaces: tuple[str, ...],
    policies: tuple[str, ...],
    kubeconfig: Path | None,
    deny_seen: bool,
) -> None:
    """Propose policies from what was recorded.

    Names that only a few users write under, mostly service accounts, are bound to these. Fields that one manager
    writes get it as their owner; others who wrote them too become exceptions. Comments say from what, and what was
    left out. The policies are in Audit, lint clean with --strict, and in Enforce would have refused nothing that was
    recorded.

    SOURCE is a journal or a log, as for `fieldwarden report`; without any, the cluster's reports. The more is recorded, the more can be proposed: see
    docs/reports.md for a policy that observes.

    \b
    Examples:
      fieldwarden suggest journal.db > suggested.yaml
      fieldwarden suggest --since 7d --namespace team-a journal.db
      fieldwarden suggest --deny-seen journal.db | fieldwarden lint --strict -

    Exit codes: 0 done, also where nothing could be proposed, 2 a source cannot be read, 3 the cluster was not reached.
    """
    from webhook.report.suggest import Proposal, propose

    found = read(sources, asked(since, namespaces, policies), kubeconfig)
    click.echo(propose(found.records, Proposal(tuple(source.name for source in found.sources), deny_seen)), nl=False)
