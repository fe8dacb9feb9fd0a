"""Small promises: what readiness says, and that the log survives whatever it is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from webhook.admission import Ownership
from webhook.server.files import digest, signature
from webhook.server.logs import MAX_PATHS, MAX_RESULTS, make_logger, results
from webhook.server.ops import readiness
from webhook.server.settings import Address, SettingsError
from webhook.server.shared import Flags, Runtime, WorkerStatus


def status(pid: int = 1, generation: str = "a", failure: tuple[str, ...] = (), certificate: str = "") -> WorkerStatus:
    return WorkerStatus(pid, generation, 3, 100.0, ("a warning",), failure, 200.0, certificate)


def test_a_server_is_not_ready_before_every_worker_judges() -> None:
    flags = Flags()
    early = readiness((status(1),), 2, flags)
    assert (early.ready, early.reasons) == (False, ("starting: 1 of 2 workers serve",))
    assert readiness((status(1), status(2)), 2, flags).ready


def test_a_missing_worker_is_a_warning_and_no_worker_a_reason() -> None:
    flags = Flags()
    readiness((status(1), status(2)), 2, flags)
    assert readiness((status(2),), 2, flags).ready
    assert "1 of 2 workers serve" in readiness((status(2),), 2, flags).warnings
    assert readiness((), 2, flags).reasons == ("no worker serves: 0 of 2 workers serve",)


def test_draining_is_a_reason() -> None:
    flags = Flags()
    flags.drain()
    state = readiness((status(1),), 1, flags)
    assert (state.ready, state.reasons) == (False, ("draining: this server is about to stop",))


def test_what_stays_in_force_is_ready_with_warnings_said_once() -> None:
    both = (status(1, "a", ("f:1:1: error: x",), "no pair"), status(2, "b", ("f:1:1: error: x",), "no pair"))
    state = readiness(both, 2, Flags())
    assert state.ready
    assert state.warnings == (
        "workers judge by different policies until all have reloaded",
        "policies do not load, older ones are in force: f:1:1: error: x",
        "the certificate does not load, the older one is in use: no pair",
        "a warning",
    )


def test_a_status_is_read_as_it_was_written_while_its_worker_lives() -> None:
    import os

    with Runtime.create() as runtime:
        runtime.report(status(os.getpid(), failure=("x",)))
        runtime.report(status(2**22 + 7))  # no process has this number
        assert runtime.statuses() == (status(os.getpid(), failure=("x",)),)
        runtime.forget(os.getpid())
        assert runtime.statuses() == ()
    assert not runtime.folder.exists()


class Result:
    kind, policy, rule, mode, action, outcome = "change", "p", "r", "Audit", None, "recorded"
    operation, owner = "Update", "kustomize-controller (Apply)"
    paths = tuple(f".spec.a{number}" + "x" * 1000 for number in range(MAX_PATHS + 3))
    ownership = tuple(Ownership(path, (path,) * (MAX_PATHS + 3), (path,)) for path in paths)


def test_a_log_line_has_a_bounded_size() -> None:
    shown = results([Result()] * (MAX_RESULTS + 2))
    assert shown[-1] == {"more_results": 2}
    assert shown[0]["more_paths"] == 3
    assert len(json.dumps(shown)) < 200_000


def test_an_exception_is_logged_by_type_and_place_without_its_text(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("the value of a secret")
    except ValueError as error:
        make_logger("info").error("internal error", exc_info=error)
    line = json.loads(capfd.readouterr().out)
    assert (line["event"], line["level"], line["error"]) == ("internal error", "error", "ValueError")
    assert "test_server_units.py" in line["trace"][-1]
    assert "secret" not in json.dumps(line)


def test_a_name_that_is_no_unicode_does_not_stop_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    make_logger("info").info("review", user="\ud800\n")
    assert json.loads(capfd.readouterr().out)["user"] == "\ud800\n"


def test_the_log_level_counts(capfd: pytest.CaptureFixture[str]) -> None:
    make_logger("error").info("review")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("text", ["8443", ":8443", "host:", "host:x", "host:65536", "::1:80", "host:-1", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        Address.parse(text)


def test_a_signature_follows_links_leaves_out_hidden_folders_and_ends(tmp_path: Path) -> None:
    (tmp_path / "..1").mkdir()
    (tmp_path / "..1" / "a.yaml").write_text("1")
    (tmp_path / "a.yaml").symlink_to("..1/a.yaml")
    (tmp_path / "loop").symlink_to(tmp_path)
    before, content = signature([tmp_path]), digest([tmp_path])
    assert [Path(name).name for name, *_ in before] == ["a.yaml"]
    (tmp_path / "..1" / "a.yaml").write_text("22")
    assert signature([tmp_path]) != before
    assert digest([tmp_path]) != content
