"""What is stored beside what was to be stored: every difference is a fault, but for a closed list of the server's own doing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.histories.judge import Finding
from tests.histories.shapes import Kind, Object
from tests.histories.truth import Held, claims_of, plain_value
from tests.rewriting_laws import schema
from tests.rewriting_laws.schema import Path, names_of

REPLICAS = ("f:spec", "f:replicas")

DEFAULTED = "a value that the patched object lacks is defaulted anew"
DROPPED = "a value that does not fit the patched object is dropped by the server"
INVALID = "the patched object is refused by the server's validation"
DROPPED_AND_REFUSED = "a value that does not fit the patched object is dropped by the server, and the request refused"
DEFAULTED_AND_REFUSED = "a default that depends on what was restored is set anew, and looks like an edited claim"
CANNOT = "what cannot be rewritten is refused, with the reason"
SUBRESOURCE = "a write through a subresource is refused, since nothing is rewritten there"
TWINS = "the server has stored two claims of one identity, and keeps the last at the next write"
RESPELT = "the server stores an empty list or a null of an apply in another way, at the next write of the same"
SERVERS_OWN = (
    DEFAULTED,
    DROPPED,
    DROPPED_AND_REFUSED,
    DEFAULTED_AND_REFUSED,
    INVALID,
    CANNOT,
    SUBRESOURCE,
    TWINS,
    RESPELT,
)
"""All that may come between a rewrite and what is stored, each counted."""

_DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "Deployment": (
        r"spec\.(replicas|minReadySeconds|revisionHistoryLimit|progressDeadlineSeconds)",
        r"spec\.strategy(\.type|\.rollingUpdate\.(maxSurge|maxUnavailable))?",
        r"spec\.template\.spec\.(restartPolicy|dnsPolicy|schedulerName|terminationGracePeriodSeconds|securityContext|volumes\.emptyDir)",
        r"spec\.template\.spec\.(initContainers|containers)\."
        r"(imagePullPolicy|resources|terminationMessage(Path|Policy))",
    ),
    "Service": (
        r"spec\.(clusterIPs?|ipFamil(ies|yPolicy)|internalTrafficPolicy|type|sessionAffinity)",
        r"spec\.sessionAffinityConfig\.clientIP\.timeoutSeconds",
        r"spec\.ports\.(targetPort|protocol)",
    ),
    "Secret": (r"type",),
    "HorizontalPodAutoscaler": (r"spec\.minReplicas", r"spec\.metrics", r"spec\.behavior\.scale(Up|Down)\..*"),
    "Widget": (r"spec\.level",),
}
_DROPPED: Mapping[str, tuple[str, ...]] = {
    "Service": (r"spec\.sessionAffinityConfig\..*", r"spec\.externalTrafficPolicy"),
}


def value_findings(kind: Kind, expected: Object, stored: Object) -> Iterator[Finding | str]:
    """Findings; or one of SERVERS_OWN, where a difference is the server's."""
    wanted, found = schema.flat(kind, expected).leaves, schema.flat(kind, stored).leaves
    for path in sorted(wanted.keys() | found.keys()):
        if path in wanted and path in found:
            if plain_value(wanted[path]) != plain_value(found[path]):
                yield Finding("stored value", frozenset({path}), frozenset({path}))
        elif path in found:
            yield _of_the_server(kind, path, _DEFAULTS, DEFAULTED) or Finding("stored", frozenset(), frozenset({path}))
        elif wanted[path] not in ({}, [], None):  # empty, or none at all: all one to the server
            yield _of_the_server(kind, path, _DROPPED, DROPPED) or Finding("stored", frozenset({path}), frozenset())


def _of_the_server(kind: Kind, path: Path, known: Mapping[str, tuple[str, ...]], why: str) -> str:
    name = ".".join(names_of(path))
    return why if any(re.fullmatch(pattern, name) for pattern in known.get(kind.name, ())) else ""


def claim_findings(expected: Object, stored: Object) -> Iterator[Finding]:
    """Claims by identity: the same paths, in the same version and order, of the same time."""
    wanted, found = claims_of(expected), claims_of(stored)
    for name in wanted.keys() | found.keys():
        if wanted.get(name) != found.get(name):
            yield Finding("claim", _paths(wanted.get(name)), _paths(found.get(name)), name)
    if list(wanted) != list(found) and wanted.keys() == found.keys():
        yield Finding("order of claims", str(list(map(str, wanted))), str(list(map(str, found))))


def _paths(held: Held | None) -> Any:
    return None if held is None else held.paths


def scale_findings(expected: Object, stored: Object) -> Iterator[Finding]:
    """Of a Scale: its parent's replicas, and whose claims hold them.

    An Update claim of the main resource is split in two by the server, of one identity: both are looked into.
    """
    wanted, found = ((obj.get("spec") or {}).get("replicas", 0) for obj in (expected, stored))
    if wanted != found:
        yield Finding("replicas", wanted, found)
    holders, held = _scalers(expected), _scalers(stored)
    if holders != held:
        yield Finding("claims on replicas", str(sorted(holders)), str(sorted(held)))


def has_twins(obj: Object) -> bool:
    """Two claims of one identity: the server makes them of an Update claim on replicas, at a write of `/scale`."""
    return len(claims_of(obj)) != len(obj["metadata"].get("managedFields") or ())


def _scalers(obj: Object) -> set[tuple[str, str, str]]:
    return {
        (name.manager, name.operation, name.subresource)
        for entry in obj["metadata"].get("managedFields") or ()
        for name, held in claims_of({"metadata": {"managedFields": [entry]}}).items()
        if REPLICAS in held.paths
    }
