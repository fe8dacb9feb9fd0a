"""Events: for what was refused or rewritten, in series, and never too many."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.reports_cluster.support import Recorder, event, reporting_with
from tests.reports_cluster.world import START, seen_once
from tests.server.serving import eventually
from webhook.cluster.errors import Missing
from webhook.cluster.event_writer import Bucket, Events
from webhook.report.records import Record
from webhook.sandbox import Sandbox

Object = dict[str, Any]


class FakeApi:
    def __init__(self) -> None:
        self.created: dict[str, Object] = {}
        self.patches: list[tuple[str, Object]] = []

    def create(self, path: str, item: Object) -> Object:
        self.created[f"{path}/{item['metadata']['name']}"] = item
        return item

    def patch(self, path: str, change: Object) -> Object:
        if path not in self.created:
            raise Missing(path, 404)
        self.patches.append((path, change))
        self.created[path] |= change
        return change

    @property
    def told(self) -> list[int]:
        """How many repeats each Event tells of."""
        return [item.get("series", {"count": 1})["count"] for item in self.created.values()]


class Deployments:
    def subject(self, record: Record) -> Mapping[str, str]:
        return {"apiVersion": "apps/v1", "kind": "Deployment", "name": record.name, "namespace": record.namespace}


class Writer:
    """Events of a world without a clock of its own."""

    def __init__(self, **more: Any) -> None:
        self.api, self.now = FakeApi(), 0.0
        self.events = Events(self.api, Deployments(), "pod-1", clock=lambda: self.now, **more)

    def take(self, number: int = 1, count: int = 1, minutes: float = 0, **more: Any) -> None:
        at = START + dt.timedelta(minutes=minutes)
        record = seen_once(number, "team-a", at, **({"outcome": "refused"} | more))
        self.events.take(f"key-{number}", replace(record, count=count))


def test_only_what_was_refused_or_rewritten_is_told_and_never_a_dry_run() -> None:
    writer = Writer()
    writer.take(1, outcome="recorded")
    writer.take(2, dry_run=True)
    assert not writer.api.created
    writer.take(3)
    writer.take(4, outcome="rewritten", would="restore")
    kinds = [(one["reason"], one["action"], one["type"]) for one in writer.api.created.values()]
    assert kinds == [("Refused", "Refuse", "Warning"), ("Rewritten", "Rewrite", "Normal")]


def test_repeats_are_one_series_until_they_pause() -> None:
    writer = Writer()
    for count in range(1, 4):
        writer.take(count=count, minutes=count)
    assert writer.api.told == [3]
    writer.take(count=3, minutes=4)
    assert writer.api.told == [3], "what was told is not told again"
    writer.take(count=4, minutes=90)
    assert sorted(writer.api.told) == [1, 3]


def test_an_event_that_the_server_has_forgotten_begins_anew() -> None:
    writer = Writer()
    writer.take(count=1)
    writer.api.created.clear()
    writer.take(count=3, minutes=1)
    assert writer.api.told == [2]


def test_what_is_too_much_is_counted_and_told_later() -> None:
    writer = Writer(per_object=(2, 60.0))
    for count in range(1, 11):
        writer.take(count=count, minutes=count / 100)
    assert writer.api.told == [2]
    assert writer.events.held_back == 8
    writer.now = 61.0
    writer.take(count=11, minutes=1)
    assert writer.api.told == [11]


def test_many_objects_together_have_a_limit_too() -> None:
    writer = Writer(overall=(3, 1.0))
    for number in range(10):
        writer.take(number)
    assert len(writer.api.created) == 3
    writer.now = 2.5
    for number in range(10):
        writer.take(number, count=2, minutes=1)
    assert len(writer.api.patches) + len(writer.api.created) == 5


def test_a_bucket_never_holds_more_than_it_may() -> None:
    bucket = Bucket(3, 10.0)
    taken = [bucket.take(now) for now in (0.0, 0.0, 0.0, 0.0, 1000.0, 1000.0, 1000.0, 1000.0)]
    assert taken == [True, True, True, False] * 2


def test_a_note_names_paths_and_people_and_fits() -> None:
    writer = Writer()
    writer.take(paths=tuple("." + "ü" * 900 + str(n) for n in range(3)))
    [item] = writer.api.created.values()
    assert len(item["note"].encode()) <= 1000
    assert item["note"].startswith("[flux/labels] kubectl-edit (Update) by developer@example.com changed .")


def test_the_api_server_takes_them_and_kubectl_shows_them(reporting: Sandbox, namespace: str, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    refused = [event(1, namespace, outcome="refused"), event(2, "", outcome="rewritten", would="restore")]
    recorder.record(*refused, event(3, namespace), event(4, namespace, outcome="refused", dry_run=True))
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"

    def told() -> list[Object]:
        items: list[Object] = reporting.request("GET", path).body["items"]
        return items

    with reporting_with(reporting, recorder.path, "none", "-", events=True) as process:
        eventually(lambda: len(told()) == 1)
        recorder.record(refused[0], refused[0])
        eventually(lambda: told()[0].get("series", {}).get("count") == 3)
        eventually(lambda: process.state.events == 3)
        assert process.state.troubles == ()
        process.kill()
    [item] = told()
    assert item["regarding"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": namespace,
        "name": "app-1",
    }
    assert (item["reason"], item["type"]) == ("Refused", "Warning")
    assert "developer@example.com" in item["note"]
    cluster = reporting.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events").body["items"]
    assert [one["regarding"]["kind"] for one in cluster if one["reason"] == "Rewritten"] == ["Node"]
    shown = reporting.kubectl("get", "events", "-n", namespace, "--field-selector", "involvedObject.name=app-1").stdout
    assert "Refused" in shown
    with reporting_with(reporting, recorder.path, "none", "-", events=True) as process:
        eventually(lambda: process.state.contact > 0)
        assert [one["metadata"]["name"] for one in told()] == [item["metadata"]["name"]]
        assert told()[0]["series"]["count"] == 3, "who comes after tells nothing twice"
