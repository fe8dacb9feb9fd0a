"""`fieldwarden serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from webhook.cli.options import ANY, FILE, FOLDER, SECONDS, address, option
from webhook.policy.compiled import Mode
from webhook.report.journal_bounds import Limits
from webhook.server import FromCluster, JournalAt, KeyPair, Reporting, SelfSigned, Settings, Timing
from webhook.server import serve as run
from webhook.server.settings import LOG_LEVELS, REPORT_FORMATS


@click.command()
@option("--policies", type=ANY, multiple=True, help="A folder or file of policies; repeatable.")
@option("--policies-from-cluster", is_flag=True, help="Also FieldPolicy resources, and the labels of namespaces.")
@option("--kubeconfig", type=FILE, help="Of the cluster; else KUBECONFIG, the pod's service account, ~/.kube/config.")
@option("--mode", type=click.Choice([str(mode) for mode in Mode]), default="Enforce", help="The most a policy may do.")
@option("--strict", is_flag=True, help="Some warnings about policies become errors.")
@option(
    "--listen", metavar="HOST:PORT", callback=address, default="0.0.0.0:8443", help="Where the API server calls (TLS)."
)
@option(
    "--ops-listen",
    metavar="HOST:PORT",
    callback=address,
    default="0.0.0.0:8080",
    help="Health and metrics (plain HTTP).",
)
@option("--self-signed", type=FOLDER, help="Make ca.crt, tls.crt and tls.key in this folder, or use them again.")
@option("--san", multiple=True, help="A further name or address for --self-signed; repeatable.")
@option("--tls-cert", type=FILE, help="Certificate chain, PEM.")
@option("--tls-key", type=FILE, help="Its key, PEM.")
@option("--client-ca", type=FILE, help="Only clients with a certificate of this authority are answered.")
@option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes.")
@option("--threads", type=click.IntRange(1, 256), default=8, show_default=True, help="Threads in each of them.")
@option("--reload-interval", type=click.FloatRange(0.1, 3600), default=5.0, show_default=True, help="Seconds.")
@option("--drain", type=SECONDS, default=5.0, show_default=True, help="Seconds in service after SIGTERM.")
@option("--grace", type=SECONDS, default=20.0, show_default=True, help="Seconds after that for calls under way.")
@option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True)
@option("--ports-file", type=FILE, help="Write the addresses that are really listened on here, as JSON.")
@option(
    "--journal", type=FILE, default="none", show_default=True, help="File for what rules find; `none` for no journal."
)
@option("--journal-max-records", type=click.IntRange(100, 10_000_000), default=50_000, show_default=True)
@option("--journal-keep-days", type=click.IntRange(1, 3650), default=30, show_default=True)
@option(
    "--reports",
    type=click.Choice(["none", *REPORT_FORMATS]),
    default="none",
    show_default=True,
    help="Report what the journal holds to the cluster, in this format, whose definitions must be installed.",
)
@option("--events", is_flag=True, help="Write Events for what was refused or rewritten.")
@option("--report-interval", type=click.FloatRange(0.1, 3600), default=10.0, show_default=True, help="Seconds.")
@option("--reports-owner", default="", help="A ClusterRole with which the reports go away; they bear its name.")
@option("--hash-users", is_flag=True, help="Write a keyed hash instead of a user's name in journal, log and audit.")
@option("--hash-users-key-file", type=FILE, help="Its key, the same for all replicas: at least 16 bytes.")
def serve(**given: Any) -> None:
    """Answer the API server's admission reviews over HTTPS.

    Exit codes: 0 stopped as told, 2 cannot start so, 4 the policies do not load.
    """
    settings = Settings(
        policies=given["policies"],
        certificate=_certificate(given),
        cluster=_cluster(given),
        client_ca=given["client_ca"],
        listen=given["listen"],
        ops_listen=given["ops_listen"],
        mode=Mode(given["mode"]),
        strict=given["strict"],
        workers=given["workers"],
        threads=given["threads"],
        log_level=given["log_level"],
        ports_file=given["ports_file"],
        timing=Timing(given["reload_interval"], given["drain"], given["grace"]),
        journal=_journal(given),
        reports=_reports(given),
        hash_users=_hash_users(given),
    )
    sys.exit(run(settings))


def _cluster(given: dict[str, Any]) -> FromCluster | None:
    if given["policies_from_cluster"]:
        return FromCluster(given["kubeconfig"])
    if given["kubeconfig"] and not _tells(given):
        raise click.UsageError("--kubeconfig goes with --policies-from-cluster, --reports or --events")
    if not given["policies"]:
        raise click.UsageError("give --policies PATH, or --policies-from-cluster, or both")
    return None


def _journal(given: dict[str, Any]) -> JournalAt | None:
    path: Path = given["journal"]
    if path == Path("none"):
        return None
    return JournalAt(path.absolute(), Limits(given["journal_max_records"], given["journal_keep_days"]))


def _tells(given: dict[str, Any]) -> bool:
    return given["reports"] != "none" or bool(given["events"])


def _reports(given: dict[str, Any]) -> Reporting | None:
    form = given["reports"]
    if not _tells(given):
        if given["reports_owner"]:
            raise click.UsageError("--reports-owner goes with --reports")
        return None
    if given["journal"] == Path("none"):
        raise click.UsageError("--reports and --events tell what is in the journal: give --journal FILE")
    return Reporting(
        None if form == "none" else form,
        given["events"],
        given["report_interval"],
        given["reports_owner"],
        given["kubeconfig"],
    )


def _hash_users(given: dict[str, Any]) -> Path | None:
    key: Path | None = given["hash_users_key_file"]
    if given["hash_users"] != (key is not None):
        raise click.UsageError("--hash-users and --hash-users-key-file FILE go together")
    return key


def _certificate(given: dict[str, Any]) -> KeyPair | SelfSigned:
    cert, key, folder = given["tls_cert"], given["tls_key"], given["self_signed"]
    if folder is not None:
        if cert or key:
            raise click.UsageError("--self-signed makes its own certificate: leave out --tls-cert and --tls-key")
        return SelfSigned(folder, given["san"])
    if cert is None or key is None:
        raise click.UsageError("give --self-signed DIR, or both --tls-cert FILE and --tls-key FILE")
    if given["san"]:
        raise click.UsageError("--san goes with --self-signed")
    return KeyPair(cert, key)
