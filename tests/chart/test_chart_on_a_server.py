"""What the chart renders, on a real API server: taken whole, installed, upgraded under the controller's fields, and gone."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from charting import CHART, CI, Helm, Object, merged, nested
from published import CERT_MANAGER, PROMETHEUS, REPORTS, definitions

from webhook.sandbox import Sandbox

_releases = itertools.count(1)
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
CONDITIONS = [{"name": "guarded", "expression": "object.metadata.name.startsWith('guarded')"}]
BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n").decode()


class Cluster:
    """Helm and kubectl on the sandbox, for one release in a namespace of its own."""

    def __init__(self, helm: Helm, sandbox: Sandbox, namespace: str, release: str) -> None:
        self.helm, self.sandbox, self.namespace, self.release = helm, sandbox, namespace, release
        self.name = f"{release}-fieldwarden"

    def run(self, verb: str, values: Object | None = None) -> None:
        chart = () if verb == "uninstall" else (str(CHART),)
        waiting = ("--wait",) if verb == "uninstall" else ()
        where = f"--namespace={self.namespace}"
        environment = self.sandbox.environment()
        said = self.helm(verb, self.release, *chart, where, *waiting, values=values, environment=environment)
        assert said.returncode == 0, said.stderr

    def get(self, kind: str, name: str) -> Object:
        done = self.sandbox.kubectl("get", kind, name, f"--namespace={self.namespace}", "--output=yaml")
        found: Object = yaml.safe_load(done.stdout)
        return found

    def apply_as_controller(self, item: Object) -> None:
        self.sandbox.kubectl(
            *("apply", "--server-side", "--field-manager=fieldwarden", "--filename=-"),
            f"--as=system:serviceaccount:{self.namespace}:{self.name}-controller",
            input=yaml.safe_dump(item),
        )

    def register(self, phase: str, kind: str) -> None:
        """What the controller does once the webhook answers."""
        hook: Object = {
            "name": f"{phase}.fieldwarden.dev",
            "rules": RULES,
            "matchConditions": CONDITIONS,
            "clientConfig": {"caBundle": BUNDLE},
        }
        self.apply_as_controller(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": self.name},
                "webhooks": [hook],
            }
        )

    def may(self, account: str, verb: str, resource: str, name: str = "", namespace: str = "") -> bool:
        """Whether an account of the release may do this, by the API server's word."""
        resource, _, subresource = resource.partition("/")
        kind, _, group = resource.partition(".")
        wanted = {"verb": verb, "resource": kind, "group": group, "subresource": subresource, "name": name}
        review = {
            "spec": {
                "user": f"system:serviceaccount:{self.namespace}:{self.name}-{account}",
                "groups": ["system:serviceaccounts", "system:authenticated"],
                "resourceAttributes": {**wanted, "namespace": namespace},
            }
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        reply = self.sandbox.request("POST", path, {"apiVersion": "authorization.k8s.io/v1", **review})
        assert reply.status == 201, reply.body
        return bool(reply.body["status"]["allowed"])


@pytest.fixture
def cluster(helm: Helm, sandbox: Sandbox, namespace: str) -> Iterator[Cluster]:
    made = Cluster(helm, sandbox, namespace, f"chart-{next(_releases)}")
    yield made
    helm("uninstall", made.release, f"--namespace={namespace}", "--ignore-not-found", environment=sandbox.environment())
    _remove_definitions(sandbox, "fieldpolicies.fieldwarden.dev")


def _remove_definitions(sandbox: Sandbox, *names: str) -> None:
    """Until they are gone.

    The API server may pass over a deletion that meets another write of the definition, and looks again only minutes
    later, or once the definition is touched.
    """
    touches = itertools.count(1)
    paths = [f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}" for name in names]
    for path in paths:
        assert sandbox.request("DELETE", path).status in (200, 404)

    def gone(path: str) -> bool:
        if sandbox.request("GET", path).status == 404:
            return True
        number = next(touches)
        if number % 20 == 0:
            touched = {"metadata": {"annotations": {"touched": str(number)}}}
            sandbox.request("PATCH", path, touched, content_type="application/merge-patch+json")
        return False

    for path in paths:
        sandbox.wait_until(lambda at=path: gone(at), "kube-apiserver")  # type: ignore[misc]


@pytest.fixture(scope="module")
def others(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The kinds of cert-manager and the Prometheus Operator."""
    folder = tmp_path_factory.mktemp("published")
    files = [file for published in (CERT_MANAGER, PROMETHEUS) for file in definitions(published, folder)]
    named = [f"--filename={file}" for file in files]
    sandbox.kubectl("apply", "--server-side", *named)
    sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *named)
    yield
    sandbox.kubectl("delete", "--wait=false", *named)


def _restricted(sandbox: Sandbox, namespace: str) -> None:
    sandbox.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name.removesuffix("-values.yaml"))
def test_the_server_takes_every_rendering_whole(file: Path, cluster: Cluster, helm: Helm, others: None) -> None:
    """Unknown fields are errors here."""
    rendered = helm("template", "fw", str(CHART), f"--namespace={cluster.namespace}", f"--values={file}")
    assert rendered.returncode == 0, rendered.stderr
    arguments = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-")
    done = cluster.sandbox.kubectl(*arguments, input=rendered.stdout, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert len(done.stdout.splitlines()) == len([item for item in yaml.safe_load_all(rendered.stdout) if item])


@pytest.mark.parametrize("file", CI, ids=lambda file: file.name.removesuffix("-values.yaml"))
def test_every_pod_is_admitted_where_pods_are_restricted(
    file: Path, helm: Helm, sandbox: Sandbox, namespace: str
) -> None:
    _restricted(sandbox, namespace)
    made = helm.render(yaml.safe_load(file.read_text()))
    specs = [made.pod("webhook"), made.pod("controller"), made.one("Pod")["spec"]]
    for spec in specs:
        assert _pod(sandbox, namespace, spec) == (201, "")


def test_a_pod_that_asks_for_more_is_refused_there(helm: Helm, sandbox: Sandbox, namespace: str) -> None:
    """Or else the test above would prove nothing."""
    _restricted(sandbox, namespace)
    spec = helm.render(nested("securityContext.allowPrivilegeEscalation", True)).pod("webhook")
    status, message = _pod(sandbox, namespace, spec)
    assert status == 403
    assert "allowPrivilegeEscalation" in message


def _pod(sandbox: Sandbox, namespace: str, spec: Object) -> tuple[int, str]:
    """What becomes of a dry run, and why it is refused."""
    pod = {"metadata": {"name": "tried"}, "spec": {**spec, "priorityClassName": None}}
    path = f"/api/v1/namespaces/{namespace}/pods"
    reply = sandbox.request("POST", path, pod, params={"dryRun": "All", "fieldValidation": "Strict"})
    return reply.status, "" if reply.status == 201 else str(reply.body["message"])


def test_an_upgrade_leaves_what_the_controller_wrote(cluster: Cluster) -> None:
    cluster.run("install", {})
    cluster.register("validate", "ValidatingWebhookConfiguration")
    cluster.register("mutate", "MutatingWebhookConfiguration")
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"tls.crt": "YQ==", "tls.key": "Yg=="}}
    place = {"name": f"{cluster.name}-webhook-tls", "namespace": cluster.namespace}
    cluster.apply_as_controller({**secret, "metadata": place})

    cluster.run("upgrade", merged(nested("webhooks.timeoutSeconds", 3), nested("commonLabels.team", "a")))

    for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        (hook,) = cluster.get(kind, cluster.name)["webhooks"]
        assert hook["timeoutSeconds"] == 3
        assert hook["clientConfig"]["caBundle"] == BUNDLE
        assert hook["matchConditions"] == CONDITIONS
        assert [rule["resources"] for rule in hook["rules"]] == [["configmaps"]]
    kept = cluster.get("secret", place["name"])
    assert kept["data"] == secret["data"]
    assert kept["metadata"]["labels"]["team"] == "a"


def test_nothing_is_left_of_an_uninstalled_release_but_the_policies(cluster: Cluster) -> None:
    cluster.run("install", {})
    cluster.register("validate", "ValidatingWebhookConfiguration")
    assert len(_objects_of(cluster)) > 15
    cluster.run("uninstall")
    assert _objects_of(cluster) == ["customresourcedefinition.apiextensions.k8s.io/fieldpolicies.fieldwarden.dev"]


def test_nothing_at_all_is_left_where_that_is_wished(cluster: Cluster) -> None:
    cluster.run("install", nested("crds.keep", False))
    cluster.run("uninstall")
    assert _objects_of(cluster) == []


@pytest.mark.parametrize("form", ["openreports", "policyreport"])
def test_the_definitions_of_reports_are_installed_as_published_and_stay(
    form: str, cluster: Cluster, sandbox: Sandbox, tmp_path: Path
) -> None:
    files = definitions(REPORTS[form], tmp_path)
    published = {made["metadata"]["name"]: made for made in map(yaml.safe_load, (file.read_text() for file in files))}
    try:
        text = "".join(file.read_text() for file in files)
        cluster.run("install", {"reports": {"format": form, "definitions": text}})
        names = [f"customresourcedefinition/{name}" for name in published]
        sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
        cluster.run("upgrade", {"reports": {"format": form, "definitions": text}, "mode": "Warn"})
        cluster.run("uninstall")
        for name, made in published.items():
            stored = cluster.get("customresourcedefinition", name)
            assert stored["metadata"]["annotations"].items() >= made["metadata"]["annotations"].items()
            assert [each["schema"] for each in stored["spec"]["versions"]] == [
                each["schema"] for each in made["spec"]["versions"]
            ]
    finally:
        _remove_definitions(sandbox, *published)


def _objects_of(cluster: Cluster) -> list[str]:
    """All objects of the release, whatever their kind; Helm's own record is labelled otherwise."""
    kinds = [
        kind
        for namespaced in ("true", "false")
        for kind in cluster.sandbox.kubectl(
            "api-resources", "--verbs=list,delete", f"--namespaced={namespaced}", "--output=name"
        ).stdout.split()
        if not kind.startswith("events")
    ]
    chosen = f"--selector=app.kubernetes.io/instance={cluster.release}"
    listed = cluster.sandbox.kubectl("get", ",".join(kinds), "--all-namespaces", chosen, "--output=name")
    return listed.stdout.split()


def test_the_accounts_may_do_their_work_and_nothing_beside(cluster: Cluster, namespace: str) -> None:
    cluster.run("install", {})
    name = cluster.name
    may: list[tuple[str, ...]] = [
        ("webhook", "watch", "fieldpolicies.fieldwarden.dev"),
        ("webhook", "list", "namespaces"),
        ("controller", "patch", "validatingwebhookconfigurations.admissionregistration.k8s.io", name),
        ("controller", "patch", "validatingwebhookconfigurations.admissionregistration.k8s.io", f"{name}-policies"),
        ("controller", "patch", "fieldpolicies.fieldwarden.dev/status", "any"),
        ("controller", "patch", "secrets", f"{name}-authority", namespace),
        ("controller", "patch", "secrets", f"{name}-webhook-tls", namespace),
        ("controller", "update", "leases.coordination.k8s.io", f"{name}-controller", namespace),
        ("controller", "list", "endpointslices.discovery.k8s.io", "", namespace),
    ]
    may_not: list[tuple[str, ...]] = [
        ("webhook", "get", "secrets", f"{name}-authority", namespace),
        ("webhook", "patch", "fieldpolicies.fieldwarden.dev/status", "any"),
        ("webhook", "list", "configmaps", "", namespace),
        ("controller", "patch", "validatingwebhookconfigurations.admissionregistration.k8s.io", "another"),
        ("controller", "delete", "validatingwebhookconfigurations.admissionregistration.k8s.io", name),
        ("controller", "create", "mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        ("controller", "patch", "fieldpolicies.fieldwarden.dev", "any"),
        ("controller", "create", "secrets", "", namespace),
        ("controller", "get", "secrets", "another", namespace),
        ("controller", "get", "secrets", f"{name}-authority", "kube-system"),
        ("controller", "list", "secrets", "", namespace),
        ("controller", "create", "pods", "", namespace),
    ]
    # The authorizer hears of new roles a moment later.
    cluster.sandbox.wait_until(lambda: all(cluster.may(*asked) for asked in may), "kube-apiserver")
    assert [asked for asked in may_not if cluster.may(*asked)] == []


@pytest.mark.parametrize("form", ["openreports", "policyreport"])
def test_who_reports_may_do_that_and_no_more(form: str, cluster: Cluster) -> None:
    cluster.run("install", {"reports": {"format": form, "events": True}})
    role = f"clusterroles.rbac.authorization.k8s.io/{cluster.name}-webhook"
    kinds = {
        "openreports": ["reports.openreports.io", "clusterreports.openreports.io"],
        "policyreport": ["policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io"],
    }
    may = [
        ("webhook", verb, kind) for kind in kinds.pop(form) for verb in ("get", "list", "create", "update", "delete")
    ]
    may += [("webhook", verb, "events.events.k8s.io") for verb in ("create", "patch")]
    (others,) = kinds.values()
    may_not = [("webhook", "get", kind) for kind in others]
    may_not += [("webhook", verb, "events") for verb in ("create", "list")]
    may_not += [("webhook", "delete", "events.events.k8s.io"), ("controller", "create", "reports.openreports.io")]
    cluster.sandbox.wait_until(lambda: all(cluster.may(*asked) for asked in may), "kube-apiserver")
    assert [asked for asked in may_not if cluster.may(*asked)] == []
    resource, _, name = role.partition("/")
    assert cluster.may("webhook", "get", resource, name)
    assert not cluster.may("webhook", "get", resource, "cluster-admin")


def test_the_servers_metrics_in_the_alerts_are_those_that_it_counts(cluster: Cluster) -> None:
    """And with no pod at all, a write passes under Ignore and is refused under Fail, but in the release's own namespace."""
    guarded = nested("webhooks.objectSelector.matchLabels.guarded", "yes")
    cluster.run("install", guarded)
    cluster.register("validate", "ValidatingWebhookConfiguration")
    tried = itertools.count(1)

    def write(namespace: str = "default") -> int:
        item = {"metadata": {"name": f"guarded-{next(tried)}", "labels": {"guarded": "yes"}}}
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        return cluster.sandbox.request("POST", path, item, "developer", params={"dryRun": "All"}).status

    def counted(metric: str) -> bool:
        write()
        lines = cluster.sandbox.kubectl("get", "--raw", "/metrics").stdout.splitlines()
        named = [line for line in lines if line.startswith(metric) and 'name="validate.fieldwarden.dev"' in line]
        return any(float(line.split()[-1]) > 0 for line in named)

    open_, closed = "apiserver_admission_webhook_fail_open_count{", "apiserver_admission_webhook_rejection_count{"
    cluster.sandbox.wait_until(lambda: counted(open_), "kube-apiserver")
    cluster.run("upgrade", merged(guarded, nested("webhooks.failurePolicy", "Fail")))
    cluster.sandbox.wait_until(lambda: write() == 500, "kube-apiserver")
    assert counted(closed + 'error_type="calling_webhook_error"')
    assert write(cluster.namespace) == 201
