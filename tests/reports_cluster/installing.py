"""The definitions of both kinds of reports, from the Go modules that they are published in, of one version and one sum."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from webhook.cluster.report_objects import OPENREPORTS, POLICYREPORT, Format
from webhook.sandbox import Sandbox

_PUBLISHED = Path(__file__).parents[1] / "chart" / "published.py"


def _published() -> ModuleType:
    """The chart's tests are no package."""
    spec = importlib.util.spec_from_file_location("chart_published", _PUBLISHED)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def install(sandbox: Sandbox, form: Format, folder: Path) -> list[Path]:
    """Install them, and wait until they are served; the files."""
    published = _published()
    modules = {
        OPENREPORTS: published.Published(
            "github.com/openreports/reports-api@v0.2.1",
            "h1:g9KS3yle9Y1elmww4TK9EkD1rl6inIaiIJPX6e+u680=",
            ("config/crd/openreports.io_reports.yaml", "config/crd/openreports.io_clusterreports.yaml"),
        ),
        POLICYREPORT: published.Published(
            "github.com/kyverno/kyverno@v1.19.1",
            "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU=",
            tuple(f"config/crds/policyreport/wgpolicyk8s.io_{name}policyreports.yaml" for name in ("", "cluster")),
        ),
    }
    files: list[Path] = published.definitions(modules[form], folder)
    named = [f"--filename={file}" for file in files]
    sandbox.kubectl("apply", "--server-side", *named)
    sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *named)
    for path in (f"{form.root}/{form.plural}", f"{form.root}/{form.cluster_plural}"):
        sandbox.wait_until(lambda at=path: sandbox.request("GET", at).status == 200, "kube-apiserver")  # type: ignore[misc]
    return files


def uninstall(sandbox: Sandbox, files: list[Path]) -> None:
    sandbox.kubectl("delete", "--wait=false", *(f"--filename={file}" for file in files))
