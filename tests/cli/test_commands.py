"""The commands as people call them: what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from webhook.cli import main
from webhook.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent.parent
REVIEWS = ROOT / "tests" / "reviews"
POLICY = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: labels}
spec:
  mode: Enforce
  match:
    resources: [{groups: [apps], resources: [deployments]}]
  rules:
  - name: labels
    ownership:
      fields: [.metadata.labels]
      owners: [{manager: kustomize-controller, operation: Apply}]
      onChange: Deny
"""
SUITE = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: Suite
policies: [policy.yaml]
cases:
- name: one
  review: review.json
  expect: {allowed: %s}
"""


class Cli:
    """Runs the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """(exit code, standard output, standard error)."""
        code = main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return code, out, err


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy, a review that it denies, and a suite that expects so."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "review.json").write_bytes((REVIEWS / "kubectl-label-overwrite.json").read_bytes())
    (tmp_path / "suite.yaml").write_text(SUITE % "false")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_each_command(cli: Cli, command: str) -> None:
    code, out, err = cli(command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: fieldwarden {command}")


@pytest.mark.parametrize("command", ["lint", "test", "review", "schema"])
def test_help_gives_examples_and_exit_codes(cli: Cli, command: str) -> None:
    _, out, _ = cli(command, "--help")
    assert f"Examples:\n    fieldwarden {command}" in out
    assert "Exit codes: 0" in out


def test_help_lists_every_command_and_exit_code(cli: Cli) -> None:
    code, out, _ = cli("--help")
    assert code == 0
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert "4  the policies do not load" in out


def test_without_a_command_help_is_shown_as_wrong_use(cli: Cli) -> None:
    code, out, err = cli()
    assert code == 2 and "Commands:" in out + err


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("lint",),
        ("lint", "--nonsense", "."),
        ("lint", "/does/not/exist"),
        ("lint", "-", "."),
        ("test", "/does/not/exist"),
        ("review", "-"),
        ("review", "/does/not/exist", "--policies", "."),
        ("schema", "-o", "table"),
        ("serve",),
    ],
    ids=" ".join,
)
def test_wrong_use_is_told_and_ends_with_2(cli: Cli, arguments: Sequence[str]) -> None:
    code, out, err = cli(*arguments)
    assert code == 2 and "Error: " in err and not out


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, "fieldwarden 0.1.0\n", "")


