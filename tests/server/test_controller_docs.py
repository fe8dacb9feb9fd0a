"""docs/controller.md names every flag, metric, warning, log line and status reason that there is, and no other."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from webhook.cli.controller import controller
from webhook.cluster import statuses
from webhook.cluster.controller import ControllerState
from webhook.cluster.discovery import Discovery
from webhook.cluster.settling import LeftOut
from webhook.policy.load import load_text
from webhook.server.controlling import _States

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "controller.md").read_text()
CLUSTER = ROOT / "webhook" / "cluster"
CODE = "\n".join(path.read_text() for path in sorted(CLUSTER.glob("*.py")))
EVERYWHERE = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "charts" / "fieldwarden" / "README.md"])
POLICY = """
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: labels}
spec:
  match: {resources: [{groups: [apps], resources: [deployments]}]}
  rules: [{name: labels, writers: {deny: [someone]}}]
"""


def _section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _first_cells(text: str) -> list[str]:
    """What stands in code in the first cells of a table."""
    return [told for _, told in re.findall(r"^\| (?:True \| |False \| )?(`+)(.*?)\1", text, re.MULTILINE)]


def _metrics() -> set[str]:
    state = ControllerState(leads=True, expires=dt.datetime(2030, 1, 1, tzinfo=dt.UTC))
    stub: Any = SimpleNamespace(state=state)
    return {family.name for family in _States(stub).collect()}


def _reason(discovery: Discovery, left_out: LeftOut | None = None, unsent: str = "") -> str:
    policies = load_text(POLICY, "policy.yaml").policies
    assert policies is not None
    (policy,) = policies.policies
    about = statuses.About(policy, left_out, unsent)
    made = statuses.status({"metadata": {}}, about, discovery, "2026-01-02T03:04:05Z")
    return str(made["conditions"][0]["reason"])


def test_every_flag_is_described_and_its_variable_named_as_the_page_says() -> None:
    flags = {name for option in controller.params for name in option.opts}
    assert {told.partition(" ")[0] for told in _first_cells(_section("Flags"))} == flags
    for option in controller.params:
        assert option.envvar == "FIELDWARDEN_" + option.opts[0][2:].upper().replace("-", "_")


def test_every_default_is_as_the_page_says() -> None:
    told = dict(re.findall(r"^\| `(--[a-z-]+).*?` \| `(\S+)` \|", _section("Flags"), re.MULTILINE))
    given = {option.opts[0]: option.default for option in controller.params}
    assert len(told) > 6
    assert {flag: str(given[flag]) for flag in told} == told


def test_every_metric_is_described() -> None:
    assert set(_first_cells(_section("Metrics"))) == _metrics()


def test_no_page_names_a_metric_that_nobody_has() -> None:
    server = (ROOT / "docs" / "server.md").read_text()
    known = _metrics() | set(re.findall(r"`(fieldwarden_\w+)`", server))
    for page in EVERYWHERE:
        assert set(re.findall(r"`(fieldwarden_\w+)`", page.read_text())) <= known, page


def test_every_reason_in_a_status_is_described() -> None:
    served = Discovery({("apps", "deployments"): ("v1",)})
    found = {
        _reason(served),
        _reason(Discovery()),
        _reason(served, unsent="no pod is ready"),
        _reason(served, LeftOut("labels", ("wrong",), earlier=True)),
        _reason(served, LeftOut("labels", ("wrong",), earlier=False)),
    }
    assert set(_first_cells(_section("Status of policies"))) == found
    written = set(re.findall(r'"((?:[A-Z][a-z]+){2,})"', (CLUSTER / "statuses.py").read_text()))
    assert written == found


def test_every_warning_of_the_page_is_in_the_code() -> None:
    told = [text for text in _first_cells(_section("Readiness")) if "FILE:LINE" not in text]
    assert len(told) > 10
    for text in told:
        parts = [part.strip(" :/.") for part in re.split(r"\b[A-Z][A-Z/.]+\b|\.\.\.|: ", text)]
        assert any(len(part) > 9 for part in parts) or text == "KIND/NAME: ...", text
        for part in parts:
            assert part in CODE, part


def test_every_log_line_is_described() -> None:
    code = (CLUSTER / "controller.py").read_text() + (ROOT / "webhook" / "server" / "controlling.py").read_text()
    logged = set(re.findall(r'log\.(?:info|warning|error)\(\s*"([^"]+)"', code))
    steps = set(re.findall(r'f"([a-z ]+: )\{action\.reason\}"', CODE))
    assert {text.removesuffix("...") for text in _first_cells(_section("Log"))} == logged | steps
