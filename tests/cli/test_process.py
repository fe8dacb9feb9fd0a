"""The command line as a process: standard input, broken pipes, and how long it takes to start."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MAIN = "import sys; from webhook.cli import main; sys.exit(main())"
REVIEW = ROOT / "tests" / "reviews" / "kubectl-edit.json"


def run(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=ROOT, check=False, timeout=60)


def test_standard_input_is_linted() -> None:
    done = run("lint", "-", stdin=(ROOT / "policies" / "gitops-owns-labels" / "policy.yaml").read_bytes())
    assert done.returncode == 0, done.stdout
    assert done.stdout == b"1 policy, no problems.\n"


def test_standard_input_that_is_no_policy_is_told_by_name() -> None:
    done = run("lint", "-", stdin=b"\xff\xfe{}")
    assert done.returncode == 1
    assert done.stdout.startswith(b"<stdin>:1:1: error: the file is UTF-16")


def test_standard_input_is_reviewed() -> None:
    done = run("review", "-", "--policies", "policies", stdin=REVIEW.read_bytes())
    assert done.returncode == 0, done.stderr
    assert b'"allowed": true' in done.stdout and b"guard-everything-flux-applies" in done.stdout


def test_output_to_a_file_has_no_colours() -> None:
    done = run("test", "policies/gitops-owns-labels")
    assert done.returncode == 0, done.stdout
    assert b"passed" in done.stdout and b"\x1b[" not in done.stdout


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    command = [sys.executable, "-c", MAIN, "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(60) == 141
    assert told == b""


@pytest.mark.parametrize(
    "how",
    [
        {"PYTHONUNBUFFERED": ""},
        {"PYTHONUNBUFFERED": "1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["buffered", "unbuffered", "ascii"],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("schema",),
        ("lint", "policies"),
        ("test", "policies/gitops-owns-labels"),
        ("review", str(REVIEW), "--policies", "policies"),
        ("report", "-o", "html", "/dev/null"),
        ("suggest", "/dev/null"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_output_that_cannot_be_written_is_told_in_a_line(arguments: tuple[str, ...], how: dict[str, str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | how,
            cwd=ROOT,
            check=False,
            timeout=60,
        )
    told = [line for line in done.stderr.decode().splitlines() if not line.startswith("Note: ")]
    assert told == ["Error: the output cannot be written: No space left on device"]
    assert done.returncode == 2


def test_an_output_that_is_closed_cannot_be_written() -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", MAIN, "lint", "policies"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, b"Error: the output cannot be written: it is closed\n")


def test_errors_that_cannot_be_written_change_no_exit_code_to_another_meaning() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", MAIN, "lint", "no-such"], stderr=full, cwd=ROOT, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("--help",), {"yaml", "pydantic", "rich", "flask", "cryptography", "kubernetes", "webhook.policy"}),
        (("lint", "policies"), {"flask", "gunicorn", "rich", "jsonpatch", "cryptography", "kubernetes"}),
        (("review", str(REVIEW), "--policies", "policies"), {"flask", "gunicorn", "rich", "cryptography"}),
        (("test", "policies", "-o", "json"), {"flask", "gunicorn", "rich", "cryptography", "kubernetes"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_imports_only_what_it_needs(arguments: tuple[str, ...], unwanted: set[str]) -> None:
    code = f"import sys; from webhook.cli import main; main({arguments!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True, timeout=60)
    assert not unwanted & set(done.stderr.decode().split())


def test_help_is_quick() -> None:
    """It takes little more than click itself does: seconds of the processor, which other programs do not lengthen."""
    helping = min(processor_seconds(MAIN, "--help") for _ in range(5))
    least = min(processor_seconds("import click") for _ in range(5))
    assert helping < 2.5 * least


def processor_seconds(code: str, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, cwd=ROOT, check=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
