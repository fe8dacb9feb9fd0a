"""`fieldwarden sandbox`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from webhook.cli.ending import leaving_on, told_plainly
from webhook.cli.story import story
from webhook.policy.compiled import Mode

# webhook.sandbox is imported where it is used, so that other commands do not wait for it.

F = TypeVar("F", bound=Callable[..., Any])
_LOOK = 1.0  # seconds between two looks at the servers


def _policy_options(command: F) -> F:
    folder = click.Path(exists=True, path_type=Path)
    modes = click.Choice([str(mode) for mode in Mode])
    mode = click.option("--mode", type=modes, default="Enforce", show_default=True, help="The most a policy may do.")
    policies = click.option(
        "--policies", type=folder, help="Also run fieldwarden with these policies, and register it."
    )
    file = click.Path(dir_okay=False, path_type=Path)
    journal = click.option(
        "--journal", type=file, help="Keep what policies find in this file, for `fieldwarden report`."
    )
    return policies(mode(journal(command)))


@click.group()
def sandbox() -> None:
    """A real API server on loopback, to try policies on.

    Its programs come from KUBEBUILDER_ASSETS, else they are built once and kept in the user's cache.
    """


sandbox.add_command(story)


@sandbox.command()
@_policy_options
@click.option("--detach", is_flag=True, help="Return when it is ready, and leave it up until `down`.")
def up(policies: Path | None, mode: str, journal: Path | None, detach: bool) -> None:
    """Start a sandbox and print the KUBECONFIG to play with; without --detach, until Ctrl-C."""
    _check_journal(policies, journal)
    with told_plainly():
        if detach:
            _detach(policies, mode, journal)
        else:
            _stay_up(policies, mode, journal)


@sandbox.command()
def prepare() -> None:
    """Build all of its programs now, so that nothing waits for them later.

    About eight minutes on two cores the first time, and nothing after that.
    """
    with told_plainly():
        from webhook.sandbox.binaries import TARGETS, binaries

        for name, program in binaries(TARGETS.keys()).items():
            click.echo(f"{name:24} {program}")


@sandbox.command()
def down() -> None:
    """End the sandbox that is up."""
    from webhook.sandbox import standing

    with told_plainly():
        click.echo("The sandbox is down." if standing.end() else "No sandbox is up.", err=True)


@sandbox.command()
def status() -> None:
    """Say whether a sandbox is up, and print its KUBECONFIG; exit code 1 when none is."""
    from webhook.sandbox import standing

    found = standing.current()
    if found is None:
        click.echo("No sandbox is up.", err=True)
        raise SystemExit(1)
    beside = f", with fieldwarden at {found.webhook}" if found.webhook else ""
    click.echo(f"A sandbox is up at {found.url}{beside}.", err=True)
    click.echo(found.exports(), nl=False)


@sandbox.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_policy_options
@click.option("--user", default="admin", show_default=True, help="Whose KUBECONFIG: developer, flux, helm, ...")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(policies: Path | None, mode: str, journal: Path | None, user: str, command: tuple[str, ...]) -> None:
    """Run COMMAND with a sandbox of its own, and end as it ends."""
    _check_journal(policies, journal)
    from webhook.sandbox import Sandbox
    from webhook.sandbox.beside import serve_beside

    with told_plainly(), leaving_on(signal.SIGTERM, signal.SIGHUP), Sandbox.start() as running:
        environment = running.environment(user)
        if policies:
            serve_beside(running, policies, mode, journal)
        try:
            done = subprocess.run(command, env=environment, check=False)  # noqa: S603 - what the user asked for
        except OSError as error:
            raise click.UsageError(f"{command[0]}: {error.strerror}") from None
    raise SystemExit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _check_journal(policies: Path | None, journal: Path | None) -> None:
    if journal is None:
        return
    if policies is None:
        raise click.UsageError("--journal keeps what policies find: name them with --policies")
    if not journal.resolve().parent.is_dir():
        raise click.UsageError(f"{journal}: there is no such folder for the journal")


def _detach(policies: Path | None, mode: str, journal: Path | None) -> None:
    from webhook.sandbox import SandboxError, cache_dir, standing
    from webhook.sandbox.beside import COMMAND

    if standing.current():
        raise SandboxError(standing.UP_ALREADY)
    argv = [*COMMAND, "sandbox", "up", f"--mode={mode}"]
    argv += [f"--policies={policies.resolve()}"] if policies else []
    argv += [f"--journal={journal.resolve()}"] if journal else []
    click.echo(standing.detach(argv, cache_dir() / "sandbox.log").exports(), nl=False)


def _stay_up(policies: Path | None, mode: str, journal: Path | None) -> None:
    from webhook.sandbox import Sandbox, SandboxError, standing
    from webhook.sandbox.beside import serve_beside

    signals = signal.SIGINT, signal.SIGTERM, signal.SIGHUP  # each is how it is meant to end
    with leaving_on(*signals, status=0), standing.held() as note, Sandbox.start() as running:
        url = serve_beside(running, policies, mode, journal) if policies else ""
        programs = os.pathsep.join(str(folder) for folder in running.program_folders)
        kubeconfig = str(running.kubeconfig())
        now = standing.Standing(os.getpid(), running.url, str(running.folder), kubeconfig, programs, url)
        note.write(now)
        click.echo(now.exports(), nl=False)
        others = ", ".join(user for user in running.users if user != "admin")
        click.echo(f"# of other users ({others}): {running.folder}/kubeconfig/USER.yaml")
        needed = ["etcd", "kube-apiserver", *(["fieldwarden"] if policies else [])]
        while True:
            time.sleep(_LOOK)
            for name in needed:
                if running.processes.ended(name):
                    raise SandboxError(f"{name} ended by itself; its last words:\n{running.processes.log(name)}")
