"""How commands with a sandbox end: what went wrong in a line, and in good order at a signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click


class _Unreached(click.ClickException):
    exit_code = 3


@contextmanager
def told_plainly() -> Iterator[None]:
    """What went wrong is for the person who asked, without a stack trace."""
    from webhook.sandbox import SandboxError
    from webhook.sandbox.beside import UnusablePolicies

    try:
        yield
    except UnusablePolicies as error:
        click.echo(str(error), err=True)
        raise SystemExit(4) from None
    except SandboxError as error:
        raise _Unreached(str(error)) from None


@contextmanager
def leaving_on(*signals: signal.Signals, status: int | None = None) -> Iterator[None]:
    """A signal ends the block in good order; exit status 128 and the signal's number, as in a shell, or `status`."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number if status is None else status)

    before = {number: signal.signal(number, leave) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
