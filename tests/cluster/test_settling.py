"""Which policies of a cluster are in force together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.support import ANNOTATE, Object, invalid, owned, policy
from webhook.cluster.resource import text_of
from webhook.cluster.settling import Clash, Settled, Settling, Together


def aged(item: Object, created: str) -> Object:
    return {**item, "metadata": {**item["metadata"], "creationTimestamp": f"2026-01-{created}T00:00:00Z"}}


def in_force(*items: Object) -> dict[str, str]:
    return {item["metadata"]["name"]: text_of(item) for item in items}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def write(folder: Path, item: Object) -> Path:
    file = folder / f"{item['metadata']['name']}.yaml"
    file.write_text(yaml.safe_dump(item))
    return file


def settle(tmp_path: Path, items: Iterable[Object], good: Mapping[str, str] = {}, *files: Path) -> Settled:
    return Settling(Together(files, tmp_path)).settle(items, good)


def test_policies_that_load_are_in_force(tmp_path: Path) -> None:
    items = [policy("a"), policy("b", ANNOTATE)]
    assert settle(tmp_path, items) == Settled(in_force(*items), ())
    assert not list(tmp_path.iterdir()), "drafts are gone"


def test_none_is_fine_too(tmp_path: Path) -> None:
    assert settle(tmp_path, []) == Settled({}, ())


def test_a_faulty_one_is_left_out_alone(tmp_path: Path) -> None:
    settled = settle(tmp_path, [policy("a"), invalid("b"), policy("c")])
    assert settled.texts == in_force(policy("a"), policy("c"))
    (left,) = settled.left_out
    assert (left.name, left.earlier) == ("b", False)
    assert str(left).startswith("fieldpolicies/b is not in force: spec.rules[0].writers.deny[0]: ")


def test_a_faulty_one_stays_as_it_last_was_good(tmp_path: Path) -> None:
    good = in_force(policy("a"), policy("b"))
    settled = settle(tmp_path, [policy("a"), invalid("b")], good)
    assert settled.texts == good
    assert str(settled.left_out[0]).startswith("fieldpolicies/b stays in force as it last was good: ")


def test_a_faulty_one_that_is_deleted_is_gone(tmp_path: Path) -> None:
    assert settle(tmp_path, [policy("a")], in_force(policy("a"), policy("b"))) == Settled(in_force(policy("a")), ())


def test_of_two_that_contradict_each_other_the_older_stands(tmp_path: Path) -> None:
    old, new = aged(owned("z-old", "flux"), "01"), aged(owned("a-new", "argo"), "02")
    settled = settle(tmp_path, [new, old])
    assert settled.texts == in_force(old)
    assert [left.name for left in settled.left_out] == ["a-new"]
    assert "[contradiction]" in str(settled.left_out[0])


def test_a_change_that_contradicts_does_not_put_another_out(tmp_path: Path) -> None:
    """Although it is the older one."""
    before, other = aged(owned("old", "flux"), "01"), aged(owned("new", "flux"), "02")
    changed = aged(owned("old", "argo"), "01")
    good = in_force(before, other)
    settled = settle(tmp_path, [changed, other], good)
    assert settled.texts == good
    assert [(left.name, left.earlier) for left in settled.left_out] == [("old", True)]
    settled = settle(tmp_path, [changed, aged(owned("new", "argo"), "02")], settled.texts)
    assert settled.left_out == (), "once the other follows, both are taken"


def test_a_policy_that_also_stands_in_a_file_is_the_file_s(tmp_path: Path, files: Path) -> None:
    file = write(files, policy("a"))
    settled = settle(tmp_path, [policy("a", ANNOTATE), policy("b")], {}, files)
    assert settled.texts == in_force(policy("b"))
    told = str(settled.left_out[0])
    assert told.startswith("fieldpolicies/a is not in force: metadata.name: there is a policy a already, in ")
    assert str(file) in told, "both are named"


def test_a_file_added_later_takes_the_name_from_the_cluster(tmp_path: Path, files: Path) -> None:
    item = policy("a")
    write(files, item)
    settled = settle(tmp_path, [item], in_force(item), files)
    assert settled.texts == {}, "not even as it last was good"


def test_a_rename_in_a_file_to_an_owner_in_the_cluster_leaves_the_owner_out(tmp_path: Path, files: Path) -> None:
    """The linter finds the fault in the file; the file was there first."""
    renaming = owned("renaming", "flux")
    renaming["spec"]["rules"] = [{"name": "r", "rename": {"from": ["kubectl-*"], "to": "people"}}]
    write(files, renaming)
    settled = settle(tmp_path, [policy("a"), owned("b", "people"), policy("c")], {}, files)
    assert set(settled.texts) == {"a", "c"}
    assert "[rename-to-owner]" in str(settled.left_out[0])


def test_files_that_do_not_load_hold_up_nothing(tmp_path: Path, files: Path) -> None:
    (files / "broken.yaml").write_text("kind: FieldPolicy\n")
    settled = settle(tmp_path, [policy("a"), invalid("b")], {}, files)
    assert settled.texts == in_force(policy("a"))


def test_strict_holds_for_the_cluster_too(tmp_path: Path) -> None:
    named = owned("a", "flux")
    del named["spec"]["rules"][0]["ownership"]["owners"][0]["subjects"]
    assert not settle(tmp_path, [named]).left_out
    strict = Settling(Together((), tmp_path, strict=True)).settle([named], {})
    assert "[owner-by-name]" in str(strict.left_out[0])


def test_a_name_longer_than_a_file_s_is_none_the_worse(tmp_path: Path) -> None:
    items = [policy("a" * 253), policy("a" * 252 + "b")]
    assert len(settle(tmp_path, items).texts) == 2


@dataclass
class Pairs:
    """Texts that may not stand together, in place of the linter's judgement."""

    bad: frozenset[frozenset[str]]
    loads: int = 0
    strict: bool = False

    def clashes(self, texts: Mapping[str, str]) -> tuple[Clash, ...]:
        self.loads += 1
        return tuple(Clash("x", pair) for pair in self.bad if pair <= texts.keys())


