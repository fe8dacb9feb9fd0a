"""Certificates that live for seconds, under constant writes that fail closed: not one call is lost."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

from tests.e2e.cluster import Cluster
from tests.e2e.load import Load, failed, shown
from tests.e2e.lookers import Lookers
from tests.e2e.release import Release
from tests.stories.support import MERGE_PATCH
from webhook.certificates import certificates_in

MakeLoad = Callable[[], Load]

ROTATIONS = 3
SHORT = ["--leaf-lifetime=24s", "--authority-lifetime=72s", "--settle=4s"]
CLOSED = {"mode": "Enforce", "webhooks": {"failurePolicy": "Fail"}}


def test_a_damaged_secret_is_told_of_and_put_right(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    """While nobody repairs it, pods go on with what they had."""
    release.having(**CLOSED)
    controller = ("scale", "deployment/fieldwarden-controller", "-n", release.namespace)
    secret = f"/api/v1/namespaces/{release.namespace}/secrets/fieldwarden-webhook-tls"
    with load() as running:
        began = time.monotonic()
        cluster.kubectl(*controller, "--replicas=0")
        cluster.wait_until(lambda: not release.pods("controller", ending=True))
        damage = {"data": {"tls.crt": base64.b64encode(b"no certificate").decode()}}
        assert cluster.request("PATCH", secret, damage, content_type=MERGE_PATCH).status == 200
        cluster.wait_until(lambda: _touched(release) and all(map(_complains, _readiness(release))))
        running.settle()
        cluster.kubectl(*controller, "--replicas=1")
        cluster.wait_until(lambda: _touched(release) and not any(map(_complains, _readiness(release))))
        running.settle()
    lost = failed(running.since(began))
    assert not lost, shown(lost, began)


def _touched(release: Release) -> bool:
    release.touch()
    return True


def _readiness(release: Release) -> list[dict[str, list[str]]]:
    """What each pod says of itself, all of them in service."""
    said = [
        release.cluster.request("GET", f"{release.proxied(pod['metadata']['name'], 8080)}/readyz")
        for pod in release.pods("webhook")
    ]
    assert [reply.status for reply in said] == [200, 200]
    return [reply.body for reply in said]


def _complains(readiness: dict[str, list[str]]) -> bool:
    return any("the certificate does not load" in warning for warning in readiness["warnings"])


def test_three_rotations_of_leaf_and_authority(cluster: Cluster, release: Release, load: MakeLoad) -> None:
    """The authority that is there lives for years: it is lost at the beginning, which is no rotation.

    It comes last here: the certificates that it leaves behind end within a minute, and whoever is next installs anew.
    """
    release.having(**CLOSED, controller={"extraArgs": SHORT})
    secret = f"/api/v1/namespaces/{release.namespace}/secrets/fieldwarden-authority"
    with load() as running, Lookers(release) as lookers:
        began = time.monotonic()
        lost_one = _authorities(lookers.bundles[0])
        assert cluster.request("PATCH", secret, {"data": None}, content_type=MERGE_PATCH).status == 200
        cluster.wait_until(lambda: bool(_authorities(lookers.bundles[-1]) - lost_one))
        first = _authorities(lookers.bundles[-1])

        def rotated() -> bool:
            """The world trusts none of the first authorities any more, and three others have come since."""
            seen = set().union(*map(_authorities, lookers.bundles))
            gone = not first & _authorities(lookers.bundles[-1])
            return (
                gone and len(seen - first) >= ROTATIONS and all(len(one) > ROTATIONS for one in lookers.leaves.values())
            )

        cluster.wait_until(rotated, seconds=300)
        running.settle()
    lost = failed(running.since(began))
    assert not lost, shown(lost, began)
    assert lookers.distrusted == []
    assert lookers.looks > 100


def _authorities(bundle: bytes) -> set[int]:
    return {each.serial_number for each in certificates_in(bundle)}
