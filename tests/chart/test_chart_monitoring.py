"""Alerts and dashboard ask for metrics that there are."""

from __future__ import annotations

import json
import re

from charting import CHART, ROOT, Helm, Object

DOCS = "".join((ROOT / "docs" / page).read_text() for page in ("server.md", "controller.md"))
INSTALL = (ROOT / "docs" / "install.md").read_text()
OURS = set(re.findall(r"`(fieldwarden_\w+)`", DOCS))
SERVERS = {"apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count"}
"""The API server's own: a test on a real one sees them."""
LABELS = {
    label
    for row in re.findall(r"^\| `fieldwarden_.*?\| ([\w, ]*) \| .*\|$", DOCS, re.MULTILINE)
    for label in row.split(", ")
}
GIVEN = {"namespace", "pod", "name", "error_type", "le"}
"""Labels that scraping adds, and the API server's."""


def _alerts(helm: Helm) -> list[Object]:
    (group,) = helm.render({"prometheusRule": {"enabled": True}}).one("PrometheusRule")["spec"]["groups"]
    rules: list[Object] = group["rules"]
    return rules


def _asked(expressions: list[str]) -> set[str]:
    """The metrics by their families' names."""
    found = {name for text in expressions for name in re.findall(r"\b(?:fieldwarden|apiserver)_\w+", text)}
    return {name.removesuffix("_bucket") for name in found}


def _labels(expressions: list[str]) -> set[str]:
    found = set()
    for text in expressions:
        for group in re.findall(r"by \(([^)]*)\)", text):
            found |= {label.strip() for label in group.split(",")}
        for matchers in re.findall(r"\{([^}]*)\}", text):
            found |= set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers))
    return found


def _panels() -> list[Object]:
    panels: list[Object] = json.loads((CHART / "dashboards" / "fieldwarden.json").read_text())["panels"]
    return panels


def test_alerts_ask_for_metrics_and_labels_that_there_are(helm: Helm) -> None:
    expressions = [rule["expr"] for rule in _alerts(helm)]
    assert _asked(expressions) <= OURS | SERVERS
    assert _labels(expressions) <= LABELS | GIVEN


def test_every_alert_says_what_it_is_and_how_bad(helm: Helm) -> None:
    for rule in _alerts(helm):
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")
        assert len(rule["annotations"]["description"]) > len(rule["annotations"]["summary"])
        used = re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))
        kept = re.findall(r"by \(([^)]*)\)", rule["expr"])
        assert all(not kept or label in kept[0] for label in used), rule["alert"]


def test_the_docs_list_every_alert_and_no_other(helm: Helm) -> None:
    assert set(re.findall(r"\bFieldwarden[A-Z]\w+", INSTALL)) == {rule["alert"] for rule in _alerts(helm)}


def test_alerts_are_about_this_installation_alone(helm: Helm) -> None:
    for rule in _alerts(helm):
        for matchers in re.findall(r"\bfieldwarden_\w+\{([^}]*)\}", rule["expr"]):
            assert 'namespace="fw-system"' in matchers
        assert not re.search(r"\bfieldwarden_\w+(?![\w{])", rule["expr"]), rule["alert"]


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    expressions = [target["expr"] for panel in _panels() for target in panel["targets"]]
    assert _asked(expressions) <= OURS | SERVERS
    assert _labels(expressions) <= LABELS | GIVEN


def test_panels_do_not_overlap_and_each_says_what_it_shows() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in _panels():
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells
        taken |= cells
        assert panel["title"]
        assert panel["description"].endswith(".")


def test_the_dashboard_in_the_chart_is_the_file(helm: Helm) -> None:
    made = helm.render({"dashboard": {"enabled": True}}).one("ConfigMap", "-dashboard")
    assert json.loads(made["data"]["fieldwarden.json"])["panels"] == _panels()
