"""Records out of the cluster's reports, for `fieldwarden report` and `suggest`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from webhook.cluster.access import Unconfigured
from webhook.cluster.api import Api
from webhook.cluster.errors import ApiError, Missing
from webhook.cluster.report_merging import joined
from webhook.cluster.report_objects import FORMATS, SELECTOR, Format, Row, read
from webhook.report.asking import Unreached, Unusable
from webhook.report.records import Record

PAGE = 20


class ApiLike(Protocol):
    def request(
        self, method: str, path: str, body: object = None, *, params: dict[str, str] | None = None
    ) -> dict[str, Any]: ...


class ClusterReports:
    """All reports of fieldwarden in one cluster."""

    name = "the cluster's reports"

    def __init__(self, api: ApiLike) -> None:
        self._api = api
        self._notes: list[str] = []

    @classmethod
    def connect(cls, kubeconfig: Path | None) -> ClusterReports:
        """Raises Unreached where nothing says which cluster."""
        try:
            return cls(Api.connect(kubeconfig, agent="fieldwarden-report"))
        except Unconfigured as error:
            raise Unreached(str(error)) from None

    def records(self, since: dt.datetime | None) -> Iterator[Record]:
        """One for each thing that was found, of all replicas together. Raises Unusable, Unreached."""
        try:
            found = {form: rows for form in FORMATS.values() if (rows := self._rows(form)) is not None}
        except ApiError as error:
            raise Unreached(str(error)) from None
        if not found:
            kinds = " nor ".join(f"{form.group}/{form.version}" for form in FORMATS.values())
            raise Unusable(
                f"this cluster serves neither {kinds}: there are no reports to read; give a journal or a log"
            )
        written = {form: rows for form, rows in found.items() if rows}
        if not written:
            self._notes.append("the cluster has no reports of fieldwarden")
            return
        newest = max(written, key=lambda form: max(row.record.last for row in written[form].values()))
        for form in written.keys() - {newest}:
            self._notes.append(f"reports of {form.name} are left aside: those of {newest.name} are newer")
        for row in written[newest].values():
            if since is None or row.record.last >= since:
                yield row.record

    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def _rows(self, form: Format) -> dict[str, Row] | None:
        """By key; None where the format is not served."""
        rows: dict[str, Row] = {}
        for plural in (form.plural, form.cluster_plural):
            params = {"limit": str(PAGE), "labelSelector": SELECTOR}
            while True:
                try:
                    page = self._api.request("GET", f"{form.root}/{plural}", params=params)
                except Missing:
                    return None
                for item in page.get("items") or ():
                    for key, row in read(item).rows.items():
                        rows[key] = joined(rows[key], row) if key in rows else row
                if not (more := (page.get("metadata") or {}).get("continue")):
                    break
                params["continue"] = more
        return rows
