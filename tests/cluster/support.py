"""Policies as resources, reviews to judge them by, and a `fieldwarden serve` that follows a cluster."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.server.serving import Server, eventually, review, running
from webhook.cluster.crd import definition
from webhook.sandbox import Sandbox

Object = dict[str, Any]

PATH = "/apis/fieldwarden.dev/v1alpha1/fieldpolicies"
LABEL, ANNOTATE = "kubectl-label", "kubectl-annotate"
REVIEWS = {LABEL: "kubectl-label-overwrite", ANNOTATE: "kubectl-annotate"}
"""Captured reviews of writes under these managers, in the namespace default."""


def install(sandbox: Sandbox) -> None:
    """Install the custom resource, and wait until it is served; another test may just be taking it away."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def served() -> bool:
        made = sandbox.request("POST", path, definition())
        assert made.status in (201, 409), made.body
        stored = sandbox.request("GET", f"{path}/{definition()['metadata']['name']}").body
        leaving = "deletionTimestamp" in stored.get("metadata", {})
        return not leaving and sandbox.request("GET", PATH).status == 200

    sandbox.wait_until(served, "kube-apiserver")


def policy(name: str = "no-labels", denied: str = LABEL, **match: Any) -> Object:
    """A policy that denies what one manager writes."""
    resources = [{"groups": ["*"], "resources": ["*"]}]
    return {
        "apiVersion": "fieldwarden.dev/v1alpha1",
        "kind": "FieldPolicy",
        "metadata": {"name": name},
        "spec": {
            "mode": "Enforce",
            "match": {"resources": resources, **match},
            "rules": [{"name": "who-writes", "writers": {"deny": [denied]}}],
        },
    }


def invalid(name: str = "no-labels") -> Object:
    """A policy that the schema accepts and the linter does not."""
    bad = policy(name, ANNOTATE)
    bad["spec"]["rules"][0]["writers"]["deny"] = ["[kubectl]"]
    return bad


def owned(name: str, owner: str, mode: str = "Enforce") -> Object:
    """A policy by which nobody but one manager may write images. Two of them contradict each other."""
    made = policy(name)
    made["spec"]["mode"] = mode
    made["spec"]["match"]["resources"] = [{"groups": ["apps"], "resources": ["deployments"]}]
    subjects = [{"user": f"{owner}@example.com"}]
    fields = [".spec.template.spec.containers[*].image"]
    made["spec"]["rules"] = [
        {
            "name": "images",
            "ownership": {
                "fields": fields,
                "owners": [{"manager": owner, "subjects": subjects}],
                "guard": "Matching",
                "onChange": "Deny",
            },
        }
    ]
    return made


@contextlib.contextmanager
def following(
    sandbox: Sandbox, folder: Path, *arguments: str, files: Path | None = None, user: str = "admin", wait: bool = True
) -> Iterator[Server]:
    """A server with two workers that takes the sandbox's policies."""
    cluster = ("--policies-from-cluster", "--kubeconfig", str(sandbox.kubeconfig(user)))
    with running(folder, files, *cluster, *arguments, wait=wait) as server:
        yield server


def denied(server: Server, manager: str, namespace: str = "default") -> set[bool]:
    """Whether a write under this manager is denied, by whichever worker is asked."""
    asked = json.loads(review(REVIEWS[manager]))
    asked["request"]["namespace"] = namespace
    body = json.dumps(asked).encode()
    return {not server.post(body).allowed for _ in range(8)}


def in_force(server: Server, **expected: bool) -> None:
    """Wait until all workers deny what is expected: `label=True, annotate=False`.

    A worker that is slow to load is slow to be asked too, so their own word counts beside their answers.
    """
    names = {"label": LABEL, "annotate": ANNOTATE}

    def is_so() -> bool:
        before = server.generations()
        judged = all(denied(server, names[name]) == {wanted} for name, wanted in expected.items())
        return judged and len(before) == 1 and server.generations() == before

    eventually(is_so)
