"""`report` and `suggest` as people call them."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from pathlib import Path

import pytest
import yaml

from tests.report.made import DAY, MONDAY, OBSERVING, REVIEWS, SHIPPED, policies, record
from tests.report.test_sources import line, log
from webhook.admission import Engine
from webhook.cli import main
from webhook.cluster.errors import Missing
from webhook.cluster.report_source import ClusterReports
from webhook.policy import Mode
from webhook.report.asking import Asked
from webhook.report.journal import Journal
from webhook.report.plain_data import as_data
from webhook.report.summary import summarise

Ended = tuple[int, str, str]


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ended:
        """(exit code, standard output, standard error)."""
        code = main([str(argument) for argument in arguments])
        return code, *self._capsys.readouterr()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What observing and shipped policies found in the captured reviews, on three days."""
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    engine = Engine(policies(OBSERVING, SHIPPED), Mode.AUDIT)
    with contextlib.closing(Journal.open(path)) as made:
        for number in range(3):
            for review in REVIEWS:
                for phase in ("mutate", "validate"):
                    made.record(engine.answer(review.read_bytes(), phase).decision.results, MONDAY + DAY * number)
    return path


def test_a_report_says_who_would_fail_and_exits_1(cli: Cli, journal: Path) -> None:
    code, out, err = cli("report", journal)
    assert (code, err) == (1, "")
    for section in ("If enforced", "Who would meet it", "Who writes what", "Fields that flap", "Day by day"):
        assert f"\n{section}" in out
    assert "gitops-owns-labels" in out
    assert "would fail" in out.splitlines()[-1]


def test_where_nothing_would_happen_it_exits_0(cli: Cli, tmp_path: Path) -> None:
    item = {**line()["results"][0], "action": None}
    code, out, _ = cli("report", log(tmp_path, line(results=[item])))
    assert (code, out.splitlines()[-1]) == (0, "In Enforce nothing of this would fail or be rewritten.")
    assert cli("report", log(tmp_path))[0] == 0


def test_a_report_is_of_what_was_asked_for(cli: Cli, journal: Path) -> None:
    _, out, _ = cli("report", "-o", "json", "--policy", "gitops-*", "--since", "2026-11-17", journal)
    data = json.loads(out)
    assert [view["policy"] for view in data["policies"]] == ["gitops-owns-labels"]
    assert [day["day"] for day in data["days"]] == ["2026-11-17", "2026-11-18"]
    assert data["asked"] == {
        "since": "2026-11-17T00:00:00Z",
        "namespaces": [],
        "policies": ["gitops-*"],
        "without": [],
    }
    _, out, _ = cli("report", "-o", "json", "--namespace", "no-such-*", journal)
    assert json.loads(out)["policies"] == []


def test_a_policy_that_observes_can_be_left_out_of_the_answer(cli: Cli, tmp_path: Path) -> None:
    item = line()["results"][0]
    observed, harmless = {**item, "policy": "observe"}, {**item, "policy": "labels", "action": None}
    path = log(tmp_path, line(results=[observed, harmless]))
    assert cli("report", path)[0] == 1
    code, out, err = cli("report", "--policy", "!obs*", "-o", "json", path)
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert [view["policy"] for view in data["policies"]] == ["labels"]
    assert (data["asked"]["policies"], data["asked"]["without"]) == ([], ["obs*"])
    assert cli("report", "--policy", "*", "--policy", "!observe", path)[0] == 0
    assert "without policy <bdi>observe</bdi>" in cli("report", "--policy", "!observe", "-o", "html", path)[1]
    _, _, err = cli("suggest", "--policy", "!obsrve", path)
    assert err == "Note: nothing that is recorded is of a policy 'obsrve'.\n"


@pytest.mark.parametrize(("span", "days"), [("7d", 7), ("36h", 1.5), ("2w", 14), ("90m", 0.0625)])
def test_a_span_is_counted_back_from_now(cli: Cli, journal: Path, span: str, days: float) -> None:
    _, out, _ = cli("report", "-o", "json", "--since", span, journal)
    since = dt.datetime.fromisoformat(json.loads(out)["asked"]["since"])
    assert abs(dt.datetime.now(dt.UTC) - dt.timedelta(days=days) - since) < dt.timedelta(minutes=5)


def test_a_page_is_whole(cli: Cli, journal: Path) -> None:
    code, out, _ = cli("report", "-o", "html", journal)
    assert code == 1
    assert out.startswith("<!doctype html>")
    assert out.endswith("</html>\n")


def test_a_journal_and_a_log_are_added_up(cli: Cli, journal: Path, tmp_path: Path) -> None:
    alone = json.loads(cli("report", "-o", "json", journal)[1])["writes"]["fails"]
    both = json.loads(cli("report", "-o", "json", journal, log(tmp_path, line(), line()))[1])
    assert both["writes"]["fails"] == alone + 2
    assert both["sources"] == [str(journal), str(tmp_path / "server.log")]


def test_lines_that_cannot_be_read_are_told(cli: Cli, tmp_path: Path) -> None:
    path = log(tmp_path, line(), b"what?")
    code, out, err = cli("report", "-o", "json", path)
    assert (code, err) == (1, f"Note: {path}: 1 line could not be read.\n")
    assert json.loads(out)["notes"] == [f"{path}: 1 line could not be read"]


