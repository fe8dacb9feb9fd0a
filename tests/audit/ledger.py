"""What was seen while a story was told: nothing differs, every step was compared, and the journal holds what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest

from tests.audit.likeness import Object
from tests.audit.mirror import Event, Tally
from tests.audit.servers import Twins
from tests.audit.told import OTHERWISE, SILENT, is_of
from webhook.report.journal import JournalReader
from webhook.report.records import Record
from webhook.sandbox import SandboxError

Events = Counter[Event]


def check(twins: Twins, nodeid: str) -> None:
    """Of the story that was just told."""
    tally = twins.mirror.take()
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.compared, "nothing was written"
    assert tally.reviews, "fieldwarden was not asked"
    silent = next((count for name, count in SILENT.items() if is_of(nodeid, name)), 0)
    assert tally.silent == silent, f"{tally.silent} of {tally.steps} steps wrote nothing"
    _check_events(tally, nodeid)
    _check_journal(twins, tally)


def _check_events(tally: Tally, nodeid: str) -> None:
    how = [alike for alike, names in OTHERWISE.items() if any(is_of(nodeid, name) for name in names)]
    told = [
        f"{item.about}:\n  Enforce: {shown(item.wanted - item.recorded)}\n  audit: {shown(item.recorded - item.wanted)}"
        for item in tally.disagreements
        if not any(_AS[alike](item.wanted, item.recorded) for alike in how)
    ]
    assert not told, "\n".join(told)
    assert bool(how) == bool(tally.disagreements), "all is recorded as it is: take it from OTHERWISE"


def shown(events: Events) -> list[str]:
    return [" ".join(event) for event in events.elements()]


def _once(wanted: Events, recorded: Events) -> bool:
    return set(wanted) == set(recorded)


def _more(wanted: Events, recorded: Events) -> bool:
    return wanted < recorded


def _unnamed(wanted: Events, recorded: Events) -> bool:
    """A manager comes first."""
    return Counter(event[1:] for event in wanted) == Counter(event[1:] for event in recorded)


_AS: dict[str, Callable[[Events, Events], bool]] = {"once": _once, "more": _more, "unnamed": _unnamed}


_TOLD_APART = ("policy", "rule", "event", "outcome", "mode", "resource", "namespace", "name", "user")


class Entry(NamedTuple):
    """What the journal tells apart, and how often it was seen; paths as far as a log line goes."""

    of: tuple[str, ...]
    dry_run: bool
    would: str
    often: int
    paths: frozenset[str]


def _check_journal(twins: Twins, tally: Tally) -> None:
    """It may be written behind the answer."""
    assert twins.mirror.beside is not None
    reader = JournalReader(twins.mirror.beside.audit.journal)
    wanted = _of_results(tally.found)
    places = {(result["namespace"], "" if result["namespace"] else result["name"]) for result in tally.found}

    def kept() -> set[Entry]:
        return _of_records(
            record for space, name in places for record in reader.records(namespace=space) if name in ("", record.name)
        )

    try:
        twins.wait_until(lambda: kept() == wanted)
    except SandboxError:
        pytest.fail(f"the journal differs: {kept() ^ wanted}")


def _of_results(results: list[Object]) -> set[Entry]:
    folded: dict[tuple[tuple[str, ...], bool, str], list[Object]] = {}
    for result in results:
        of = (*(result[name] for name in _TOLD_APART), result["manager"] or "")
        folded.setdefault((of, result["dry_run"], (result["action"] or "record").lower()), []).append(result)
    return {
        Entry(*key, len(found), frozenset(path for result in found for path in result["paths"]))
        for key, found in folded.items()
    }


def _of_records(records: Iterable[Record]) -> set[Entry]:
    return {
        Entry(
            (*(getattr(one, name) for name in _TOLD_APART), one.manager),
            one.dry_run,
            one.would,
            one.count,
            frozenset(one.paths),
        )
        for one in records
    }
