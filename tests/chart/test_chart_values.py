"""Every value does what its description says: one case for each, and none without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from charting import CHART, NAMESPACE, SPEC, Helm, Object, Rendering
from looking import (
    Case,
    alert,
    both,
    certificate,
    endpoint,
    everywhere,
    expressions,
    files,
    flag,
    has,
    hook,
    in_container,
    in_pod,
    limited,
    meta,
    peers,
    placed,
    pod_meta,
    policy_sources,
    service_account,
)
from typed_values import read

DIGEST = "sha256:" + "0123456789abcdef" * 4
POD_VALUES = ("webhook", "controller")
CERT_MANAGER: Object = {"certificates": {"source": "cert-manager"}}
CLOSED: Object = {"networkPolicy": {"enabled": True}}
SCALED: Object = {"webhook": {"autoscaling": {"enabled": True}}}
TOLERATION = {"key": "system", "operator": "Exists"}
AFFINITY: Object = {"nodeAffinity": {}}
VARIABLE = {"name": "A", "value": "b"}
PEER = {"podSelector": {"matchLabels": {"a": "b"}}}
DEFINITIONS = """\
# as published
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: reports.openreports.io, annotations: {made: "yes"}}
spec: {group: openreports.io, scope: Namespaced}
---
# no more
"""
CIDR = {"ipBlock": {"cidr": "192.0.2.0/28"}}

GENERAL = [
    Case("mode", "Enforce", lambda made: all("--mode=Enforce" in made.args(each) for each in POD_VALUES)),
    Case("nameOverride", "warden", everywhere("labels", "app.kubernetes.io/name", "warden")),
    Case("fullnameOverride", "guard", lambda made: set(made.of("Deployment")) == {"guard-webhook", "guard-controller"}),
    Case("commonLabels", {"team": "a"}, everywhere("labels", "team", "a")),
    Case("commonAnnotations", {"from": "git"}, everywhere("annotations", "from", "git")),
    Case(
        "image.registry",
        "registry.example.com",
        in_container("webhook", "image", "registry.example.com/fieldwarden:0.1.0"),
    ),
    Case("image.repository", "localhost/fw", in_container("controller", "image", "localhost/fw:0.1.0")),
    Case("image.tag", "9", in_container("webhook", "image", "fieldwarden:9")),
    Case("image.digest", DIGEST, in_container("webhook", "image", f"fieldwarden@{DIGEST}"), image={"tag": "1"}),
    Case("image.pullPolicy", "Never", in_container("controller", "imagePullPolicy", "Never")),
    Case("image.pullSecrets", [{"name": "s"}], in_pod("webhook", "imagePullSecrets", [{"name": "s"}])),
    Case("policies.enabled", ["break-glass"], lambda made: files(made) == ["break-glass.yaml"]),
    Case("policies.inline", {"mine": SPEC}, lambda made: files(made) == ["mine.yaml"]),
    Case(
        "policies.existingConfigMap",
        "theirs",
        lambda made: policy_sources(made) == [{"configMap": {"name": "theirs"}}],
    ),
    Case(
        "policies.fromCluster",
        False,
        lambda made: not any("--policies-from-cluster" in made.args(each) for each in POD_VALUES),
        policies={"enabled": ["break-glass"]},
    ),
    Case("policies.strict", True, lambda made: all("--strict" in made.args(each) for each in POD_VALUES)),
    Case("crds.enabled", False, lambda made: made.of("CustomResourceDefinition") == {}),
    Case("crds.keep", False, lambda made: "annotations" not in made.one("CustomResourceDefinition")["metadata"]),
    Case(
        "rbac.create", False, lambda made: not any(item["kind"].endswith(("Role", "Binding")) for item in made.objects)
    ),
    Case(
        "podSecurityContext",
        {"runAsUser": 7},
        lambda made: all(made.pod(each)["securityContext"]["runAsUser"] == 7 for each in POD_VALUES),
    ),
    Case(
        "securityContext",
        {"privileged": False},
        lambda made: all("privileged" in made.container(each)["securityContext"] for each in POD_VALUES),
    ),
]

CERTIFICATES = [
    Case("certificates.source", "cert-manager", lambda made: len(made.of("Certificate")) == 2),
    Case(
        "certificates.existingSecret",
        "mine",
        lambda made: made.pod("webhook")["volumes"][1]["secret"]["secretName"] == "mine" and made.of("Secret") == {},
        certificates={"source": "secret"},
    ),
    Case(
        "certificates.certManager.issuerRef",
        {"name": "x", "kind": "ClusterIssuer"},
        lambda made: (
            certificate(made)["issuerRef"] == {"name": "x", "kind": "ClusterIssuer", "group": "cert-manager.io"}
            and made.of("Issuer") == {}
        ),
        **CERT_MANAGER,
    ),
    Case(
        "certificates.certManager.duration", "24h", lambda made: certificate(made)["duration"] == "24h", **CERT_MANAGER
    ),
    Case(
        "certificates.certManager.renewBefore",
        "8h",
        lambda made: certificate(made)["renewBefore"] == "8h",
        **CERT_MANAGER,
    ),
]

WEBHOOKS = [
    Case("webhooks.failurePolicy", "Fail", both("failurePolicy", "Fail")),
    Case("webhooks.timeoutSeconds", 3, both("timeoutSeconds", 3)),
    Case("webhooks.exemptNamespaces", ["a", "b"], lambda made: expressions(made)[0]["values"] == [NAMESPACE, "a", "b"]),
    Case(
        "webhooks.namespaceSelector",
        {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]},
        lambda made: (
            hook(made, "mutate")["namespaceSelector"].get("matchLabels") == {"a": "b"}
            and expressions(made)[1:] == [{"key": "c", "operator": "Exists"}]
        ),
    ),
    Case("webhooks.objectSelector", {"matchLabels": {"a": "b"}}, both("objectSelector", {"matchLabels": {"a": "b"}})),
    Case("webhooks.annotations", {"a": "b"}, meta("MutatingWebhookConfiguration", "", "annotations", {"a": "b"})),
]

WEBHOOK = [
    Case("reports.format", "policyreport", flag("webhook", "--reports=policyreport")),
    Case(
        "reports.definitions",
        DEFINITIONS,
        lambda made: (
            made.of("CustomResourceDefinition").get("reports.openreports.io", {}).get("spec")
            == {"group": "openreports.io", "scope": "Namespaced"}
        ),
        reports={"format": "openreports"},
    ),
    Case("reports.events", True, flag("webhook", "--events")),
    Case("reports.intervalSeconds", 60, flag("webhook", "--report-interval=60"), reports={"events": True}),
    Case("webhook.replicas", 5, lambda made: made.one("Deployment", "-webhook")["spec"]["replicas"] == 5),
    Case("webhook.workers", 4, flag("webhook", "--workers=4")),
    Case("webhook.threads", 3, flag("webhook", "--threads=3")),
    Case("webhook.listenAddress", "[::]", flag("webhook", "--listen=[::]:8443")),
    Case("webhook.drainSeconds", 30, lambda made: made.pod("webhook")["terminationGracePeriodSeconds"] == 50),
    Case("webhook.graceSeconds", 60, lambda made: made.pod("webhook")["terminationGracePeriodSeconds"] == 75),
    Case("webhook.extraVolumes", [{"name": "x"}], lambda made: {"name": "x"} in made.pod("webhook")["volumes"]),
    Case("webhook.extraVolumeMounts", [{"name": "x"}], has("webhook", "volumeMounts", {"name": "x"})),
    Case(
        "webhook.temporarySize",
        "1Gi",
        lambda made: made.pod("webhook")["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"},
    ),
    Case("webhook.topologySpreadConstraints", [], in_pod("webhook", "topologySpreadConstraints", None)),
    Case("webhook.podDisruptionBudget.enabled", False, lambda made: made.of("PodDisruptionBudget") == {}),
    Case(
        "webhook.podDisruptionBudget.maxUnavailable",
        "30%",
        lambda made: made.one("PodDisruptionBudget")["spec"]["maxUnavailable"] == "30%",
    ),
    Case(
        "webhook.podDisruptionBudget.minAvailable",
        1,
        lambda made: (
            made.one("PodDisruptionBudget")["spec"].get("minAvailable") == 1
            and "maxUnavailable" not in made.one("PodDisruptionBudget")["spec"]
        ),
    ),
    Case(
        "webhook.autoscaling.enabled",
        True,
        lambda made: (
            len(made.of("HorizontalPodAutoscaler")) == 1
            and "replicas" not in made.one("Deployment", "-webhook")["spec"]
        ),
    ),
    Case(
        "webhook.autoscaling.minReplicas",
        3,
        lambda made: made.one("HorizontalPodAutoscaler")["spec"]["minReplicas"] == 3,
        **SCALED,
    ),
    Case(
        "webhook.autoscaling.maxReplicas",
        9,
        lambda made: made.one("HorizontalPodAutoscaler")["spec"]["maxReplicas"] == 9,
        **SCALED,
    ),
    Case(
        "webhook.autoscaling.targetCPUUtilizationPercentage",
        55,
        lambda made: (
            made.one("HorizontalPodAutoscaler")["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 55
        ),
        **SCALED,
    ),
    Case("webhook.service.annotations", {"a": "b"}, meta("Service", "-webhook", "annotations", {"a": "b"})),
]

CONTROLLER = [
    Case("controller.replicas", 2, lambda made: made.one("Deployment", "-controller")["spec"]["replicas"] == 2),
]

OF_BOTH = [
    case
    for of in POD_VALUES
    for case in (
        Case(f"{of}.logLevel", "debug", flag(of, "--log-level=debug")),
        Case(f"{of}.extraArgs", ["--more"], flag(of, "--more")),
        Case(f"{of}.extraEnv", [VARIABLE], has(of, "env", VARIABLE)),
        Case(
            f"{of}.resources",
            {"limits": {"cpu": "2"}},
            limited(of, "2"),
        ),
        Case(f"{of}.priorityClassName", "low", in_pod(of, "priorityClassName", "low")),
        Case(f"{of}.nodeSelector", {"a": "b"}, placed(of, {"a": "b"})),
        Case(f"{of}.tolerations", [TOLERATION], in_pod(of, "tolerations", [TOLERATION])),
        Case(f"{of}.affinity", AFFINITY, in_pod(of, "affinity", AFFINITY)),
        Case(f"{of}.podLabels", {"a": "b"}, pod_meta(of, "labels", {"a": "b"})),
        Case(f"{of}.podAnnotations", {"a": "b"}, pod_meta(of, "annotations", {"a": "b"})),
        Case(
            f"{of}.serviceAccount.create",
            False,
            lambda made: len(made.of("ServiceAccount")) == 1,
            **{of: {"serviceAccount": {"name": "theirs"}}},
        ),
        Case(f"{of}.serviceAccount.name", "mine", service_account(of, "mine")),
        Case(
            f"{of}.serviceAccount.annotations", {"a": "b"}, meta("ServiceAccount", f"-{of}", "annotations", {"a": "b"})
        ),
    )
]

SURROUNDINGS = [
    Case("networkPolicy.enabled", True, lambda made: len(made.of("NetworkPolicy")) == 2),
    Case(
        "networkPolicy.apiServerCIDRs",
        ["192.0.2.0/28"],
        lambda made: (
            CIDR in (peers(made, "webhook", "ingress", "https") or ())
            and peers(made, "webhook", "egress", 443) == peers(made, "controller", "egress", 443) == [CIDR]
        ),
        **CLOSED,
    ),
    Case(
        "networkPolicy.apiServerPorts",
        [7443],
        lambda made: (
            peers(made, "controller", "egress", 443) == [] and peers(made, "controller", "egress", 7443) is None
        ),
        **CLOSED,
    ),
    Case(
        "networkPolicy.metricsFrom",
        [PEER],
        lambda made: all(PEER in (peers(made, each, "ingress", "ops") or ()) for each in POD_VALUES),
        **CLOSED,
    ),
    Case("serviceMonitor.enabled", True, lambda made: len(made.of("ServiceMonitor")) == 1),
    Case(
        "serviceMonitor.labels",
        {"a": "b"},
        meta("ServiceMonitor", "", "labels", {"a": "b"}),
        serviceMonitor={"enabled": True},
    ),
    Case(
        "serviceMonitor.interval",
        "5s",
        lambda made: endpoint(made)["interval"] == "5s",
        serviceMonitor={"enabled": True},
    ),
    Case(
        "serviceMonitor.scrapeTimeout",
        "4s",
        lambda made: endpoint(made)["scrapeTimeout"] == "4s",
        serviceMonitor={"enabled": True},
    ),
    Case("prometheusRule.enabled", True, lambda made: len(made.of("PrometheusRule")) == 1),
    Case(
        "prometheusRule.labels",
        {"a": "b"},
        meta("PrometheusRule", "", "labels", {"a": "b"}),
        prometheusRule={"enabled": True},
    ),
    Case(
        "prometheusRule.alertLabels",
        {"team": "a"},
        lambda made: alert(made, "FieldwardenDown")["labels"] == {"severity": "critical", "team": "a"},
        prometheusRule={"enabled": True},
    ),
    Case(
        "prometheusRule.certificateDays",
        3,
        lambda made: alert(made, "FieldwardenCertificateEnds")["expr"].endswith("< 3 * 86400"),
        prometheusRule={"enabled": True},
    ),
    Case(
        "prometheusRule.authorityDays",
        9,
        lambda made: alert(made, "FieldwardenAuthorityEnds")["expr"].endswith("< 9 * 86400"),
        prometheusRule={"enabled": True},
    ),
    Case(
        "prometheusRule.slowSeconds",
        0.25,
        lambda made: alert(made, "FieldwardenSlow")["expr"].endswith("> 0.25"),
        prometheusRule={"enabled": True},
    ),
    Case(
        "prometheusRule.disabled",
        ["FieldwardenSlow"],
        lambda made: alert(made, "FieldwardenSlow") == {} and alert(made, "FieldwardenDown") != {},
        prometheusRule={"enabled": True},
    ),
    Case("dashboard.enabled", True, lambda made: files(made) == ["fieldwarden.json"]),
    Case("dashboard.labels", {"a": "b"}, meta("ConfigMap", "", "labels", {"a": "b"}), dashboard={"enabled": True}),
    Case(
        "dashboard.annotations",
        {"a": "b"},
        meta("ConfigMap", "", "annotations", {"a": "b"}),
        dashboard={"enabled": True},
    ),
]

JOURNAL = [
    Case("journal.enabled", False, lambda made: not any("--journal" in word for word in made.args("webhook"))),
    Case("journal.maxRecords", 70000, flag("webhook", "--journal-max-records=70000")),
    Case("journal.keepDays", 7, flag("webhook", "--journal-keep-days=7")),
    Case("privacy.hashUsers", True, flag("webhook", "--hash-users"), privacy={"existingSecret": "hash"}),
    Case(
        "privacy.existingSecret",
        "mine",
        lambda made: (
            "mine" in [volume.get("secret", {}).get("secretName") for volume in made.pod("webhook")["volumes"]]
        ),
        privacy={"hashUsers": True},
    ),
]

CASES = [*JOURNAL, *GENERAL, *CERTIFICATES, *WEBHOOKS, *WEBHOOK, *CONTROLLER, *OF_BOTH, *SURROUNDINGS]


def test_every_value_has_a_case_and_only_one() -> None:
    values = {".".join(value.path) for value in read((CHART / "values.yaml").read_text())}
    assert sorted(case.path for case in CASES) == sorted(values)


@pytest.fixture(scope="module")
def without(helm: Helm) -> Callable[[Object], Rendering]:
    """What is rendered without the value of a case, each once."""
    made: dict[str, Rendering] = {}

    def render(beside: Object) -> Rendering:
        key = yaml.safe_dump(beside)
        if key not in made:
            made[key] = helm.render(beside)
        return made[key]

    return render


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_a_value_does_what_it_says(case: Case, helm: Helm, without: Callable[[Object], Rendering]) -> None:
    assert case.check(helm.render(case.values))
    if case.path != "privacy.hashUsers" and not case.path.endswith(
        ".existingSecret"
    ):  # alone it is refused: see the faults
        assert not case.check(without(case.beside)), "it is so without the value too"
