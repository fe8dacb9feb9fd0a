"""What the mirror makes of news, without a network and without a clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.support import ANNOTATE, Object, invalid, policy
from webhook.cluster.informer import Changed, Listed, Lost, Reached, Removed
from webhook.cluster.mirror import Mirror
from webhook.cluster.mirrored import Mirrored
from webhook.cluster.resource import text_of
from webhook.cluster.settling import Settling, Together


class Log:
    """What was logged, by level."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Any:
        return lambda event, **_: self.lines.append((level, event))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def mirror(tmp_path: Path, log: Log) -> Mirror:
    return made(tmp_path, log)


def made(tmp_path: Path, log: Log) -> Mirror:
    (tmp_path / "cluster").mkdir(exist_ok=True)
    return Mirror(Mirrored(tmp_path / "cluster"), Settling(Together((), tmp_path)), log)


def namespace(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def read(mirror: Mirror, *policies: Object) -> None:
    """The first lists, at the second 100."""
    mirror.take("policies", Listed(policies), 100)
    mirror.take("namespaces", Listed((namespace("default", team="a"),)), 100)
    mirror.write()


def names(mirror: Mirror) -> set[str]:
    return set(mirror._mirrored.texts())


def test_nothing_is_there_before_both_lists_have_been_read(mirror: Mirror) -> None:
    mirror.take("policies", Listed((policy(),)), 100)
    mirror.write()
    assert not mirror._mirrored.is_read
    assert not mirror.state.read
    assert mirror.state.failure == "it has not answered yet"
    mirror.take("namespaces", Listed(()), 100)
    mirror.write()
    assert mirror._mirrored.is_read
    assert (mirror.state.read, mirror.state.failure, mirror.state.policies) == (True, "", 1)


def test_policies_come_change_and_go(mirror: Mirror) -> None:
    read(mirror, policy("a"))
    mirror.take("policies", Changed(policy("b")), 101)
    mirror.take("policies", Changed(policy("a", ANNOTATE)), 101)
    mirror.write()
    assert mirror._mirrored.texts() == {"a": text_of(policy("a", ANNOTATE)), "b": text_of(policy("b"))}
    mirror.take("policies", Removed(policy("a")), 102)
    mirror.write()
    assert names(mirror) == {"b"}
    mirror.take("policies", Listed((policy("c"),)), 103)
    mirror.write()
    assert names(mirror) == {"c"}, "a list says all there is"


def test_a_status_that_changes_writes_nothing(mirror: Mirror) -> None:
    read(mirror, policy("a"))
    before = mirror._mirrored.policies.readlink()
    mirror.take("policies", Changed({**policy("a"), "status": {"observedGeneration": 2}}), 101)
    mirror.write()
    assert mirror._mirrored.policies.readlink() == before


def test_an_invalid_change_keeps_what_was_good_and_is_told_once(mirror: Mirror, log: Log) -> None:
    read(mirror, policy("a"), policy("b"))
    mirror.take("policies", Changed(invalid("a")), 101)
    mirror.take("policies", Changed(policy("c")), 101)
    mirror.write()
    assert mirror._mirrored.texts() == {name: text_of(policy(name)) for name in "abc"}
    mirror.take("policies", Changed(policy("d")), 102)
    mirror.write()
    assert [event for level, event in log.lines if level == "error"] == ["a policy is left out"]
    (told,) = mirror.state.left_out
    assert told.startswith("fieldpolicies/a stays in force as it last was good: spec.rules[0]")
    mirror.take("policies", Changed(policy("a", ANNOTATE)), 103)
    mirror.write()
    assert mirror.state.left_out == ()


def test_a_mirror_started_again_goes_on_from_the_folder(mirror: Mirror, tmp_path: Path) -> None:
    read(mirror, policy("a"), policy("gone"))
    again = made(tmp_path, Log())
    assert again.state.read, "what was read once is in force"
    again.write()
    assert names(again) == {"a", "gone"}, "and stays until the cluster has been asked"
    read(again, invalid("a"), policy("b"))
    assert again._mirrored.texts() == {"a": text_of(policy("a")), "b": text_of(policy("b"))}


def test_labels_follow_and_only_labels_are_written(mirror: Mirror) -> None:
    read(mirror)
    before = mirror._mirrored.namespaces.stat().st_ino
    mirror.take("namespaces", Changed({**namespace("default", team="a"), "status": {"phase": "Active"}}), 101)
    mirror.write()
    assert mirror._mirrored.namespaces.stat().st_ino == before
    mirror.take("namespaces", Changed(namespace("default", team="b")), 101)
    mirror.take("namespaces", Changed(namespace("other")), 101)
    mirror.write()
    assert mirror._mirrored.namespaces.read_text() == '{"default": {"team": "b"}, "other": {}}'
    mirror.take("namespaces", Removed(namespace("other")), 102)
    mirror.write()
    assert mirror.state.namespaces == 1


def test_a_server_that_cannot_be_reached_is_told_and_changes_nothing(mirror: Mirror, log: Log) -> None:
    read(mirror, policy("a"))
    for second in range(3):
        mirror.take("policies", Lost("list: Connection refused"), 110 + second)
        mirror.take("namespaces", Lost("list: Connection refused"), 110 + second)
    mirror.write()
    assert (mirror.state.failure, mirror.state.contact) == ("list: Connection refused", 100)
    assert names(mirror) == {"a"}
    mirror.take("policies", Reached(), 120)
    mirror.write()
    assert mirror.state.failure == "list: Connection refused", "namespaces are not followed yet"
    mirror.take("namespaces", Reached(), 130)
    mirror.write()
    assert (mirror.state.failure, mirror.state.contact) == ("", 120)
    assert [event for level, event in log.lines if level == "warning"] == ["the API server cannot be followed"] * 2


def test_changed_files_settle_the_cluster_s_policies_anew(tmp_path: Path) -> None:
    files, cluster = tmp_path / "files", tmp_path / "cluster"
    files.mkdir()
    cluster.mkdir()
    mirror = Mirror(Mirrored(cluster), Settling(Together((files,), tmp_path)), Log())
    read(mirror, policy("a"), policy("b"))
    (files / "a.yaml").write_text(text_of(policy("a")))
    mirror.forget_files()
    mirror.write()
    assert names(mirror) == {"b"}
    assert "there is a policy a already" in mirror.state.left_out[0]
    (files / "a.yaml").unlink()
    mirror.forget_files()
    mirror.write()
    assert names(mirror) == {"a", "b"}


def test_what_could_not_be_written_is_written_later(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    read(mirror, policy("a"))
    mirror.take("policies", Changed(policy("b")), 101)
    with monkeypatch.context() as patched:
        patched.setattr(Mirrored, "write_policies", full)
        with pytest.raises(OSError, match="No space"):
            mirror.write()
    assert names(mirror) == {"a"}
    mirror.write()
    assert names(mirror) == {"a", "b"}


def full(*_: Any) -> None:
    raise OSError(28, "No space left on device")
