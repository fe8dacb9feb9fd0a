"""Which API server to talk to, and as whom: a kubeconfig, or the service account of a pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubernetes.client import Configuration

_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


class Unconfigured(Exception):
    """Nothing says where the API server is, or what does cannot be read; `str()` is a sentence for the operator."""


def find(kubeconfig: Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The kubeconfig to use, or None for a pod's service account: what is given, KUBECONFIG, the pod's, ~/.kube/config.

    Raises Unconfigured. Cheap: nothing of the client is imported.

    >>> find(None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None
    True
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise Unconfigured(f"{kubeconfig}: there is no such kubeconfig")
        return str(kubeconfig)
    if named := environment.get("KUBECONFIG"):
        if not any(Path(path).expanduser().is_file() for path in named.split(os.pathsep)):
            raise Unconfigured(f"KUBECONFIG names no file that is there: {named}")
        return named
    if environment.get(_IN_CLUSTER):
        return None
    usual = Path("~/.kube/config").expanduser()
    if not usual.is_file():
        raise Unconfigured(
            "no cluster is named: give --kubeconfig or KUBECONFIG, or run in a pod with a service account"
        )
    return str(usual)


def configuration(kubeconfig: Path | None) -> Configuration:
    """What the client needs to connect. Raises Unconfigured."""
    found = find(kubeconfig)
    from kubernetes import config
    from kubernetes.client import Configuration

    made = Configuration()
    try:
        if found is None:
            config.load_incluster_config(client_configuration=made)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=found, client_configuration=made, persist_config=False
            )
    except Exception as error:  # a broken file shows as anything from a missing key to a bad certificate
        where = found or "the pod's service account"
        raise Unconfigured(f"{where} cannot be used: {_plain(error)}") from None
    return made


def _plain(error: Exception) -> str:
    """The client's own words for what it finds missing; else only the kind of error, since a text may quote the file."""
    from kubernetes.config import ConfigException

    return str(error) if isinstance(error, ConfigException) else type(error).__name__
