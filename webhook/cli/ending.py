"""How commands end: what went wrong in a line, also with the output, and in good order at a signal."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Unwritten(Exception):
    """Standard output or error cannot be written, as on a full disk. Not for a pipe that nobody reads any more."""


class _File(io.FileIO):
    """A standard stream's file, of which a failure is told apart from that of any other."""

    def write(self, data: Buffer, /) -> int | None:  # type: ignore[override]  # None: it would block
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritten(error.strerror) from None


def prepare() -> None:
    """Makes standard output and error fit for what is printed: a name that the terminal's encoding lacks is spelt out.

    Raises Unwritten where there is no standard output.
    """
    if sys.stdout is None:
        raise Unwritten("it is closed")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper:  # not what a test has put there
            stream.flush()
            file = _File(stream.fileno(), "wb", closefd=False)
            binary: Any = file if isinstance(stream.buffer, io.RawIOBase) else io.BufferedWriter(file)
            made = io.TextIOWrapper(
                binary,
                stream.encoding,
                "backslashreplace",
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, made)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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
