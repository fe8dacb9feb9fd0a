"""The definitions of both kinds of reports, from the Go modules that they are published in, of one version and one sum."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from webhook.cluster.report_objects import Format
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
    files: list[Path] = published.definitions(published.REPORTS[form.name], folder)
    named = [f"--filename={file}" for file in files]
    sandbox.kubectl("apply", "--server-side", *named)
    sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *named)
    for path in (f"{form.root}/{form.plural}", f"{form.root}/{form.cluster_plural}"):
        sandbox.wait_until(lambda at=path: sandbox.request("GET", at).status == 200, "kube-apiserver")  # type: ignore[misc]
    return files


def uninstall(sandbox: Sandbox, files: list[Path]) -> None:
    sandbox.kubectl("delete", "--wait=false", *(f"--filename={file}" for file in files))
