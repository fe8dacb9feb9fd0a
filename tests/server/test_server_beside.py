"""What runs beside the workers, and what is served before and while a cluster is followed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from serving import BROKEN, command, policy

from webhook.cluster.mirrored import Mirrored, MirrorState
from webhook.policy import load
from webhook.server.app import create_app
from webhook.server.forked import LONGEST_PAUSE, STEADY, Forked
from webhook.server.metrics import Metrics
from webhook.server.ops import readiness
from webhook.server.policies import PolicyKeeper
from webhook.server.shared import Flags, Runtime, WorkerStatus
from webhook.server.sources import Sources
from webhook.server.state import NotRead, ServerState

FOLLOWED = MirrorState("", True, 100.0, 3, 4)


@dataclass
class Log:
    lines: list[str] = field(default_factory=list)

    def warning(self, line: str, **_: Any) -> None:
        self.lines.append(line)

    error = info = warning


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> Forked:
    """A process that waits to be killed."""
    return Forked("waiting", signal.pause, Log(), clock)


def ended(process: Forked) -> None:
    """Kill it and reap it, as the first process does."""
    process.kill()
    os.waitpid(process.pid, 0)


def test_a_process_is_started_once_and_kept(kept: Forked) -> None:
    kept.keep()
    pid = kept.pid
    assert pid
    kept.keep()
    assert kept.pid == pid
    ended(kept)


def test_it_is_started_again_at_once_and_then_more_and_more_seldom(kept: Forked, clock: Clock) -> None:
    kept.keep()
    pauses = []
    for _ in range(9):
        ended(kept)
        before = clock.now
        kept.keep()
        while not kept.pid:
            clock.now += 0.5
            kept.keep()
        pauses.append(clock.now - before)
    assert pauses == [0, 1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    clock.now += STEADY
    ended(kept)
    kept.keep()
    assert kept.pid, "after a steady time its end is a first one again"
    ended(kept)


def test_what_it_runs_may_fail_without_anything_running_on(clock: Clock) -> None:
    def fail() -> None:
        raise ValueError("the value of a secret")

    process = Forked("failing", fail, Log(), clock)
    process.keep()
    assert os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1]) == 1


def test_policies_that_have_not_been_read_yet_are_a_reason() -> None:
    state = readiness((), 2, Flags(), MirrorState())
    assert not state.ready
    assert state.reasons[0] == "policies from the cluster have not been read yet"
    assert state.warnings == ("the cluster cannot be followed: it has not answered yet",)


WORKER = WorkerStatus(1, "a", 3, 100.0, (), (), 200.0, "")


def test_a_cluster_that_cannot_be_followed_any_more_is_no_reason() -> None:
    state = readiness((WORKER,), 1, Flags(), replace(FOLLOWED, failure="Connection refused"))
    assert state.ready
    assert state.warnings == ("the cluster cannot be followed since 1970-01-01T00:01:40Z: Connection refused",)


def test_what_is_left_out_is_told() -> None:
    state = readiness((WORKER,), 1, Flags(), replace(FOLLOWED, left_out=("fieldpolicies/a is not in force: x",)))
    assert state.warnings == ("a policy from the cluster is left out: fieldpolicies/a is not in force: x",)
    assert readiness((WORKER,), 1, Flags(), FOLLOWED).warnings == ()


def test_a_mirror_that_has_ended_follows_nothing() -> None:
    with Runtime.create() as runtime:
        assert runtime.mirror() == MirrorState()
        runtime.report_mirror(FOLLOWED)
        assert runtime.mirror() == FOLLOWED
        file = runtime.folder / "mirror.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "pid": 2**22 + 7}))  # no process has this number
        assert runtime.mirror().failure == "the process that follows it has ended and is started again"


def test_no_call_is_answered_before_the_policies_have_been_read() -> None:
    state = ServerState(NotRead(), NoGate(), Metrics(), Log())
    client = create_app(state).test_client()
    for path in ("/validate", "/mutate"):
        reply = client.post(path, data=b"{}", content_type="application/json")
        assert (reply.status_code, reply.get_json()["error"]["reason"]) == (503, "policies-not-read")


class NoGate:
    def answer(self, body: bytes) -> Any:
        raise AssertionError


def sources(tmp_path: Path, files: Path | None) -> tuple[Sources, Mirrored]:
    (tmp_path / "cluster").mkdir()
    mirrored = Mirrored(tmp_path / "cluster")
    keeper = PolicyKeeper([files], load) if files else None
    if keeper:
        keeper.check()
    return Sources(keeper, mirrored), mirrored


def names(made: Sources) -> list[str]:
    assert made.in_force is not None
    return [one.name for one in made.in_force.policies.policies]  # type: ignore[attr-defined]


def test_nothing_is_in_force_before_all_has_been_read(tmp_path: Path) -> None:
    files = tmp_path / "files.yaml"
    files.write_text(policy("file"))
    made, mirrored = sources(tmp_path, files)
    assert (made.check(), made.in_force) == ("same", None)
    mirrored.write_namespaces({})
    mirrored.write_policies({})
    assert made.check() == "loaded"
    assert names(made) == ["file"]


def test_each_source_keeps_its_own_last_good_state(tmp_path: Path) -> None:
    files = tmp_path / "files.yaml"
    files.write_text(policy("file"))
    made, mirrored = sources(tmp_path, files)
    mirrored.write_policies({"cluster": json_of("cluster")})
    made.check()
    files.write_text(BROKEN)
    mirrored.write_policies({"cluster": json_of("cluster"), "other": json_of("other")})
    assert made.check() == "failed"
    assert names(made) == ["cluster", "file", "other"]
    assert "files.yaml" in made.failure[0]
    files.write_text(policy("again"))
    assert made.check() == "loaded"
    assert (names(made), made.failure) == (["again", "cluster", "other"], ())


def json_of(name: str) -> str:
    import yaml

    return json.dumps(yaml.safe_load(policy(name)))


def test_the_same_policies_are_the_same_generation_wherever_they_were_read(tmp_path: Path) -> None:
    generations = set()
    for pod in ("one", "two"):
        (tmp_path / pod).mkdir()
        made, mirrored = sources(tmp_path / pod, None)
        if pod == "two":
            mirrored.write_policies({})
        mirrored.write_policies({"a": json_of("a")})
        made.check()
        assert made.in_force is not None
        generations.add(made.in_force.generation)
    assert len(generations) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give --policies PATH, or --policies-from-cluster, or both"),
        (("--policies", ".", "--kubeconfig", "x"), "--kubeconfig goes with --policies-from-cluster"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        command("--self-signed", str(tmp_path), *arguments), capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_without_a_cluster_nothing_of_its_client_is_imported() -> None:
    program = "import sys, webhook.cli.serve, webhook.server.gunicorn_app, webhook.cluster.gate; print('kubernetes' in sys.modules, 'urllib3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False False\n"
