"""`fieldwarden demo` where no API server is at hand, and what `sandbox story` says of its stories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.cli.test_process import MAIN, ROOT, run


def test_the_demo_needs_no_api_server_and_says_how_to_get_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAIN, "demo"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "KUBEBUILDER_ASSETS": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    table, _, after = done.stdout.partition("The policies ship in Audit")
    assert "The ghost label, step 2" in table
    assert "fieldwarden sandbox prepare" in after
    assert "fieldwarden sandbox story ghost-label" in after
    assert list(tmp_path.iterdir()) == []


def test_stories_are_listed() -> None:
    named = run("sandbox", "story", "--list")
    assert named.returncode == 0
    assert named.stdout.startswith(b"ghost-label\n    Git drops a label")
    assert run("sandbox", "story").stdout == named.stdout
    assert [one["name"] for one in json.loads(run("sandbox", "story", "-o", "json").stdout)] == ["ghost-label"]


def test_a_story_that_nobody_knows_is_wrong_use() -> None:
    done = run("sandbox", "story", "goat-label")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"There is no story goat-label; there are: ghost-label." in done.stderr
