"""What is printed after an installation: what is on, in which mode, and the next command."""

from __future__ import annotations

import yaml
from charting import SPEC, Helm, nested


def test_the_defaults_say_that_nothing_is_denied(helm: Helm) -> None:
    notes = helm.notes()
    assert "is installed as fw-fieldwarden in fw-system" in notes
    assert "Mode Audit: what policies find is recorded; nothing is denied, nothing is rewritten." in notes
    assert "every FieldPolicy of the cluster" in notes
    assert "writes pass unjudged (failurePolicy Ignore)" in notes
    assert "Never sent: fw-system, kube-system" in notes
    assert "helm test fw --namespace fw-system" in notes
    assert "--set mode=Warn" in notes
    assert "--selector app.kubernetes.io/part-of=fieldwarden,app.kubernetes.io/instance=fw\n" in notes
    assert "NOTE" not in notes


def test_each_policy_is_named_with_its_mode(helm: Helm) -> None:
    policies = {
        "enabled": ["break-glass", {"name": "known-managers-only", "mode": "Enforce"}],
        "inline": {"mine": {**SPEC, "mode": "Warn"}, "other": SPEC},
        "existingConfigMap": "theirs",
    }
    notes = helm.notes({"mode": "Enforce", "policies": policies})
    assert "Mode Enforce: policies in Enforce deny and rewrite." in notes
    for line in (
        "break-glass (shipped, Audit)",
        "known-managers-only (shipped, Enforce)",
        "mine (inline, Warn)",
        "other (inline, Audit)",
        "the files of ConfigMap theirs",
    ):
        assert f"  - {line}\n" in notes
    assert "--set mode=Warn" not in notes


def test_it_warns_of_what_is_allowed_but_rarely_meant(helm: Helm) -> None:
    assert "the controller has no replica" in helm.notes(nested("controller.replicas", 0))
    closed = {"webhooks": {"failurePolicy": "Fail"}, "webhook": {"replicas": 1}}
    notes = helm.notes(closed)
    assert "failurePolicy is Fail with fewer than two replicas" in notes
    assert "are refused (failurePolicy Fail)" in notes


def test_it_says_what_stays_when_the_release_goes(helm: Helm) -> None:
    assert "crds.keep=false removes it" in helm.notes()
    assert "crds.keep" not in helm.notes(nested("crds.keep", False))


def test_it_says_where_what_is_found_is_reported(helm: Helm) -> None:
    assert "install the definitions of OpenReports or PolicyReport, and set reports.format" in helm.notes()
    notes = helm.notes(nested("reports.format", "policyreport"))
    assert "kubectl get policyreports.wgpolicyk8s.io,clusterpolicyreports.wgpolicyk8s.io --all-namespaces" in notes
    assert "while they are missing, nothing is reported" in notes
    assert "leaves them behind" not in notes
    given = {"apiVersion": "v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}}
    given["spec"] = {"group": "openreports.io"}
    notes = helm.notes({"reports": {"format": "openreports", "definitions": yaml.safe_dump(given)}})
    assert "The definitions of these reports stay when the release goes." in notes
    assert "while they are missing" not in notes
    without = {"reports": {"format": "openreports"}, "rbac": {"create": False}}
    assert "leaves them behind when it goes" in helm.notes(without)