@pytest.mark.parametrize("command", ["report", "suggest"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"# A page\n\nof text\n", "is no log of the server: none of 2 lines could be read"),
        (b'{"message": "of another program"}\n', "is no log of the server: none of 1 line could be read"),
        (b"\x1f\x8b\x08", "is damaged, and no line of the server's log stands before the damage"),
    ],
)
def test_what_is_no_log_of_the_server_is_no_answer(
    cli: Cli, tmp_path: Path, command: str, text: bytes, said: str
) -> None:
    path = tmp_path / "README.md"
    path.write_bytes(text)
    assert cli(command, path) == (2, "", f"Error: {path}: {said}\n")


@pytest.mark.parametrize("lines", [(), ({"event": "reloaded", "level": "info"},)], ids=["empty", "without findings"])
def test_where_nothing_is_recorded_a_note_says_so(cli: Cli, tmp_path: Path, lines: tuple[dict[str, str], ...]) -> None:
    assert cli("suggest", log(tmp_path, *lines))[::2] == (0, "Note: nothing is recorded.\n")
    code, out, err = cli("report", "-o", "json", "--policy", "x", "--since", "1d", log(tmp_path, *lines))
    assert (code, err) == (0, "Note: nothing is recorded since then.\n")
    assert json.loads(out)["notes"] == ["nothing is recorded since then"]


@pytest.mark.parametrize("command", ["report", "suggest"])
def test_a_name_that_nothing_fits_is_told(cli: Cli, tmp_path: Path, command: str) -> None:
    asking = (
        "--policy",
        "labels",
        "--policy",
        "lables",
        "--namespace",
        "team-*",
        "--namespace",
        "x",
        "--namespace",
        "",
    )
    _, _, err = cli(command, *asking, log(tmp_path, line()))
    assert err.splitlines() == [
        "Note: nothing that is recorded is of a policy 'lables'.",
        "Note: nothing that is recorded is in a namespace 'x'.",
        "Note: nothing that is recorded is in cluster scope.",
    ]


@pytest.mark.parametrize("command", ["report", "suggest"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kubeconfig", "x", "y"), "where no SOURCE is given"),
        (("nowhere.db",), "nowhere.db: No such file or directory"),
        (("-", "-"), "standard input can be read only once"),
        (("--since", "soon", "x"), "neither a span"),
        (("--since", "999999999w", "x"), "too far back"),
    ],
)
def test_wrong_use_is_told_and_exits_2(cli: Cli, command: str, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = cli(command, *arguments)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize("command", ["report", "suggest"])
def test_a_source_that_is_given_twice_is_refused(cli: Cli, tmp_path: Path, command: str) -> None:
    path, other = log(tmp_path, line()), tmp_path / "other.log"
    other.symlink_to(path)
    for one, said in ((path, f"{path} is given twice"), (other, f"{path} and {other} are one file")):
        code, out, err = cli(command, path, one)
        assert (code, out) == (2, "")
        assert f"{said}: every event would count twice" in err


@pytest.mark.parametrize("command", ["report", "suggest"])
def test_where_no_cluster_is_named_another_source_is(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    code, out, err = cli(command)
    assert (code, out) == (3, "")
    assert err.startswith("Error: no cluster is named")
    assert err.endswith("; or give a journal or a log as SOURCE\n")


@pytest.mark.parametrize("command", ["report", "suggest"])
def test_a_source_that_cannot_be_read_is_no_wrong_use(cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    class Bare:
        """A cluster that serves no reports."""

        def request(self, _method: str, path: str, *_: object, **__: object) -> dict[str, object]:
            raise Missing(path)

    monkeypatch.setattr(ClusterReports, "connect", lambda _kubeconfig: ClusterReports(Bare()))
    code, out, err = cli(command)
    assert (code, out) == (2, "")
    assert err.startswith("Error: this cluster serves neither ")


def test_no_value_is_in_any_output(cli: Cli, journal: Path) -> None:
    review = json.loads((REVIEWS[0].parent / "secret-update.json").read_text())["request"]
    values = [*review["object"]["data"].values(), *review["oldObject"]["data"].values(), "hunter2"]
    for arguments in (("report",), ("report", "-o", "json"), ("report", "-o", "html"), ("suggest",)):
        _, out, _ = cli(*arguments, journal)
        assert out
        assert [value for value in values if value in out] == []


def test_what_is_suggested_lints_clean(cli: Cli, journal: Path, tmp_path: Path) -> None:
    code, out, err = cli("suggest", journal)
    assert (code, err) == (0, "")
    assert out.startswith("# Proposed by fieldwarden from ")
    assert {one["spec"]["mode"] for one in yaml.safe_load_all(out)} == {"Audit"}
    suggested = tmp_path / "suggested.yaml"
    suggested.write_text(out)
    code, out, _ = cli("lint", "--strict", suggested)
    assert (code, out.splitlines()[0].endswith("policies, no problems.")) == (0, True)


@pytest.mark.parametrize("command", ["report", "suggest"])
def test_help_gives_examples_and_exit_codes(cli: Cli, command: str) -> None:
    _, out, _ = cli(command, "--help")
    assert f"Examples:\n    fieldwarden {command}" in out
    assert "Exit codes: 0" in out


def test_the_documentation_has_the_policy_that_is_tested_here_and_every_key() -> None:
    text = (SHIPPED.parent / "docs" / "reports.md").read_text()
    assert f"```yaml\n{OBSERVING.read_text()}```" in text
    data = as_data(summarise([record(count=2)], [], Asked(), MONDAY))

    def keys(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(keys, value))
        return set(value) | set().union(*map(keys, value.values())) if isinstance(value, dict) else set()

    assert {key for key in keys(data) - {"2026-11-16"} if f"`{key}`" not in text and f"`{key}[]`" not in text} == set()