def test_lint_finds_nothing_and_says_what_is_next(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("lint", folder)
    assert code == 0
    assert "1 policy, 1 warning." in out  # an owner by name alone
    assert f"Next: fieldwarden test {folder}" in out


def test_lint_strict_makes_an_owner_by_name_an_error(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("lint", "--strict", folder)
    assert code == 1
    assert f"{folder}/policy.yaml:12:26: error: " in out and "[owner-by-name]" in out
    assert "1 error, 0 warnings. Nothing of this would load." in out


def test_lint_tells_every_problem_with_its_place(cli: Cli, folder: Path) -> None:
    text = POLICY.replace("onChange: Deny", "onChnage: Deny").replace(".metadata.labels]", ".metadata..labels]")
    (folder / "policy.yaml").write_text(text)
    code, out, _ = cli("lint", folder / "policy.yaml")
    assert code == 1
    assert "[unknown-key]" in out and "did you mean onChange?" in out
    assert "[bad-path]" in out and "\n  .metadata..labels\n            ^" in out


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_lint_as_data(cli: Cli, folder: Path, form: str) -> None:
    code, out, _ = cli("lint", "-o", form, folder)
    told = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert code == 0
    assert (told["errors"], told["warnings"], told["policies"]) == (0, 1, ["labels"])
    (problem,) = told["problems"]
    assert (problem["line"], problem["column"], problem["rule"]) == (12, 26, "owner-by-name")
    assert problem["advice"]


def test_schema_accepts_the_shipped_policies(cli: Cli) -> None:
    code, out, _ = cli("schema")
    assert code == 0
    schema = Draft202012Validator(json.loads(out))
    files = sorted((ROOT / "policies").glob("*/policy.yaml"))
    assert files
    for file in files:
        for document in yaml.safe_load_all(file.read_text()):
            assert list(schema.iter_errors(document)) == []
    assert cli("schema", "-o", "yaml")[1].startswith("$schema:")


def test_review_answers_as_the_server_would(cli: Cli, folder: Path) -> None:
    code, out, err = cli("review", folder / "review.json", "--policies", folder)
    told = json.loads(out)
    assert code == 1
    assert (told["kind"], told["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert told["response"]["uid"] == json.loads((folder / "review.json").read_text())["request"]["uid"]
    assert told["response"]["status"]["code"] == 403
    assert "[owner-by-name]" in err, "warnings about policies go to standard error"


def test_review_as_yaml_says_the_same(cli: Cli, folder: Path) -> None:
    arguments = ("review", folder / "review.json", "--policies", folder)
    assert yaml.safe_load(cli(*arguments, "-o", "yaml")[1]) == json.loads(cli(*arguments)[1])


def test_review_as_a_table_is_for_people(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("review", folder / "review.json", "--policies", folder, "-o", "table")
    assert code == 1
    assert out.startswith("denied: UPDATE deployments default/web by developer@example.com\n")
    assert "change" in out and "labels/labels" in out and ".metadata.labels.team" in out
    assert "Change it in Git and let it be applied." in out


def test_review_that_is_allowed_ends_with_0(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("review", REVIEWS / "flux-create.json", "--policies", folder, "-o", "table")
    assert code == 0
    assert out.startswith("allowed: ") and "No policy has anything to say about it." in out


def test_a_mode_caps_what_policies_may_do(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("review", folder / "review.json", "--policies", folder, "--mode", "Warn")
    told = json.loads(out)["response"]
    assert code == 0 and told["allowed"] and "would be refused" in told["warnings"][0]


def test_a_phase_chooses_the_call(cli: Cli, folder: Path) -> None:
    text = POLICY.replace(".metadata.labels", ".spec.replicas")
    (folder / "policy.yaml").write_text(text)
    scale = ("review", REVIEWS / "kubectl-scale.mutate.json", "--policies", folder)
    assert cli(*scale)[0] == 0
    assert cli(*scale, "--phase", "mutate")[0] == 1


@pytest.mark.parametrize("body", ["", "{", "[]", '{"kind": "Pod"}', '{"kind": "AdmissionReview"}'])
def test_what_is_no_review_ends_with_2(cli: Cli, folder: Path, body: str) -> None:
    (folder / "review.json").write_text(body)
    code, out, err = cli("review", folder / "review.json", "--policies", folder)
    assert code == 2 and not out and "review.json: the body is" in err


def test_policies_that_do_not_load_end_with_4(cli: Cli, folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("mode: Enforce", "mode: Enforced"))
    code, out, err = cli("review", folder / "review.json", "--policies", folder)
    assert code == 4 and not out
    assert "policy.yaml:5:9: error: " in err and "the policies do not load" in err
    assert cli("test", folder)[0] == 4


def test_a_suite_that_passes(cli: Cli, folder: Path) -> None:
    code, out, _ = cli("test", folder)
    assert code == 0
    assert "1 suite, 1 case, none failed." in out and "passed" in out


def test_a_case_that_fails_says_what_came(cli: Cli, folder: Path) -> None:
    (folder / "suite.yaml").write_text(SUITE % "true")
    code, out, _ = cli("test", folder / "suite.yaml")
    assert code == 1
    assert f"{folder}/suite.yaml:5: one: expected allowed, was denied: [labels/labels]" in out
    assert "1 suite, 1 case, 1 failed." in out


def test_a_faulty_suite_ends_with_1(cli: Cli, folder: Path) -> None:
    (folder / "suite.yaml").write_text(SUITE % "perhaps")
    code, out, _ = cli("test", folder)
    assert code == 1 and "suite.yaml:7:21: error: true or false is expected here" in out


def test_a_folder_without_suites_is_wrong_use(cli: Cli, folder: Path) -> None:
    (folder / "suite.yaml").unlink()
    code, _, err = cli("test", folder)
    assert code == 2 and "no suite in" in err


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_results_as_data(cli: Cli, folder: Path, form: str) -> None:
    code, out, _ = cli("test", "-o", form, folder)
    told = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert code == 0 and told["passed"]
    (suite,) = told["suites"]
    (case,) = suite["cases"]
    assert (case["name"], case["line"], case["passed"], case["failures"]) == ("one", 5, True, [])


def test_results_as_junit(cli: Cli, folder: Path) -> None:
    from xml.etree import ElementTree

    (folder / "suite.yaml").write_text(SUITE % "true")
    (folder / "faulty-suite.yaml").write_text(SUITE % "perhaps")
    assert cli("test", folder, "--junit", folder / "out.xml")[0] == 1
    suites = {suite.get("name"): suite for suite in ElementTree.parse(folder / "out.xml").getroot()}
    failed, faulty = suites[f"{folder}/suite.yaml"], suites[f"{folder}/faulty-suite.yaml"]
    assert (failed.get("tests"), failed.get("failures"), failed.get("errors")) == ("1", "1", "0")
    failure = failed.find("testcase/failure")
    assert failure is not None and "expected allowed, was denied" in (failure.get("message") or "")
    assert (faulty.get("failures"), faulty.get("errors")) == ("0", "1")
    assert cli("test", folder, "--junit", folder / "no" / "such" / "out.xml")[0] == 2
