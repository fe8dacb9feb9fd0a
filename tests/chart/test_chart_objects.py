"""What every installation is: names, labels, rights, and pods that can do nothing but their work."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
import yaml
from charting import CI, NAMESPACE, ROOT, Helm, Object, Rendering

from webhook.cli.controller import controller
from webhook.cli.serve import serve
from webhook.policy import load

INSTALL = (ROOT / "docs" / "install.md").read_text()


@pytest.fixture(scope="module", params=CI, ids=lambda file: file.name.removesuffix("-values.yaml"))
def values(request: pytest.FixtureRequest) -> Object:
    """The values of one file in ci."""
    file: Path = request.param
    read: Object = yaml.safe_load(file.read_text())
    return read


@pytest.fixture(scope="module")
def made(helm: Helm, values: Object) -> Rendering:
    return helm.render(values)


@pytest.fixture(scope="module")
def default(helm: Helm) -> Rendering:
    return helm.render()


def test_the_chart_lints_without_a_warning(helm: Helm, values: Object) -> None:
    from charting import CHART

    said = helm("lint", "--strict", str(CHART), values=values)
    assert said.returncode == 0, said.stdout
    assert not re.search(r"\[(WARNING|ERROR)\]", said.stdout)


def test_every_object_has_the_usual_labels_and_its_place(made: Rendering) -> None:
    cluster = ("CustomResourceDefinition", "ClusterRole", "WebhookConfiguration")
    for item in made.objects:
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "fw"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert {"app.kubernetes.io/name", "app.kubernetes.io/version", "helm.sh/chart"} < labels.keys()
        wide = any(word in item["kind"] for word in cluster)
        assert item["metadata"].get("namespace") == (None if wide else NAMESPACE), item["kind"]


def test_no_two_objects_have_one_name(made: Rendering) -> None:
    names = [(item["kind"], item["metadata"]["name"]) for item in made.objects]
    assert len(names) == len(set(names))


def test_pods_are_found_by_their_services_and_workloads(made: Rendering) -> None:
    for name, deployment in made.of("Deployment").items():
        labels = deployment["spec"]["template"]["metadata"]["labels"].items()
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
        assert made.of("Service")[name]["spec"]["selector"].items() <= labels


def test_a_long_release_name_still_fits(helm: Helm) -> None:
    long = helm("template", "r" * 53, str(ROOT / "charts" / "fieldwarden"), values={})
    names = re.findall(r"^  name: (.*)$", long.stdout, re.MULTILINE)
    assert names
    assert max(len(name) for name in names) <= 63


def test_webhook_configurations_leave_to_the_controller_what_is_its(made: Rendering) -> None:
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    hooks = [hook for kind in kinds for item in made.of(kind).values() for hook in item["webhooks"]]
    for hook in hooks:
        assert not {"rules", "matchConditions"} & hook.keys()
        assert "caBundle" not in hook["clientConfig"]
        assert hook["matchPolicy"] == "Equivalent"
        assert hook["admissionReviewVersions"] == ["v1"]
        if hook["name"].startswith("policies"):
            assert (hook["failurePolicy"], hook["sideEffects"]) == ("Ignore", "None")
            continue
        assert hook["sideEffects"] == "NoneOnDryRun"
        assert hook.get("reinvocationPolicy") == ("IfNeeded" if hook["name"].startswith("mutate") else None)
        exempt = hook["namespaceSelector"]["matchExpressions"][0]
        assert exempt["operator"] == "NotIn"
        assert {NAMESPACE, "kube-system"} <= set(exempt["values"])


def test_nothing_is_denied_and_nothing_fails_closed_unless_it_is_said(default: Rendering) -> None:
    assert "--mode=Audit" in default.args("webhook")
    hooks = default.of("ValidatingWebhookConfiguration") | default.of("MutatingWebhookConfiguration")
    assert {hook["failurePolicy"] for item in hooks.values() for hook in item["webhooks"]} == {"Ignore"}


@pytest.mark.parametrize("command", [serve, controller])
def test_pods_get_only_flags_that_there_are(made: Rendering, command: click.Command) -> None:
    known = {name for option in command.params for name in option.opts}
    component = "webhook" if command is serve else "controller"
    given = {arg.partition("=")[0] for arg in made.args(component) if arg.startswith("--")}
    assert given <= known


def test_a_pod_is_given_the_time_that_it_drains(made: Rendering) -> None:
    args = dict(arg.split("=", 1) for arg in made.args("webhook") if "=" in arg)
    assert made.pod("webhook")["terminationGracePeriodSeconds"] > int(args["--drain"]) + int(args["--grace"])


def test_a_pod_writes_to_one_folder_in_memory(made: Rendering) -> None:
    for component in ("webhook", "controller"):
        volumes = made.pod(component)["volumes"]
        assert [one["emptyDir"]["medium"] for one in volumes if one["name"] == "tmp"] == ["Memory"]
        container = made.container(component)
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert [name for name, mount in mounts.items() if not mount.get("readOnly") and name != "more"] == ["tmp"]
        assert {"name": "TMPDIR", "value": mounts["tmp"]["mountPath"]} in container["env"]


def test_only_who_needs_it_gets_a_token(made: Rendering) -> None:
    args = made.args("webhook")
    talks = any(arg in ("--policies-from-cluster", "--events") or arg.startswith("--reports=") for arg in args)
    assert made.pod("webhook")["automountServiceAccountToken"] is talks
    assert all(not item["automountServiceAccountToken"] for item in made.of("ServiceAccount").values())


def test_a_pod_waits_for_its_certificate(made: Rendering) -> None:
    """A volume whose items are missing is not mounted; an empty Secret would be."""
    (tls,) = (volume["secret"] for volume in made.pod("webhook")["volumes"] if volume["name"] == "tls")
    assert [item["key"] for item in tls["items"]] == ["tls.crt", "tls.key"]


def test_what_is_read_as_settings_comes_from_the_chart_alone(made: Rendering) -> None:
    """A Service called fieldwarden-webhook sets FIELDWARDEN_WEBHOOK_PORT in every pod of its namespace."""
    assert all(made.pod(component)["enableServiceLinks"] is False for component in ("webhook", "controller"))


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
def test_every_shipped_policy_loads_from_the_chart_in_every_mode(mode: str, helm: Helm, tmp_path: Path) -> None:
    names = [file.parent.name for file in sorted((ROOT / "policies").glob("*/policy.yaml"))]
    made = helm.render({"policies": {"enabled": [{"name": name, "mode": mode} for name in names]}})
    for name, text in made.one("ConfigMap")["data"].items():
        (tmp_path / name).write_text(text)
    loaded = load([tmp_path])
    assert loaded.policies is not None, loaded.problems
    assert {str(policy.mode) for policy in loaded.policies.policies} == {mode}
    assert {policy.name for policy in loaded.policies.policies} >= set(names)


def test_a_policy_by_name_is_the_shipped_file_to_the_letter(helm: Helm) -> None:
    made = helm.render({"policies": {"enabled": ["break-glass"]}})
    text = (ROOT / "policies" / "break-glass" / "policy.yaml").read_text()
    assert made.one("ConfigMap")["data"]["break-glass.yaml"].strip() == text.strip()


def test_inline_policies_load_under_their_names(helm: Helm, tmp_path: Path) -> None:
    spec = yaml.safe_load((ROOT / "policies" / "known-managers-only" / "policy.yaml").read_text())["spec"]
    made = helm.render({"policies": {"inline": {"mine": spec}}})
    (tmp_path / "mine.yaml").write_text(made.one("ConfigMap")["data"]["mine.yaml"])
    loaded = load([tmp_path])
    assert loaded.policies is not None, loaded.problems
    assert [policy.name for policy in loaded.policies.policies] == ["mine"]


def _rights(made: Rendering) -> set[tuple[str, str, str, str]]:
    """Component, resource, verb, and `by name` or nothing."""
    return {
        (item["metadata"]["labels"]["app.kubernetes.io/component"], resource, verb, "by name" if named else "")
        for kind in ("ClusterRole", "Role")
        for item in made.of(kind).values()
        for rule in item["rules"]
        for named in [rule.get("resourceNames")]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_docs_say_why_of_every_right_and_of_no_other(helm: Helm) -> None:
    rows = re.findall(
        r"^\| (webhook|controller) \| `([\w/]+)`(, by name)? \| ([\w, ]+) \| \S.*\|$", INSTALL, re.MULTILINE
    )
    told = {
        (component, resource, verb, "by name" if named else "")
        for component, resource, named, verbs in rows
        for verb in verbs.split(", ")
    }
    formats = [{"reports": {"format": form, "events": True}} for form in ("openreports", "policyreport")]
    assert told == {right for values in formats for right in _rights(helm.render(values))}


def test_by_default_nobody_can_create_or_delete_anything(default: Rendering) -> None:
    assert not {verb for _, _, verb, _ in _rights(default)} & {"create", "delete"}


REPORTS = {"reports", "clusterreports", "policyreports", "clusterpolicyreports", "events"}


def test_no_right_is_wide(made: Rendering) -> None:
    for kind in ("ClusterRole", "Role"):
        for item in made.of(kind).values():
            for rule in item["rules"]:
                assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
                if REPORTS.issuperset(rule["resources"]):
                    continue
                assert not {"create", "delete", "deletecollection", "escalate", "bind", "impersonate"} & set(
                    rule["verbs"]
                )
                if {"update", "patch"} & set(rule["verbs"]) and rule["resources"] != ["fieldpolicies/status"]:
                    assert rule["resourceNames"], rule
