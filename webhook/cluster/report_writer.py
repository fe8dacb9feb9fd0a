"""One journal's part of the reports: reads them, merges, writes them back; whatever else writes there stays.

    publisher = Publisher(api, journal, Publishing(OPENREPORTS, "fieldwarden"), kinds)
    publisher.resync(now)                      # once in the beginning, and then now and again
    publisher.round(now)                       # what has changed in the journal since

Every write is of a report as it was read, by its resourceVersion; whoever comes second reads again. A resync makes the
reports what they should be, whatever came between: writes that were cut off, reports that somebody deleted.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter

from webhook.cluster.errors import Conflict, Denied, Invalid, Missing, Unreachable
from webhook.cluster.report_merging import (
    NEVER,
    SILENT,
    Own,
    expire,
    last_to_seal,
    named,
    publish,
    seal,
    silent,
    touch,
)
from webhook.cluster.report_needs import ApiLike, JournalLike, KindsLike, NotServed, Ownerless, Publishing, Tally
from webhook.cluster.report_objects import SELECTOR, Object, Row, Stored, is_ours, place, read, size_of, write
from webhook.cluster.report_placing import Part, Shelf, is_named, too_many
from webhook.report.folding import ANY, key_of
from webhook.report.records import Record

PAGE = 5
"""Reports that are read at a time: each may be large."""

TRIES = 10
"""Of one write, against others who write the same report."""

MOST_ABSENT = 500
"""Namespaces that turn out to be gone in one turn, before others of which nothing is known are left for the next."""

AGAIN, SELDOM = dt.timedelta(seconds=30), 7
"""After which what failed in one namespace is tried again; where it is gone the pause is doubled so many times."""

NEWEST = 1 << 62
"""A revision after every other."""

BEFORE = dt.datetime.min.replace(tzinfo=dt.UTC)

_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


class _Disturbed(Exception):
    """A report is not as it was left: somebody deleted or edited it."""


class _NoNamespace(Exception):
    """The namespace is gone, and its reports with it."""


class Publisher:
    """Raises ApiError, NotServed or Ownerless where nothing can be written at all, and NotAJournal."""

    def __init__(self, api: ApiLike, journal: JournalLike, settings: Publishing, kinds: KindsLike) -> None:
        self.journal = journal.id
        self.revision = 0
        self.tally = Tally()
        self._api, self._records, self._settings, self._kinds = api, journal, settings, kinds
        self._shelves: dict[str, Shelf] = {}
        self._after: dict[str, str] = {}  # by namespace: up to this day our journal is sealed in its reports
        self._owner: Object | None = None
        self._now = BEFORE
        self._due = True
        self._resynced = self._now
        self._again: dict[str, dt.datetime] = {}  # namespaces in which something failed, and when to try again
        self._absent: dict[str, int] = {}  # namespaces that were not there, and how often
        self._missed = 0  # how many in this turn
        self._taken: set[tuple[str, str]] = set()  # names that reports of somebody else have

    @property
    def rows(self) -> int:
        """Of ours, in all reports."""
        return sum(len(part.own) for shelf in self._shelves.values() for part in shelf.parts.values())

    @property
    def reports(self) -> int:
        return sum(len(shelf.parts) for shelf in self._shelves.values())

    @property
    def has_begun(self) -> bool:
        """Whether there was a resync."""
        return self._resynced > BEFORE

    @property
    def is_settled(self) -> bool:
        """Whether a round is enough; else a resync is called for."""
        return not self._due

    def resync(self, now: dt.datetime, hurry: Callable[[], bool] = lambda: False) -> None:
        """Make all reports what they should be. Where that was done before, it is left when there is no time for it."""
        self._now, self._missed = now, 0
        began = self.has_begun
        self._kinds.forget()
        self._owner = self._owned_by()
        revision = self._records.changed_since(NEWEST).revision
        wanted = {place(record) for record in self._records.records(dry_run=False)}
        if not self._learn(hurry if began else lambda: False):
            return
        self._show_up()
        due, self._due = self._due, False  # what comes up meanwhile asks for another one
        try:
            for namespace in sorted(wanted | self._shelves.keys()):
                if began and hurry():
                    self._due |= due
                    return
                if not self._is_put_off(namespace):
                    self._attempt(namespace, self._settle)
        except BaseException:
            self._due = True
            raise
        self.revision, self._resynced = revision, now

    def round(self, now: dt.datetime) -> None:
        """Write what has changed in the journal, one write for each report."""
        self._now, self._missed = now, 0
        if now - self._resynced > SILENT / 4:  # others may have taken us for gone meanwhile
            self._due = True
            return
        changes = self._records.changed_since(self.revision)
        if changes.whole and changes.revision:
            self._due = True
            return
        where: dict[str, dict[str, Record]] = {}
        for key, record in changes.records:
            if not record.dry_run:
                where.setdefault(place(record), {})[key] = record
        gone = {each.key for each in changes.gone} - {key for rows in where.values() for key in rows}
        for namespace, shelf in list(self._shelves.items()):
            if any(not gone.isdisjoint(part.own) for part in shelf.parts.values()):
                where.setdefault(namespace, {})
        for namespace in [one for one, due in sorted(self._again.items(), key=itemgetter(1)) if due <= now]:
            where.pop(namespace, None)
            if not self._is_put_off(namespace):
                self._attempt(namespace, self._settle_anew)
        for namespace, records in sorted(where.items()):
            if namespace in self._again or self._is_put_off(namespace):
                continue  # then everything there is told, and not only what is new
            self._attempt(namespace, lambda at, new=records: self._add(at, new, gone))  # type: ignore[misc]
        self.revision = changes.revision

    def _is_put_off(self, namespace: str) -> bool:
        """Whether a namespace in which nothing of ours stands is to be left for another turn: it may be gone, and many are."""
        if self._shelves.get(namespace):
            return False
        if namespace in self._absent and self._again.get(namespace, self._now) > self._now:
            return True
        if self._missed >= MOST_ABSENT:
            self._again.setdefault(namespace, self._now)
            return True
        return False

    def _attempt(self, namespace: str, act: Callable[[str], None]) -> None:
        """What fails in one namespace holds up no other."""
        try:
            try:
                act(namespace)
            except _Disturbed:
                self._settle_anew(namespace)
        except _NoNamespace:
            self._shelves.pop(namespace, None)
            tries = self._absent.get(namespace, 0)  # more and more seldom: it may have been an API server that starts
            self._absent[namespace] = min(tries + 1, SELDOM)
            self._missed += 1
            self._again[namespace] = self._now + AGAIN * 2**tries
            self.tally.troubles.pop(namespace, None)
            return
        except _Disturbed:
            self._again[namespace] = self._now
            return
        except (Unreachable, NotServed):
            self._again[namespace] = self._now  # what was written may be there, or not
            raise
        except (Denied, Invalid, Conflict) as error:
            self.tally.troubles[namespace] = str(error)
            self._again[namespace] = self._now + AGAIN
            return
        else:
            self._absent.pop(namespace, None)
        self.tally.troubles.pop(namespace, None)
        self._again.pop(namespace, None)

    def _learn(self, hurry: Callable[[], bool]) -> bool:
        """Which reports there are; whether there was time to find out. Raises NotServed."""
        form = self._settings.form
        shelves: dict[str, dict[str, Part]] = {}
        for plural in (form.plural, form.cluster_plural):
            for item in self._pages(f"{form.root}/{plural}"):
                if hurry():
                    return False
                self._take(item, shelves)
        self._shelves = {namespace: self._shelf(namespace, parts) for namespace, parts in shelves.items()}
        self._find_seals(fresh=True)
        return True

    def _learn_one(self, namespace: str) -> None:
        shelves: dict[str, dict[str, Part]] = {}
        for item in self._pages(self._settings.form.collection(namespace)):
            self._take(item, shelves)
        self._shelves[namespace] = self._shelf(namespace, shelves.get(namespace, {}))
        self._find_seals()

    def _pages(self, path: str) -> Iterator[Object]:
        """All reports of a collection. Raises NotServed: a namespace that is gone has none, and is no error."""
        params = {"limit": str(PAGE), "labelSelector": SELECTOR}
        while True:
            try:
                page = self._api.request("GET", path, params=params)
            except Missing:
                form = self._settings.form
                raise NotServed(f"this cluster does not serve {form.group}/{form.version}") from None
            yield from page.get("items") or ()
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return
            params["continue"] = more

    def _take(self, item: Object, shelves: dict[str, dict[str, Part]]) -> None:
        metadata = item["metadata"]
        if is_named(metadata["name"], self._settings.name):
            parts = shelves.setdefault(metadata.get("namespace") or "", {})
            parts[metadata["name"]] = Part.of(read(item), self.journal)

    def _shelf(self, namespace: str, parts: Mapping[str, Part] | None = None) -> Shelf:
        taken = {name: Part(ours=False) for at, name in self._taken if at == namespace}
        return Shelf(self._settings.name, {**taken, **(parts or {})}, self._settings.bounds)

    def _find_seals(self, *, fresh: bool = False) -> None:
        if fresh:
            self._after = {}
        for namespace, shelf in self._shelves.items():
            for part in shelf.parts.values():
                self._heed(namespace, part.sealed)

    def _heed(self, namespace: str, sealed: str) -> None:
        """What is sealed in one namespace counts there: whoever may write its reports silences us nowhere else."""
        if sealed <= last_to_seal(self._now):
            self._after[namespace] = max(self._after.get(namespace, NEVER), sealed)

    def _sealed_in(self, namespace: str) -> str:
        """The cluster's report also tells what is of several namespaces, so all seals count there."""
        return self._after.get(namespace, NEVER) if namespace else max(self._after.values(), default=NEVER)

    def _show_up(self) -> None:
        """Before anything is published: nobody shall take us for gone meanwhile, and who has done so is found out."""
        limit = (self._now - SILENT / 4).strftime("%Y-%m-%dT%H:%M:%SZ")
        for namespace, shelf in self._shelves.items():
            for name, part in list(shelf.parts.items()):
                if part.own and part.seen < limit:
                    with contextlib.suppress(_Disturbed, _NoNamespace):
                        self._write(
                            namespace, name, lambda stored: touch(stored, self.journal, self._now), trusting=False
                        )

    def _settle_anew(self, namespace: str) -> None:
        """As below, whatever was known of its reports."""
        self._learn_one(namespace)
        self._settle(namespace)

    def _settle(self, namespace: str) -> None:
        """Everything of one namespace, as the journal has it now."""
        shelf = self._shelves.setdefault(namespace, self._shelf(namespace))
        spaces = (namespace, ANY) if not namespace else (namespace,)
        records = {
            key_of(record): record
            for space in spaces
            for record in self._records.records(namespace=space, dry_run=False)
        }
        placed = shelf.place(self._sizes(shelf, records))
        left: set[str] = set()
        for name in shelf.names():
            if shelf.parts[name].ours:
                rows = {key: records[key] for key in placed.get(name, ())}
                left |= self._publish(namespace, name, rows, whole=True)
        self._move(namespace, {key: records[key] for key in left if key in records})

    def _add(self, namespace: str, records: Mapping[str, Record], gone: set[str]) -> None:
        shelf = self._shelves.setdefault(namespace, self._shelf(namespace))
        leaving = {name: gone & part.own for name, part in shelf.parts.items() if gone & part.own}
        placed = shelf.place(self._sizes(shelf, records))
        left: set[str] = set()
        for name in sorted(leaving.keys() | placed.keys(), key=lambda name: (name not in leaving, name)):
            rows = {key: records[key] for key in placed.get(name, ())}
            left |= self._publish(namespace, name, rows, removed=leaving.get(name, set()))
        if left - records.keys():
            self._due = True
        self._move(namespace, {key: records[key] for key in left if key in records})

    def _sizes(self, shelf: Shelf, records: Mapping[str, Record]) -> Iterable[tuple[str, int]]:
        known = {key for part in shelf.parts.values() for key in part.keys}
        for key, record in records.items():
            yield key, 0 if key in known else size_of(Row.of(record, {self.journal: record.days}))

    def _publish(
        self,
        namespace: str,
        name: str,
        rows: Mapping[str, Record],
        *,
        removed: Iterable[str] = (),
        whole: bool = False,
    ) -> set[str]:
        """Our rows of one report; those for which it is too small, and which are to go into another."""
        subjects = {key: subject for key, row in rows.items() if (subject := self._kinds.subject(row)) is not None}
        oldest = self._oldest()
        before = self._sealed_in(namespace)
        own = Own(self.journal, rows, frozenset(removed), whole, before, oldest, subjects)
        leaving: list[str] = []

        def change(stored: Stored) -> Stored:
            kept = named(expire(stored, oldest, last_to_seal(self._now)), self._now)
            for one in silent(kept, self._now):
                if one != self.journal:
                    kept = seal(kept, one)
            changed = publish(kept, own, self._now)
            leaving[:] = too_many(changed, self.journal, self._settings.bounds)
            return publish(changed, Own(self.journal, removed=leaving), self._now) if leaving else changed

        self._write(namespace, name, change, trusting=not whole)
        if self._sealed_in(namespace) > before:
            self._due = True  # rows elsewhere may tell what is sealed here
        return set(leaving)

    def _move(self, namespace: str, records: Mapping[str, Record]) -> None:
        """Into reports with room, which they can only be in once they have left the others."""
        shelf = self._shelves[namespace]
        sizes = [(key, size_of(Row.of(record, {self.journal: record.days}))) for key, record in records.items()]
        for name, keys in shelf.place(sizes).items():
            if self._publish(namespace, name, {key: records[key] for key in keys}):
                self._due = True

    def _write(self, namespace: str, name: str, change: Callable[[Stored], Stored], *, trusting: bool) -> None:
        """Change one report as it stands. `trusting`: that ours is there as it was left; raises _Disturbed where not."""
        parts = self._shelves[namespace].parts
        left = set(parts[name].own) if trusting else set()
        path = f"{self._settings.form.collection(namespace)}/{name}"
        for _ in range(TRIES):
            item = self._found(path)
            if item is not None and not is_ours(item):
                self._taken.add((namespace, name))
                raise _Disturbed
            before = read(item) if item is not None else Stored()
            self._note(namespace, name, before)
            if trusting and not self._is_as_left(before, left):
                raise _Disturbed
            after = change(before)
            try:
                self._store(namespace, name, item, before, after)
            except Conflict:
                self.tally.conflicts += 1
                continue
            if after.is_empty:
                del parts[name]
            else:
                parts[name] = Part.of(after, self.journal)
            return
        raise Conflict(f"{path}: others write it all the time", 409)

    def _is_as_left(self, before: Stored, left: set[str]) -> bool:
        return all(key in before.rows and self.journal in before.rows[key].counts for key in left)

    def _note(self, namespace: str, name: str, before: Stored) -> None:
        parts = self._shelves[namespace].parts
        self._heed(namespace, before.sealed.get(self.journal, NEVER))
        planned = parts[name].keys
        parts[name] = Part.of(before, self.journal)
        parts[name].keys |= planned

    def _store(self, namespace: str, name: str, item: Object | None, before: Stored, after: Stored) -> None:
        form = self._settings.form
        path = form.collection(namespace)
        if item is None:
            if after.is_empty:
                return
            if namespace and not self._is_there(namespace):
                raise _NoNamespace
            metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
            try:
                self._api.create(path, write(form, {"metadata": metadata}, after, self._owner))
            except Missing:  # the namespace; or the kind, as while an API server starts
                next(self._pages(path), None)
                raise _NoNamespace from None
        elif after.is_empty:
            version = {"resourceVersion": item["metadata"]["resourceVersion"]}
            try:
                self._api.request("DELETE", f"{path}/{name}", {"preconditions": version})
            except Missing:
                raise _Disturbed from None
        else:
            made = write(form, item, after, self._owner)
            if after == before and made == item:
                return
            try:
                self._api.replace(f"{path}/{name}", made)
            except Missing:
                raise _Disturbed from None
        self.tally.writes += 1

    def _is_there(self, namespace: str) -> bool:
        """Asked first: a report in a namespace that is gone is refused late, since the API server waits for one to come."""
        try:
            self._api.get(f"/api/v1/namespaces/{namespace}")
        except Missing:
            return False
        except Denied:
            pass  # then it is found out that way
        return True

    def _found(self, path: str) -> Object | None:
        try:
            return self._api.get(path)
        except Missing:
            return None

    def _oldest(self) -> str:
        return f"{self._now - dt.timedelta(days=self._settings.keep_days):%Y-%m-%d}"

    def _owned_by(self) -> Object | None:
        """Raises Ownerless: what would outlive the release is not written."""
        name = self._settings.owner
        if not name:
            return None
        try:
            found = self._api.get(f"{_ROLES}/{name}")
        except Missing:
            raise Ownerless(f"there is no ClusterRole {name} for the reports to go away with") from None
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": name,
            "uid": found["metadata"]["uid"],
        }
