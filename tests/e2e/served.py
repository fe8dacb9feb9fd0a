"""What the stories know of their server, of the pods of a release: what they log, and which policies they judge by."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import yaml

from tests.e2e.cluster import Object
from tests.e2e.release import POLICIES, Release
from webhook.sandbox.registration import PHASES, Probe

_numbers = itertools.count(1)
_BARRIER = "end-to-end-barrier-"
_ASKED = {"group": "", "version": "v1", "resource": "configmaps"}
_KIND = {"group": "", "version": "v1", "kind": "ConfigMap"}

Mark = dict[str, int]


class Served:
    """The webhook's pods as they are when the block begins. They must not be replaced before it ends."""

    def __init__(self, release: Release) -> None:
        self.cluster, self.release = release.cluster, release
        self.pods = [pod["metadata"]["name"] for pod in release.pods("webhook")]
        assert self.pods
        self._followers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        for pod in self.pods:
            with self._file(pod).open("wb") as log:
                argv = ("kubectl", "logs", "--follow", f"--namespace={self.release.namespace}", pod)
                self._followers.append(subprocess.Popen(argv, stdout=log, env=self.cluster.environment()))
        return self

    def __exit__(self, *_: object) -> None:
        for follower in self._followers:
            follower.terminate()
            follower.wait()

    def register(self, rules: object = None, **other: object) -> None:
        """The controller has done so, for what the policies are about: `rules` may be more, and then is of no use."""
        assert not other, "a story that wants another registration is one of tests/e2e/elsewhere.py"

    def mark(self) -> Mark:
        """Where the logs end now."""
        self._catch_up()
        return {pod: self._file(pod).stat().st_size for pod in self.pods}

    def reviews(self, since: Mark | None = None) -> list[dict[str, Any]]:
        """A line for each review that was answered since a mark. Nothing worse than a warning may stand in the logs."""
        self._catch_up()
        found = []
        for pod in self.pods:
            text = self._file(pod).read_bytes()[since[pod] if since else 0 :]
            assert all(line.startswith(b"{") for line in text.splitlines()), text
            lines = [json.loads(line) for line in text.splitlines()]
            assert not [line for line in lines if line["level"] in ("error", "critical")]
            found += [line for line in lines if line["event"] == "review" and "uid" in line]
        found.sort(key=lambda line: line["time"])
        return [line for line in found if not line["uid"].startswith(_BARRIER)]

    @property
    def log(self) -> Path:
        """All of it in one file."""
        self._catch_up()
        whole = self.cluster.folder / "all-pods.log"
        whole.write_bytes(b"".join(self._file(pod).read_bytes() for pod in self.pods))
        return whole

    def get(self, path: str) -> tuple[int, str]:
        """What all pods say on their plain port, the worst status first."""
        said = [self.cluster.request("GET", f"{self.release.proxied(pod, 8080)}{path}") for pod in self.pods]
        return max(reply.status for reply in said), "\n".join(json.dumps(reply.body) for reply in said)

    def _catch_up(self) -> None:
        """Until everything logged so far is in our files: a review of our own stands behind it in every pod's log."""
        uids = {pod: f"{_BARRIER}{next(_numbers)}" for pod in self.pods}
        sizes = {pod: self._file(pod).stat().st_size for pod in self.pods}
        for pod, uid in uids.items():
            reply = self.cluster.request("POST", f"{self.release.proxied(pod, 8443, 'https')}/validate", _barrier(uid))
            assert reply.status == 200, reply.body
        for pod, uid in uids.items():
            self.cluster.wait_until(lambda: self._has(pod, sizes[pod], f'"{uid}"'.encode()), seconds=10)  # noqa: B023

    def _has(self, pod: str, since: int, text: bytes) -> bool:
        with self._file(pod).open("rb") as log:
            log.seek(since)
            found = log.read()
        return text in found and found.endswith(b"\n")

    def _file(self, pod: str) -> Path:
        return self.cluster.folder / f"{pod}.log"


def _barrier(uid: str) -> Object:
    """A review of nothing that any policy is about."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "barrier", "namespace": "kube-system"}}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": _KIND,
            "resource": _ASKED,
            "requestKind": _KIND,
            "requestResource": _ASKED,
            "namespace": "kube-system",
            "name": "barrier",
            "operation": "CREATE",
            "dryRun": True,
            "userInfo": {"username": "system:apiserver", "groups": ["system:masters"]},
            "object": made,
            "oldObject": None,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "dryRun": ["All"]},
        },
    }


@contextmanager
def serving(release: Release, folder: Path) -> Iterator[Served]:
    """The pods with the policies of a folder as FieldPolicies, and no others; those that were there come back afterwards."""
    documents = [
        document for file in sorted(folder.glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())
    ]
    before = [_bare(item) for item in release.cluster.get(POLICIES)["items"]]
    with Served(release) as served:
        in_force(release, *documents)
        try:
            yield served
        finally:
            in_force(release, *before)


def _bare(item: Object) -> Object:
    return {
        "apiVersion": "fieldwarden.dev/v1alpha1",
        "kind": "FieldPolicy",
        "metadata": {"name": item["metadata"]["name"]},
        "spec": item["spec"],
    }


def in_force(release: Release, *policies: Object) -> None:
    """These and no others: returns when every worker judges by them, and the API server asks."""
    cluster = release.cluster
    names = {policy["metadata"]["name"] for policy in policies}
    for item in cluster.get(POLICIES)["items"]:
        if item["metadata"]["name"] not in names:
            cluster.remove(f"{POLICIES}/{item['metadata']['name']}")
    for policy in policies:
        cluster.put(policy)
    cluster.wait_until(lambda: all(map(is_ready, cluster.get(POLICIES)["items"])))
    cluster.wait_until(lambda: _agree(release.workers(), len(policies)))
    for phase in PHASES:
        with Probe(cluster, phase).registered() as probe:
            cluster.wait_until(probe.noticed)


def is_ready(policy: Object) -> bool:
    """By its status, for what it says now."""
    status = policy.get("status") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    return status.get("observedGeneration") == policy["metadata"]["generation"] and conditions.get("Ready") == "True"


def _agree(workers: Sequence[Object], policies: int) -> bool:
    generations = {worker["generation"] for worker in workers}
    return len(generations) == 1 and {worker["policies"] for worker in workers} == {policies}