NAMES = [f"p{number}" for number in range(8)]
PAIRS = st.frozensets(
    st.sampled_from(NAMES).flatmap(lambda a: st.frozensets(st.sampled_from(NAMES), min_size=2, max_size=2))
)


@given(PAIRS)
def test_what_is_left_out_could_not_have_been_taken_and_the_first_is_never_out(bad: frozenset[frozenset[str]]) -> None:
    pairs = Pairs(bad)
    items = [aged(policy(name), f"{number + 1:02}") for number, name in enumerate(NAMES)]
    settled = Settling(pairs).settle(items, {})  # type: ignore[arg-type]
    assert pairs.loads <= 3, "however many there are"
    assert not pairs.clashes(settled.texts)
    for left in settled.left_out:
        before = {name: "" for name in settled.texts if name < left.name}
        assert pairs.clashes({**before, left.name: ""}), "only for the sake of an older one"
    assert NAMES[0] in settled.texts


def test_one_that_clashes_with_many_says_so_in_few_words(tmp_path: Path) -> None:
    """All of them are found out at once, and the real linter tells of each pair."""
    items = [aged(owned(f"p{number:02}", "flux"), "02") for number in range(30)]
    odd = [aged(owned(f"odd-{number}", f"other-{number}"), f"{number + 3:02}") for number in range(3)]
    loads = 0

    class Counted(Together):
        def clashes(self, texts: Mapping[str, str]) -> tuple[Clash, ...]:
            nonlocal loads
            loads += 1
            return super().clashes(texts)

    settled = Settling(Counted((), tmp_path)).settle([*odd, *items], {})
    assert settled.texts.keys() == {item["metadata"]["name"] for item in items}
    assert [one.name for one in settled.left_out] == ["odd-0", "odd-1", "odd-2"]
    assert [one.problems[-1] for one in settled.left_out] == ["and 20 more"] * 3
    assert loads <= 3
