"""What the chart's tests have in common: Helm on this chart, and the objects that it renders."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "fieldwarden"
CI = sorted((CHART / "ci").glob("*-values.yaml"))
RELEASE, NAMESPACE = "fw", "fw-system"
_TIMEOUT = 120  # seconds

sys.path.append(str(CHART.parent))  # where generate.py and typed_values.py lie

Object = dict[str, Any]
SPEC: Object = {
    "match": {"resources": [{"groups": ["apps"], "resources": ["deployments"]}]},
    "rules": [{"name": "writers", "writers": {"deny": ["kubectl-edit"]}}],
}
"""Of a policy."""


@dataclass(frozen=True, slots=True)
class Said:
    """What Helm printed and how it ended."""

    stdout: str
    stderr: str
    returncode: int


@dataclass(frozen=True, slots=True)
class Rendering:
    """The objects of one rendering."""

    objects: tuple[Object, ...]

    def of(self, kind: str) -> dict[str, Object]:
        """By name, those of one kind."""
        return {item["metadata"]["name"]: item for item in self.objects if item["kind"] == kind}

    def one(self, kind: str, name: str = "") -> Object:
        """The only one of its kind, or the one whose name ends so."""
        (found,) = (item for key, item in self.of(kind).items() if key.endswith(name))
        return found

    def pod(self, component: str) -> Object:
        """The pod template's spec of one Deployment."""
        spec: Object = self.one("Deployment", f"-{component}")["spec"]["template"]["spec"]
        return spec

    def container(self, component: str) -> Object:
        (container,) = self.pod(component)["containers"]
        found: Object = container
        return found

    def args(self, component: str) -> list[str]:
        found: list[str] = self.container(component)["args"]
        return found


@dataclass(frozen=True, slots=True)
class Helm:
    """The program, with folders of its own and no cluster unless one is given."""

    program: Path
    home: Path

    def __call__(
        self, *arguments: str, values: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
    ) -> Said:
        given = [] if values is None else ["--values=-"]
        done = subprocess.run(
            [str(self.program), *arguments, *given],
            input="" if values is None else yaml.safe_dump(dict(values)),
            env=self._environment(environment or {}),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        return Said(done.stdout, done.stderr, done.returncode)

    def render(self, values: Mapping[str, Any] | None = None, *arguments: str) -> Rendering:
        """What `helm template` makes of the values; the test fails when it refuses them."""
        said = self("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", *arguments, values=values or {})
        assert said.returncode == 0, said.stderr
        return Rendering(tuple(_documents(said.stdout)))

    def refusal(self, values: Mapping[str, Any], *arguments: str) -> str:
        """Why it refuses the values; the test fails when it takes them."""
        said = self("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", *arguments, values=values)
        assert said.returncode != 0, "these values are taken"
        return said.stderr

    def notes(self, values: Mapping[str, Any] | None = None) -> str:
        said = self("install", RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--dry-run=client", values=values or {})
        assert said.returncode == 0, said.stderr
        return said.stdout.partition("NOTES:\n")[2]

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
        folders = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        return {**kept, **folders, "KUBECONFIG": str(self.home / "no-cluster"), **more}


def _documents(text: str) -> Iterator[Object]:
    return (item for item in yaml.safe_load_all(text) if item)


def nested(path: str, value: Any) -> Object:
    """
    >>> nested("a.b", 1)
    {'a': {'b': 1}}
    """
    for name in reversed(path.split(".")):
        value = {name: value}
    found: Object = value
    return found


def merged(*several: Mapping[str, Any]) -> Object:
    """
    >>> merged({"a": {"b": 1}}, {"a": {"c": 2}})
    {'a': {'b': 1, 'c': 2}}
    """
    found: Object = {}
    for values in several:
        for name, value in values.items():
            known = found.get(name)
            found[name] = merged(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return found
