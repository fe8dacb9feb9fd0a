"""`fieldwarden controller`."""

from __future__ import annotations

import sys
from typing import Any, get_args

import click

from webhook.cli.options import ANY, FILE, Duration, address, option
from webhook.cluster.authority import USUAL
from webhook.cluster.controller import Release
from webhook.cluster.keeping import Secrets, Source
from webhook.cluster.trust import Lifetimes
from webhook.policy.compiled import Mode
from webhook.server.controlling import ControllerSettings, control
from webhook.server.settings import LOG_LEVELS

_LONG = "1825d", "90d", "5m"


@click.command()
@option("--namespace", required=True, help="Of the release.")
@option("--name", required=True, help="Of its webhook configurations.")
@option("--webhook-service", required=True, help="The Service that the API server calls.")
@option("--lease", required=True, help="The Lease by which one of several controllers acts.")
@option("--identity", default="", help="What to write into the Lease; this host's name when left out.")
@option("--certificates", type=click.Choice(get_args(Source)), default="own", show_default=True, help="Who makes them.")
@option("--tls-secret", required=True, help="The Secret with the webhook's certificate.")
@option("--authority-secret", help="The Secret of our own authority; with --certificates own.")
@option("--authority-lifetime", type=Duration(), default=_LONG[0], show_default=True, help="Of our own authority.")
@option("--leaf-lifetime", type=Duration(), default=_LONG[1], show_default=True, help="Of what it signs.")
@option("--settle", type=Duration(), default=_LONG[2], show_default=True, help="Until API servers trust a new bundle.")
@option("--policies", type=ANY, multiple=True, help="A folder or file of policies; repeatable.")
@option("--policies-from-cluster", is_flag=True, help="Also FieldPolicy resources; their status is kept.")
@option("--kubeconfig", type=FILE, help="Of the cluster; else KUBECONFIG, the pod's service account, ~/.kube/config.")
@option("--mode", type=click.Choice([str(mode) for mode in Mode]), default="Enforce", help="As the webhook's.")
@option("--strict", is_flag=True, help="Some warnings about policies become errors.")
@option("--ops-listen", metavar="HOST:PORT", callback=address, default="0.0.0.0:8080", help="Health and metrics.")
@option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True)
def controller(**given: Any) -> None:
    """Register the webhook in its cluster, renew certificates, keep the status of policies.

    The Helm chart runs it. It makes nothing: the webhook configurations, Secrets and the Lease that it keeps are there
    before it, and it waits for them. Policies and mode must be those of the webhook.

    Exit codes: 0 stopped as told, 2 cannot start so.
    """
    own = given["certificates"] == "own"
    if own != bool(given["authority_secret"]):
        raise click.UsageError("--authority-secret goes with --certificates own, and is needed for it")
    secrets = Secrets(given["namespace"], given["tls_secret"], given["webhook_service"], given["authority_secret"])
    release = Release(
        namespace=given["namespace"],
        name=given["name"],
        service=given["webhook_service"],
        lease=given["lease"],
        secrets=secrets,
        mode=Mode(given["mode"]),
        from_cluster=given["policies_from_cluster"],
        strict=given["strict"],
        lifetimes=_lifetimes(given),
    )
    settings = ControllerSettings(
        release=release,
        ops_listen=given["ops_listen"],
        policies=given["policies"],
        kubeconfig=given["kubeconfig"],
        identity=given["identity"],
        log_level=given["log_level"],
    )
    sys.exit(control(settings))


def _lifetimes(given: dict[str, Any]) -> Lifetimes:
    leaf = given["leaf_lifetime"]
    try:
        return Lifetimes(given["authority_lifetime"], leaf, given["settle"], min(USUAL.margin, leaf / 6))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
