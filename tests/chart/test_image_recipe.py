"""The Dockerfile makes an image that a pod of the chart can run: no root, no shell, nothing written where it is not memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
FINAL = TEXT[TEXT.rindex("\nFROM ") :]


def _list(instruction: str) -> list[str]:
    """The arguments of an instruction in exec form."""
    (found,) = re.findall(rf"^{instruction} (\[.*\])$", FINAL, re.MULTILINE)
    read: list[str] = json.loads(found)
    return read


def test_what_runs_is_built_elsewhere_and_has_no_shell() -> None:
    assert len(re.findall(r"^FROM ", TEXT, re.MULTILINE)) == 2
    assert re.search(r"^ARG BASE=\S*distroless\S*:nonroot$", TEXT, re.MULTILINE)
    assert FINAL.startswith("\nFROM ${BASE}\n")
    assert "\nRUN " not in FINAL


def test_it_runs_as_nobody_special() -> None:
    assert re.search(r"^USER 65532:65532$", FINAL, re.MULTILINE)


def test_signals_reach_the_server() -> None:
    """A shell between would keep them to itself, and nothing would drain."""
    assert _list("ENTRYPOINT") == ["/app/bin/fieldwarden"]
    assert _list("CMD")[0] == "serve"


def test_it_says_what_it_is() -> None:
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", FINAL))
    assert {"title", "description", "licenses", "version", "revision"} <= labels


def test_the_version_is_the_programs() -> None:
    from webhook import __version__

    assert f"\nARG VERSION={__version__}\n" in FINAL


def test_only_the_program_goes_into_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    copied = {word for line in re.findall(r"^COPY (?!--from)(.*)$", TEXT, re.MULTILINE) for word in line.split()[:-1]}
    assert copied == {line[1:] for line in lines if line.startswith("!")}
