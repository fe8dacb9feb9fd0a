"""Changed policies are taken into use by every worker, whole or not at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from serving import BROKEN, Server, eventually, policy, review, running

LABEL, ANNOTATE = review(), review("kubectl-annotate")


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a ConfigMap is mounted: each version a hidden folder, `..data` a link to it, each file a link through that."""
    folder = tmp_path_factory.mktemp("reload") / "policies"
    folder.mkdir()
    swap(folder, "1", policy())
    (folder / "policy.yaml").symlink_to("..data/policy.yaml")
    return folder


@pytest.fixture(scope="module")
def server(mounted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # The interval is long: what these tests see comes from notifications.
    with running(tmp_path_factory.mktemp("serve"), mounted, "--reload-interval", "600") as started:
        yield started


def swap(folder: Path, version: str, text: str) -> None:
    (folder / f"..{version}").mkdir()
    (folder / f"..{version}" / "policy.yaml").write_text(text)
    (folder / "..next").symlink_to(f"..{version}")
    (folder / "..next").replace(folder / "..data")


@contextmanager
def added(folder: Path, name: str, text: str) -> Iterator[None]:
    """A file more, which the tests to come do not find, whatever becomes of this one."""
    (folder / name).write_text(text)
    try:
        yield
    finally:
        (folder / name).unlink()


def is_told(server: Server, warning: str) -> bool:
    """What was counted may not have been told yet."""
    return any(warning in one for one in server.ready()["warnings"])


def all_judge_by_another(server: Server, before: set[str]) -> bool:
    now = server.generations()  # asked once: between two questions one worker may have loaded
    return len(now) == 1 and now != before


def verdicts(server: Server, body: bytes) -> set[bool]:
    """On many connections, so that every worker is asked."""
    return {server.post(body).allowed for _ in range(12)}


def test_a_swapped_configmap_changes_what_all_workers_say(server: Server, mounted: Path) -> None:
    assert (verdicts(server, LABEL), verdicts(server, ANNOTATE)) == ({False}, {True})
    before = server.generations()
    swap(mounted, "2", policy(denied="kubectl-annotate"))
    eventually(lambda: all_judge_by_another(server, before))
    assert (verdicts(server, LABEL), verdicts(server, ANNOTATE)) == ({True}, {False})
    assert server.ready()["warnings"] == []


def test_a_set_that_does_not_load_leaves_the_old_one_in_force(server: Server, mounted: Path) -> None:
    before, failures = verdicts(server, LABEL), server.metric("fieldwarden_policy_load_failures_total")
    good = (mounted / "policy.yaml").read_text()
    with added(mounted, "broken.yaml", BROKEN):
        eventually(lambda: server.metric("fieldwarden_policy_load_failures_total") >= failures + 2)
        eventually(lambda: is_told(server, "broken.yaml"))
        assert verdicts(server, LABEL) == before
        status, body = server.get("/readyz")
        assert status == 200, "a good old set stays in service"
        assert "do not load" in body
        assert server.metric("fieldwarden_policies_stale") == 1
        assert server.metric("fieldwarden_policies_loaded") == 1
    eventually(lambda: not server.ready()["warnings"])
    eventually(lambda: server.metric("fieldwarden_policies_stale") == 0)
    assert good == (mounted / "policy.yaml").read_text()


def test_a_worker_that_starts_among_broken_files_judges_by_the_good_set(server: Server, mounted: Path) -> None:
    """Also when the good set was in force for a moment only."""
    before, failures = server.generations(), server.metric("fieldwarden_policy_load_failures_total")
    swap(mounted, "3", policy(denied="kubectl-label") + "# again\n")
    eventually(lambda: all_judge_by_another(server, before))
    with added(mounted, "broken.yaml", BROKEN):
        generations = server.generations()
        eventually(lambda: server.metric("fieldwarden_policy_load_failures_total") >= failures + 2)
        for killed in server.workers():
            os.kill(killed, signal.SIGKILL)
            eventually(lambda killed=killed: len(set(server.workers()) - {killed}) == 2)  # type: ignore[misc]
        assert server.generations() == generations
        assert (verdicts(server, LABEL), verdicts(server, ANNOTATE)) == ({False}, {True})
    eventually(lambda: not server.ready()["warnings"])


def test_a_worker_that_missed_the_good_set_judges_by_it_all_the_same(server: Server, mounted: Path) -> None:
    """It was busy while the good set was there, and found only the broken one."""
    before = server.generations()
    slow, quick = server.workers()
    with ExitStack() as broken:
        os.kill(slow, signal.SIGSTOP)
        try:
            swap(mounted, "4", policy(denied="kubectl-annotate"))
            eventually(lambda: len(server.generations()) == 2)
            broken.enter_context(added(mounted, "broken.yaml", BROKEN))
        finally:
            os.kill(slow, signal.SIGCONT)
        eventually(lambda: all_judge_by_another(server, before))
        assert set(server.workers()) == {slow, quick}
        assert (verdicts(server, LABEL), verdicts(server, ANNOTATE)) == ({True}, {False})
    swap(mounted, "5", policy())
    eventually(lambda: not server.ready()["warnings"] and verdicts(server, LABEL) == {False})


def test_an_added_file_counts(server: Server, mounted: Path) -> None:
    with added(mounted, "more.yaml", policy("more", "kubectl-set")):
        eventually(lambda: {worker["policies"] for worker in server.ready()["workers"]} == {2})
        assert verdicts(server, review("kubectl-set-image")) == {False}
    eventually(lambda: {worker["policies"] for worker in server.ready()["workers"]} == {1})


def test_sighup_reads_again_and_interrupts_nothing(server: Server) -> None:
    workers, loads = set(server.workers()), len(server.lines("policies loaded"))
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: {line["pid"] for line in server.lines("policies loaded")[loads:]} == workers)
    assert set(server.workers()) == workers
    assert server.post(LABEL).status == 200


def test_an_emptied_folder_is_a_set_of_none_and_says_so(server: Server, mounted: Path) -> None:
    (mounted / "policy.yaml").unlink()
    try:
        eventually(lambda: {worker["policies"] for worker in server.ready()["workers"]} == {0})
        assert verdicts(server, LABEL) == {True}
        assert is_told(server, "no policy is here")
    finally:
        (mounted / "policy.yaml").symlink_to("..data/policy.yaml")
    eventually(lambda: {worker["policies"] for worker in server.ready()["workers"]} == {1})


def test_a_folder_that_goes_away_leaves_the_policies_in_force(tmp_path: Path, policies: Path) -> None:
    """Here without notifications: the interval finds it."""
    with running(tmp_path / "s", policies / "labels.yaml", "--workers", "1") as server:
        (policies / "labels.yaml").rename(tmp_path / "away")
        eventually(lambda: server.ready()["warnings"])
        assert server.post(LABEL).allowed is False
        (tmp_path / "away").write_text(policy(denied="kubectl-annotate"))
        (tmp_path / "away").rename(policies / "labels.yaml")
        eventually(lambda: not server.ready()["warnings"])
        assert (server.post(LABEL).allowed, server.post(ANNOTATE).allowed) == (True, False)
