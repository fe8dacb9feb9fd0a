"""Resource definitions of other projects, from the Go modules that they publish, of one version and with one sum."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from webhook.sandbox.binaries import MODULE, cache_dir
from webhook.sandbox.golang import environment, find_go

_TIMEOUT = 300  # seconds


@dataclass(frozen=True, slots=True)
class Published:
    """A module, and the files in it that define the kinds which the chart makes."""

    module: str
    sum: str
    files: tuple[str, ...]


CERT_MANAGER = Published(
    "github.com/cert-manager/cert-manager@v1.21.2",
    "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    ("deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"),
)
PROMETHEUS = Published(
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
    tuple(
        f"example/prometheus-operator-crd/monitoring.coreos.com_{name}.yaml"
        for name in ("servicemonitors", "prometheusrules")
    ),
)

REPORTS = {
    "openreports": Published(
        "github.com/openreports/reports-api@v0.2.1",
        "h1:g9KS3yle9Y1elmww4TK9EkD1rl6inIaiIJPX6e+u680=",
        ("config/crd/openreports.io_reports.yaml", "config/crd/openreports.io_clusterreports.yaml"),
    ),
    "policyreport": Published(
        "github.com/kyverno/kyverno@v1.19.1",
        "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU=",
        tuple(f"config/crds/policyreport/wgpolicyk8s.io_{name}policyreports.yaml" for name in ("", "cluster")),
    ),
}
"""By the value of `reports.format`."""


def definitions(published: Published, folder: Path) -> list[Path]:
    """The files, fetched once for each user of this machine. `folder` is any that is not in a Go module."""
    go = find_go(cache_dir(), MODULE)
    done = subprocess.run(
        [str(go), "mod", "download", "-json", published.module],
        cwd=folder,
        # The sum is compared here: no other service need be asked.
        env={**environment(), "GOFLAGS": "-mod=mod", "GONOSUMDB": "*", "PWD": os.fspath(folder)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, f"{published.module} cannot be had: {done.stderr or done.stdout}"
    told = json.loads(done.stdout)
    assert told["Sum"] == published.sum, f"{published.module} is not what it was"
    return [Path(told["Dir"]) / file for file in published.files]
