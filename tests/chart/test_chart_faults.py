"""Values that cannot work are refused with a sentence that has the way out; all faults at once."""

from __future__ import annotations

import pytest
from charting import SPEC, Helm, Object, merged, nested

TWO_OF_ONE = {"webhook": {"serviceAccount": {"name": "one"}}, "controller": {"serviceAccount": {"name": "one"}}}

FAULTS: list[tuple[Object, str]] = [
    (nested("certificates.source", "secret"), "certificates.existingSecret names none: name a Secret with tls.crt"),
    (nested("certificates.existingSecret", "x"), "certificates.source is own: set it to secret"),
    (nested("certificates.certManager.issuerRef.name", "x"), "certificates.source is own: set it to cert-manager"),
    (
        nested("certificates", {"source": "cert-manager", "certManager": {"issuerRef": {"kind": "Issuer"}}}),
        "issuerRef has no name: name an issuer, or leave issuerRef empty",
    ),
    (nested("privacy.hashUsers", True), "privacy.existingSecret names none: make a Secret with a random key"),
    (
        {"reports": {"format": "openreports"}, "journal": {"enabled": False}},
        "but journal.enabled is false: what is reported is what the journal holds",
    ),
    ({"reports": {"events": True}, "journal": {"enabled": False}}, "Enable it, or report nothing"),
    (nested("reports.definitions", "kind: A"), "but reports.format is none: set it to openreports or policyreport"),
    (
        {"reports": {"format": "openreports", "definitions": "# nothing"}},
        "reports.definitions holds nothing: give the published file with --set-file",
    ),
    (
        {"reports": {"format": "openreports", "definitions": "kind: [\n---\n"}},
        "reports.definitions, document 1 is not YAML",
    ),
    (
        {"reports": {"format": "policyreport", "definitions": "---\nspec: {group: openreports.io}"}},
        "document 1 is not a CustomResourceDefinition of wgpolicyk8s.io",
    ),
    (nested("privacy.existingSecret", "hash"), "privacy.hashUsers is false: users' names would be written in clear"),
    (nested("policies.fromCluster", False), "there would be nothing to judge by. Set policies.enabled"),
    (
        nested("policies.enabled", ["nope"]),
        'no policy "nope" is shipped; there are autoscaler-owns-replicas, break-glass',
    ),
    (nested("policies.enabled", ["break-glass", {"name": "break-glass"}]), "policies.enabled names a policy twice"),
    (
        nested("policies", {"enabled": ["break-glass"], "inline": {"break-glass": SPEC}}),
        "break-glass is the name of a shipped policy that is enabled: rename yours",
    ),
    (nested("webhooks.timeoutSeconds", 20), "graceSeconds is 15, less than webhooks.timeoutSeconds (20)"),
    (nested("webhook.podDisruptionBudget.minAvailable", 2), "minAvailable is 2 with 2 replicas: no node could ever"),
    (
        nested(
            "webhook", {"autoscaling": {"enabled": True, "minReplicas": 1}, "podDisruptionBudget": {"minAvailable": 1}}
        ),
        "minAvailable is 1 with 1 replicas",
    ),
    (nested("webhook.autoscaling", {"enabled": True, "minReplicas": 9}), "minReplicas is 9, more than maxReplicas (6)"),
    (
        nested("webhook", {"autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}}}),
        "webhook.resources.requests.cpu is not set",
    ),
    (nested("webhook.serviceAccount.create", False), "webhook.serviceAccount.create is false and its name is empty"),
    (nested("controller.serviceAccount.create", False), "controller.serviceAccount.create is false and its name is"),
    (TWO_OF_ONE, "the webhook would get the controller's rights. Name two."),
    (nested("webhooks.exemptNamespaces", ["fw-system"]), "own namespace fw-system is always exempt: leave it out"),
    (
        nested("prometheusRule", {"enabled": True, "disabled": ["Nope"]}),
        'there is no alert "Nope"; there are FieldwardenDown',
    ),
]


@pytest.mark.parametrize(("values", "sentence"), FAULTS, ids=[sentence[:50] for _, sentence in FAULTS])
def test_values_that_do_not_go_together_are_refused(values: Object, sentence: str, helm: Helm) -> None:
    said = helm.refusal(values)
    assert "these values do not go together:" in said
    assert sentence in said


def test_all_faults_are_told_at_once(helm: Helm) -> None:
    said = helm.refusal(merged(nested("certificates.source", "secret"), nested("webhooks.timeoutSeconds", 20)))
    assert said.count("\n  - ") == 2


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"modes": "Audit"}, "modes"),
        (nested("webhook.replica", 3), "replica"),
        (nested("mode", "enforce"), "/mode"),
        (nested("webhooks.timeoutSeconds", 31), "/webhooks/timeoutSeconds"),
        (nested("webhook.replicas", "two"), "/webhook/replicas"),
        (nested("webhook.podDisruptionBudget.maxUnavailable", 0), "/webhook/podDisruptionBudget/maxUnavailable"),
        (nested("image.digest", "sha256:abc"), "/image/digest"),
        (nested("policies.enabled", [{"name": "break-glass", "mode": "Off"}]), "/policies/enabled/0"),
        (nested("policies.inline", {"A B": {}}), "A B"),
        (nested("policies.inline", {"mine": {"mode": "Warn"}}), "/policies/inline/mine"),
        (
            nested("policies.inline", {"mine": {**SPEC, "rules": [{"name": "a", "writers": {"dney": ["x"]}}]}}),
            "/policies/inline/mine/rules/0/writers': additional properties 'dney' not allowed",
        ),
        (nested("certificates.certManager.duration", "90d"), "/certificates/certManager/duration"),
    ],
)
def test_a_value_that_is_none_is_refused_by_its_place(values: Object, place: str, helm: Helm) -> None:
    said = helm.refusal(values)
    assert "values don't meet the specifications of the schema" in said
    assert place in said


def test_an_old_kubernetes_is_refused(helm: Helm) -> None:
    assert "incompatible with Kubernetes v1.29.0" in helm.refusal({}, "--kube-version=1.29.0")
