"""Which kind of object a resource is, as the API server tells: a report names kinds, a review names resources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.cluster.api import Api
from webhook.cluster.errors import Missing
from webhook.report.folding import ANY
from webhook.report.records import Record


class Kinds:
    """Asks once for each group, until told to forget."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, dict[str, tuple[str, str]]] = {}  # group to resource to apiVersion and kind

    def subject(self, record: Record) -> dict[str, str] | None:
        """The object of a record; None where it is none, or nobody knows its kind. Raises ApiError."""
        if record.name in ("", ANY) or ANY in (record.resource, record.namespace):
            return None
        resource, _, group = record.resource.partition("/")[0].partition(".")
        found = self._of(group).get(resource)
        if found is None:
            return None
        subject = {"apiVersion": found[0], "kind": found[1], "name": record.name}
        return subject | ({"namespace": record.namespace} if record.namespace else {})

    def forget(self) -> None:
        """Once in a while: what was not known may be by now."""
        self._known.clear()

    def _of(self, group: str) -> dict[str, tuple[str, str]]:
        if group not in self._known:
            self._known[group] = dict(self._ask(group))
        return self._known[group]

    def _ask(self, group: str) -> Iterable[tuple[str, tuple[str, str]]]:
        try:
            versions = self._versions(group)
            for version in reversed(versions):  # so that the preferred one counts
                told: dict[str, Any] = self._api.get(f"/apis/{version}" if group else f"/api/{version}")
                for each in told.get("resources") or ():
                    if "/" not in each["name"]:
                        yield str(each["name"]), (version, str(each["kind"]))
        except Missing:
            return

    def _versions(self, group: str) -> list[str]:
        """As in apiVersion, the preferred one first."""
        if not group:
            return ["v1"]
        told = self._api.get(f"/apis/{group}")
        first = (told.get("preferredVersion") or {}).get("groupVersion")
        every = [str(each["groupVersion"]) for each in told.get("versions") or ()]
        return list(dict.fromkeys(([str(first)] if first else []) + every))
