"""Stories: told as they are when all goes as they say, and never when it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.sandbox import Sandbox, binaries
from webhook.sandbox.beside import COMMAND
from webhook.sandbox.stories import STORIES, NotAsTold, Part, Step, Told, ghost_label

pytestmark = pytest.mark.server

PATH = ".metadata.labels.team"
FLUX, BY_HAND = "kustomize-controller (Apply)", "kubectl-label (Update)"


def story(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "sandbox", "story", *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_the_ghost_label_is_told_without_fieldwarden_and_with_it(tmp_path: Path) -> None:
    done = story("ghost-label", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    without, beside = done.stdout.split("With fieldwarden\n")
    assert without.startswith("Without fieldwarden\n")
    assert "Warning" not in without
    assert "nothing says why" in without
    for said in ("onShare: Release", "onGhost: Prune", "The label goes, as Git says.", "in the dry run", "Next:"):
        assert said in beside
    told = [line.strip() for line in beside.splitlines() if "Warning:" in line]
    assert [line.split("] ")[0] for line in told] == ["Warning: [git-owns-labels/labels"] * 3
    released, tried, pruned = (line.split("] ")[1] for line in told)
    assert released.startswith(f"released {PATH} from {BY_HAND}")
    assert tried == pruned
    assert pruned.startswith(f"pruned {PATH}: dropped by {FLUX}, kept alive by {BY_HAND}")
    assert not [line for line in told if "payments" in line]  # values stay where they are
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_goes_otherwise_is_named_and_ends_it_with_1() -> None:
    done = story("ghost-label", "--mode=Audit", "--output=json")
    assert done.returncode == 1, done.stdout
    assert "Step 8 (Git gets the label too, and Flux applies) is not as the story tells it" in done.stderr
    assert f"{PATH} should be claimed by {FLUX} and is claimed by {FLUX} and {BY_HAND}" in done.stderr
    told = json.loads(done.stdout)
    assert (told["story"], told["as_told"]) == ("ghost-label", False)
    steps = [step for part in told["parts"] for step in part["steps"]]
    assert [step["number"] for step in steps] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [bool(step["differs"]) for step in steps] == [False] * 7 + [True]
    assert steps[3]["label"] == {"in_git": False, "in_cluster": True, "owners": [BY_HAND]}


def test_fieldwarden_that_nobody_asks_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ghost_label, "serve_beside", lambda *_: "")
    told: list[Told] = []
    one = STORIES["ghost-label"]
    with Sandbox.start() as sandbox, pytest.raises(NotAsTold, match=r"^Step 8 .* and is not\.$"):
        told.extend(one.tell(sandbox, one.policies, "Enforce"))
    assert [one.title for one in told if isinstance(one, Part)] == ["Without fieldwarden", "With fieldwarden"]
    *_, last = told
    assert isinstance(last, Step)
    assert last.differs and not last.moral


def test_own_policies_that_do_not_load_end_it_with_4(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("kind: FieldPolicy\n")
    done = story("ghost-label", f"--policies={tmp_path}")
    assert done.returncode == 4
    assert "policy.yaml:1:" in done.stderr


def test_a_server_that_does_not_start_ends_it_with_3(tmp_path: Path) -> None:
    for name in binaries():
        (tmp_path / name).write_text(f"#!{sys.executable}\nraise SystemExit('broken on purpose')\n")
        (tmp_path / name).chmod(0o755)
    done = story("ghost-label", KUBEBUILDER_ASSETS=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "broken on purpose" in done.stderr
