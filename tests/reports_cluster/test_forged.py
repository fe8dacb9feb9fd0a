"""Whoever may write the reports of one namespace can spoil those, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reports_cluster.world import START, World, seen_once
from webhook.cluster.report_merging import Own, publish
from webhook.cluster.report_objects import OPENREPORTS, SEALED, SEEN, Stored, write
from webhook.cluster.report_placing import Bounds
from webhook.cluster.report_source import ClusterReports
from webhook.cluster.report_writer import AGAIN, MOST_ABSENT
from webhook.report.asking import Asked
from webhook.report.folding import key_of
from webhook.report.html import page
from webhook.report.summary import gather, summarise

ODD = st.sampled_from(
    [
        *(
            "",
            "x",
            "\ud800",
            "\x00\x1b[31m",
            "null",
            "[]",
            "{}",
            "NaN",
            "1e309",
            "-1",
            "9" * 4299,
            "[" * 900 + "]" * 900,
        ),
        *(
            "9999-12-31T23:59:59-14:00",
            "0001-01-01T00:00:00+14:00",
            "0999-05-05",
            "2026-W45-1",
            "20261102",
            "2026-11-02",
        ),
        *('["\\ud800"]', '{"\\ud800": "\\ud800"}', '{"\\ud800": {"2026-11-02": 1}}', '{"a": {"9999-12-31": 1}}'),
        *(
            '{"a": {"0001-01-01": 1}}',
            '{"a": {"2026-W45-1": 1}}',
            '{"a": {"20261102": 1}}',
            '{"a": {"2026-11-02": 1e309}}',
        ),
        f'{{"a": {{"2026-11-02": {"9" * 4299}}}, "b": {{"2026-11-02": {"9" * 4299}}}}}',
        f'{{"a": {{"2026-11-02": {1 << 53}}}, "b": {{"2026-11-02": {1 << 53}}}}}',
    ]
)
JOURNAL = "a" * 16


def a_report(*namespaces: str) -> dict[str, Any]:
    records = {key_of(one): one for number, where in enumerate(namespaces) if (one := seen_once(number, where, START))}
    stored = publish(Stored(), Own(JOURNAL, records), START)
    return write(OPENREPORTS, {"metadata": {"name": "fieldwarden", "namespace": namespaces[0]}}, stored, None)


PROPERTIES = sorted(a_report("team-a")["results"][0]["properties"])


@given(
    st.dictionaries(st.sampled_from(PROPERTIES), ODD | st.none(), max_size=3),
    st.dictionaries(st.sampled_from([SEEN, SEALED]), ODD, max_size=2),
    st.sampled_from([None, [], [{}], [{"kind": "\ud800"}]]),
)
def test_a_forged_report_spoils_nothing_but_itself(
    properties: dict[str, str | None], annotations: dict[str, str], resources: list[Any] | None
) -> None:
    forged = a_report("team-a")
    told = forged["results"][0]
    told["properties"] = {k: v for k, v in (told["properties"] | properties).items() if v is not None}
    told["resources"] = resources
    forged["metadata"]["annotations"] |= annotations
    world = World(Bounds())
    world.cluster.create(OPENREPORTS.collection("team-a"), forged)
    pod = world.start()
    journal = world.pods[pod].journal
    journal.record(*(seen_once(7, where, START) for where in ("team-a", "team-b", "")))
    world.publish(pod)
    journal.record(*(seen_once(8, where, START) for where in ("team-a", "team-b", "")))
    world.publish(pod)
    assert world.cluster.counted(journal.id) == journal.counted
    json.dumps(world.cluster.objects).encode()
    records = gather([ClusterReports(world.cluster)], Asked())
    assert page(summarise(records, [], Asked(), START)).encode()


@pytest.mark.parametrize("day", ["2026-11-02", "2026-11-04", "9999-12-31", "zzz"])
def test_a_forged_seal_silences_nobody_elsewhere(day: str) -> None:
    world = World(Bounds())
    pod = world.start()
    journal = world.pods[pod].journal
    journal.record(seen_once(1, "team-a", START), seen_once(2, "team-b", START))
    world.publish(pod)
    path = f"{OPENREPORTS.collection('team-a')}/fieldwarden"
    world.cluster.objects[path]["metadata"]["annotations"][SEALED] = json.dumps({journal.id: day})
    journal.record(seen_once(3, "team-b", START), seen_once(4, "team-a", START))
    world.publish(pod, whole=True)
    told = world.cluster.counted(journal.id)
    there = {key for key, (_, record) in journal.rows.items() if record.namespace == "team-b"}
    elsewhere = {key: count for key, count in journal.counted.items() if key[0] in there}
    assert len(elsewhere) == 2
    assert elsewhere.items() <= told.items()
    if day > "2026-11-04":  # nobody was silent for so long that this could be
        assert told == journal.counted


def test_many_namespaces_that_are_gone_hold_up_nobody() -> None:
    """Each costs a question, once and then more and more seldom; a write would wait for a namespace that may be coming."""
    world = World(Bounds())
    pod = world.start()
    journal = world.pods[pod].journal
    world.cluster.gone = {f"gone-{number}" for number in range(2 * MOST_ABSENT)}
    asked: Counter[str] = Counter()

    def before(method: str, path: str, _act: Any) -> None:
        where = path.partition("/namespaces/")[2].partition("/")[0]
        assert method == "GET" or where not in world.cluster.gone, "nothing is written there"
        asked[path] += path.startswith("/api/v1/namespaces/gone-")

    world.cluster.before = before
    journal.record(seen_once(1, "team-a", START))
    world.publish(pod)
    journal.record(*(seen_once(2, where, START) for where in (*world.cluster.gone, "team-a", "team-z")))
    world.publish(pod, whole=True)
    assert asked.total() == MOST_ABSENT
    assert len(world.cluster.counted()) == 2, "where something stands already it is told at once"
    world.publish(pod)
    world.publish(pod)
    assert len(world.cluster.counted()) == 3
    assert max(asked.values()) == 1
    assert asked.total() == 2 * MOST_ABSENT
    world.publish(pod, whole=True)
    assert asked.total() == 2 * MOST_ABSENT, "they are not asked for at every look"
    world.cluster.gone.clear()
    world.now += AGAIN
    world.publish(pod)
    assert world.cluster.counted() == journal.counted
