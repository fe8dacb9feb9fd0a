"""`fieldwarden demo`: the real server, real clients' writes, and what it says to each."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from webhook.cli.common import colored
from webhook.report.replay import Outcome, Replayed, print_replay

START_SECONDS = 30.0
_SERVE = "from webhook.cli.serve import serve; serve(prog_name='fieldwarden serve')"
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class _DemoFailed(click.ClickException):
    exit_code = 1


@click.command()
@click.option(
    "--policies", type=FOLDER, default=Path("policies"), show_default=True, help="Policies, taken in Enforce."
)
@click.option(
    "--reviews",
    type=FOLDER,
    default=Path("tests/reviews"),
    show_default=True,
    help="Captured AdmissionReviews, with an index.json that says what each client did.",
)
@click.option("--no-color", is_flag=True, help="Print without colours.")
def demo(policies: Path, reviews: Path, no_color: bool) -> None:
    """Start the server over TLS with the policies in Enforce, and replay what real clients wrote.

    The reviews were captured from a real kube-apiserver. They are sent to the server as the API server sends them, and
    a table shows what each client did, the answer, and why. Then a story is told on a real kube-apiserver, where its
    programs are there already. Nothing is left running.
    """
    cases = _cases(reviews)
    with tempfile.TemporaryDirectory(prefix="fieldwarden-demo-") as name:
        folder = Path(name)
        _enforced(policies, folder / "policies")
        with _server(folder) as call:
            click.echo(
                f"fieldwarden serves at https://{call.host}:{call.port}; sending {len(cases)} captured writes.\n"
            )
            rows = [call.replay(what, body) for what, body in cases]
    print_replay(rows, color=not no_color)
    _counted(rows)
    told = _told_story(color=colored(no_color))
    _closing_words(told=told)
    if any(row.outcome == "error" for row in rows):
        raise _DemoFailed("a review was not answered")


def _counted(rows: list[Replayed]) -> None:
    outcomes = ("denied", "rewritten", "recorded", "allowed")
    counts = {outcome: sum(row.outcome == outcome for row in rows) for outcome in outcomes}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    click.echo(f"{told}. The policies ship in Audit, where all of it is recorded, and nothing denied or rewritten.\n")


def _told_story(*, color: bool) -> bool:
    """Tells the ghost label on a real API server where that needs no building; whether it did."""
    from webhook.cli.story import tell
    from webhook.sandbox.binaries import missing
    from webhook.sandbox.stories import STORIES

    if missing():
        return False
    click.echo("And now a story on a real API server: the ghost label.\n")
    if differs := tell(STORIES["ghost-label"], None, "Enforce", color=color):
        raise _DemoFailed(str(differs))
    return True


def _closing_words(*, told: bool) -> None:
    from webhook.cli.story import typed

    click.echo("Next:")
    stories = (
        ("sandbox prepare", "builds a real kube-apiserver: once, about eight minutes; then"),
        ("sandbox story ghost-label", "a label that Git drops and that stays, without fieldwarden and with it"),
    )
    command = typed()
    for what, why in (
        *(() if told else stories),
        (
            "review tests/reviews/ghost-2-flux-drops-label.json --policies policies -o table",
            "one of these writes, closer",
        ),
        ("test policies", "the shipped policies' suites of cases, offline"),
        ("lint policies", "what is wrong in a policy, with its place"),
        ("sandbox run --policies policies -- bash", "a real API server to try kubectl on"),
    ):
        click.echo(f"  {command} {what}\n      {why}")


def _cases(reviews: Path) -> list[tuple[str, bytes]]:
    index = reviews / "index.json"
    try:
        entries = json.loads(index.read_text())
        return [
            (
                entry["what"] + (f" ({number} of {len(entry['files'])})" if len(entry["files"]) > 1 else ""),
                (reviews / file).read_bytes(),
            )
            for entry in entries
            for number, file in enumerate(entry["files"], 1)
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _DemoFailed(f"{index} does not list captured reviews: {error}") from None


def _enforced(policies: Path, target: Path) -> None:
    """A copy of the policies in which every Audit is an Enforce: the demo shows what they do when switched on."""
    shutil.copytree(policies, target)
    for path in target.rglob("*.y*ml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(r"^(\s+mode:\s*)(Audit|Warn)\b", r"\1Enforce", text, flags=re.MULTILINE), encoding="utf-8"
        )


@dataclass(frozen=True, slots=True)
class _Caller:
    """Calls the server as an API server does: over TLS, on one kept connection."""

    host: str
    port: int
    connection: http.client.HTTPSConnection

    def replay(self, what: str, body: bytes) -> Replayed:
        """The mutating call where the API server makes one, and the validating call unless that has said enough."""
        for phase in _phases(json.loads(body)["request"]):
            self.connection.request("POST", f"/{phase}?timeout=10s", body, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                return Replayed(what, "error", f"HTTP {answer.status}: {text.decode(errors='replace')[:200]}")
            outcome, why = _told(json.loads(text)["response"])
            if outcome in ("denied", "rewritten"):
                break
        return Replayed(what, outcome, why)


def _phases(request: dict[str, Any]) -> tuple[str, ...]:
    """A Scale was captured in either call, and shows its claims in the mutating one alone; other subresources are not rewritten."""
    if request.get("subResource") == "scale":
        metadata = (request.get("object") or {}).get("metadata") or {}
        return ("mutate",) if metadata.get("managedFields") else ("validate",)
    return ("validate",) if request.get("subResource") else ("mutate", "validate")


def _told(response: dict[str, Any]) -> tuple[Outcome, str]:
    if not response["allowed"]:
        return "denied", _first(response["status"]["message"].splitlines())
    if "patch" in response:
        return "rewritten", _first(response.get("warnings", []))
    if events := response.get("auditAnnotations", {}).get("events"):
        return "recorded", (response.get("warnings") or [events])[0]
    return "allowed", ""


def _first(lines: list[str]) -> str:
    return lines[0] + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "") if lines else ""


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[_Caller]:
    ports, tls, log = folder / "ports.json", folder / "tls", folder / "log"
    command = [
        sys.executable,
        "-c",
        _SERVE,
        "--policies",
        str(folder / "policies"),
        "--mode",
        "Enforce",
    ]
    command += ["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]
    command += ["--self-signed", str(tls), "--ports-file", str(ports), "--drain", "0"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FIELDWARDEN_")}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environ)  # noqa: S603 (ourselves)
    try:
        host, _, port = _wait(process, ports, log).rpartition(":")
        context = ssl.create_default_context(cafile=str(tls / "ca.crt"))
        connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=30)
        with contextlib.closing(connection):
            yield _Caller(host, int(port), connection)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], ports: Path, log: Path) -> str:
    """Where the server listens, once it does."""
    end = time.monotonic() + START_SECONDS
    while not ports.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise _DemoFailed(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
    listen: str = json.loads(ports.read_text())["listen"]
    return listen
