"""The folder between the mirror and those who judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.support import ANNOTATE, invalid, owned, policy
from webhook.cluster.mirrored import KnownLabels, Mirrored, load_files, load_mirrored, united
from webhook.cluster.resource import text_of
from webhook.policy import load_text

ONE, OTHER = {"a": text_of(policy("a"))}, {"b": text_of(policy("b"))}


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    return Mirrored(tmp_path)


def test_what_is_written_is_read(mirrored: Mirrored) -> None:
    assert (mirrored.is_read, mirrored.texts()) == (False, {})
    mirrored.write_policies({})
    assert (mirrored.is_read, mirrored.texts()) == (True, {})
    mirrored.write_policies({**ONE, **OTHER})
    assert mirrored.texts() == {**ONE, **OTHER}
    mirrored.write_policies(OTHER)
    assert mirrored.texts() == OTHER


def test_who_is_reading_the_version_before_can_go_on(mirrored: Mirrored) -> None:
    mirrored.write_policies(ONE)
    before = mirrored.policies.resolve()
    mirrored.write_policies(OTHER)
    assert (before / "a.yaml").read_text() == ONE["a"]
    mirrored.write_policies({})
    assert not before.exists(), "but old versions do not pile up"
    assert len(list(mirrored.folder.iterdir())) == 3


def test_a_mirror_that_was_killed_while_it_wrote_leaves_no_trace(mirrored: Mirrored) -> None:
    mirrored.write_policies(ONE)
    number = int(mirrored.policies.readlink().name[1:])
    half = mirrored.folder / f".{number + 1}"
    half.mkdir()
    (half / "half.yaml").write_text("half")
    (mirrored.folder / ".next").symlink_to(half.name)
    assert mirrored.texts() == ONE
    mirrored.write_policies(OTHER)
    assert mirrored.texts() == OTHER


def test_a_name_as_long_as_kubernetes_allows_is_written(mirrored: Mirrored) -> None:
    name = "a" * 253
    mirrored.write_policies({name: text_of(policy(name))})
    assert list(mirrored.texts()) == [name]
    loaded = load_mirrored([mirrored.policies])
    assert loaded.policies is not None and loaded.policies.policies[0].name == name


def test_labels_are_known_once_written_and_follow(mirrored: Mirrored) -> None:
    labels = KnownLabels(mirrored.namespaces)
    labels.refresh()
    assert labels("default") is None
    mirrored.write_namespaces({"default": {"team": "a"}})
    assert labels("default") is None, "only when told to look"
    labels.refresh()
    assert (labels("default"), labels("other")) == ({"team": "a"}, None)
    mirrored.write_namespaces({"default": {"team": "b"}})
    labels.refresh()
    assert labels("default") == {"team": "b"}
    mirrored.namespaces.unlink()
    labels.refresh()
    assert labels("default") == {"team": "b"}, "what is known stays"


def test_problems_name_the_resource_and_the_field(mirrored: Mirrored) -> None:
    named = owned("named", "flux")
    del named["spec"]["rules"][0]["ownership"]["owners"][0]["subjects"]
    mirrored.write_policies({"named": text_of(named)})
    loaded = load_mirrored([mirrored.policies])
    assert loaded.policies is not None
    (one,) = loaded.problems
    assert one.severity == "warning"
    assert str(one).startswith(
        "fieldpolicies/named: warning: spec.rules[0].ownership.owners[0].manager: the owner flux"
    )
    mirrored.write_policies({"bad": text_of(invalid("bad"))})
    loaded = load_mirrored([mirrored.policies])
    assert loaded.policies is None
    assert str(loaded.problems[0]).startswith("fieldpolicies/bad: error: spec.rules[0].writers.deny[0]: ")


def test_no_policy_in_a_cluster_is_no_problem(mirrored: Mirrored) -> None:
    mirrored.write_policies({})
    loaded = load_mirrored([mirrored.policies])
    assert (loaded.policies is not None, loaded.problems) == (True, ())


def test_files_beside_a_cluster_may_ask_for_labels_of_namespaces(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps(policy(namespaceSelector={"matchLabels": {"team": "a"}})))
    loaded = load_files([tmp_path])
    assert (loaded.policies is not None, loaded.problems) == (True, ())


def test_the_file_s_policy_is_in_the_set_and_the_cluster_s_of_that_name_is_not(mirrored: Mirrored) -> None:
    files = load_text(text_of(policy("a", ANNOTATE)), "file").policies
    cluster = load_text(f"---\n{ONE['a']}\n---\n{OTHER['b']}", "cluster").policies
    assert files is not None and cluster is not None
    made = united(files, cluster, KnownLabels(mirrored.namespaces))
    assert [(one.name, one.source) for one in made.policies] == [("a", "file"), ("b", "cluster")]
    assert [one.name for one in united(None, cluster, KnownLabels(mirrored.namespaces)).policies] == ["a", "b"]
