"""Files and folders: which are read, in what order, and what is said of those that cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from webhook.policy import load, load_text

POLICY = """apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {{name: {name}}}
spec:
  match: {{resources: [{{groups: [apps], resources: [deployments]}}]}}
  rules: [{{name: one, integrity: {{onTamper: Deny}}}}]
"""
SUITE = "apiVersion: fieldwarden.dev/v1alpha1\nkind: Suite\ncases: [1]\n"


def write(path: Path, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(POLICY.format(name=name))
    return path


def names(*paths: Path) -> list[str]:
    loaded = load(paths)
    assert loaded.policies is not None, loaded.problems
    return [policy.name for policy in loaded.policies.policies]


def rules(*paths: Path) -> list[tuple[str, int, str]]:
    return [(Path(one.file).name, one.line, one.rule) for one in load(paths).problems]


def test_a_folder_is_read_with_all_below_it(tmp_path: Path) -> None:
    write(tmp_path / "b.yaml", "b")
    write(tmp_path / "sub" / "deep" / "a.yml", "a")
    write(tmp_path / "readme.md", "not-read")
    assert names(tmp_path) == ["a", "b"]


def test_policies_stand_in_the_order_of_their_names_and_know_their_file(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1.yaml", "z"), write(tmp_path / "2.yaml", "a")
    policies = load([first, second]).policies
    assert policies is not None
    assert [(policy.name, policy.source) for policy in policies.policies] == [("a", str(second)), ("z", str(first))]


def test_a_mounted_config_map_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "..2026_01_01_00_00_00.1" / "p.yaml", "p")
    (tmp_path / "..data").symlink_to("..2026_01_01_00_00_00.1")
    (tmp_path / "p.yaml").symlink_to("..data/p.yaml")
    assert names(tmp_path) == ["p"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "p.yaml", "p")
    assert names(path, tmp_path, path) == ["p"]


def test_a_link_back_to_a_folder_above_ends(tmp_path: Path) -> None:
    write(tmp_path / "sub" / "p.yaml", "p")
    (tmp_path / "sub" / "again").symlink_to(tmp_path)
    assert names(tmp_path) == ["p"]


def test_suites_are_passed_over_in_folders_and_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "p.yaml", "p")
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    assert names(tmp_path) == ["p"]
    assert rules(suite) == [("suite.yaml", 2, "wrong-kind")]


def test_other_kinds_are_errors_in_folders_too(tmp_path: Path) -> None:
    (tmp_path / "k.yaml").write_text("apiVersion: v1\nkind: ConfigMap\n")
    assert rules(tmp_path) == [("k.yaml", 2, "wrong-kind")]


def test_what_is_not_there_is_a_problem(tmp_path: Path) -> None:
    assert rules(tmp_path / "none.yaml", tmp_path / "x\0y") == [
        ("none.yaml", 1, "unreadable-file"),
        ("x\0y", 1, "unreadable-file"),
    ]


def test_a_broken_link_in_a_folder_is_a_problem_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("nowhere")
    (tmp_path / "notes").symlink_to("nowhere")
    (tmp_path / "b.yaml").write_text(POLICY.format(name="B"))
    assert rules(tmp_path) == [("a.yaml", 1, "unreadable-file"), ("b.yaml", 3, "bad-name")]


def test_a_file_that_cannot_be_opened_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, whom no mode stops: the refusal is put in by hand."""
    path = write(tmp_path / "p.yaml", "p")

    def refuse(*_: object, **__: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    (found,) = load([path]).problems
    assert (found.rule, found.message) == ("unreadable-file", "Permission denied")


def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    assert [one.rule for one in load([tmp_path]).problems] == ["unreadable-file"]


def test_pipes_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    write(tmp_path / "p.yaml", "p")
    assert names(tmp_path) == ["p"]


def test_a_folder_without_policies_is_a_warning(tmp_path: Path) -> None:
    loaded = load([tmp_path])
    assert [(one.rule, one.severity) for one in loaded.problems] == [("no-policies", "warning")]
    assert loaded.policies is not None and loaded.policies.policies == ()


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "---\n---\n", "null"])
def test_a_text_without_policies_is_a_warning(text: str) -> None:
    assert [one.rule for one in load_text(text, "f").problems] == ["no-policies"]


def test_one_faulty_policy_stops_the_whole_set(tmp_path: Path) -> None:
    write(tmp_path / "good.yaml", "good")
    (tmp_path / "bad.yaml").write_text(POLICY.format(name="bad") + "extra: 1\n")
    assert load([tmp_path]).policies is None


def test_two_files_with_one_name_are_told_of_one_another(tmp_path: Path) -> None:
    first = write(tmp_path / "1.yaml", "p")
    write(tmp_path / "2.yaml", "p")
    (found,) = load([tmp_path]).problems
    assert (Path(found.file).name, found.line, found.column, found.rule) == ("2.yaml", 3, 18, "duplicate-policy")
    assert f"{first}:3" in found.message


def test_a_problem_reads_as_editors_expect_and_shows_the_fault() -> None:
    text = POLICY.format(name="p").replace(
        "integrity: {onTamper: Deny}", "ownership: {fields: [.spec.], owners: [flux]}"
    )
    (found,) = load_text(text, "p.yaml").problems
    assert str(found).splitlines() == [
        "p.yaml:6:50: error: a field's name is missing after the dot "
        "(write paths as the API server prints them, such as .spec.replicas) [bad-path]",
        "  .spec.",
        "        ^",
    ]
