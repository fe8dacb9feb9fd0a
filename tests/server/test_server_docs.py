"""docs/server.md names every flag, variable, metric and reason that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from serving import Server, review

from webhook.cli.serve import serve

DOCS = (Path(__file__).parents[2] / "docs" / "server.md").read_text()


def test_every_flag_and_its_variable_is_described() -> None:
    flags = {name for option in serve.params for name in option.opts}
    variables = {str(option.envvar) for option in serve.params}
    assert set(re.findall(r"`(--[a-z-]+)(?: [A-Z:]+)?`", DOCS)) == flags
    assert set(re.findall(r"`(FIELDWARDEN_\w+)`", DOCS)) == variables


def test_every_metric_is_described(server: Server) -> None:
    server.post(review())
    server.post(b"{")
    text = server.get("/metrics")[1]
    shown = {name for name, kind in re.findall(r"# TYPE (\w+) (\w+)", text)}
    assert set(re.findall(r"`(fieldwarden_\w+)`", DOCS)) == shown
