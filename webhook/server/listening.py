"""What both of the programs that serve do when they start."""

from __future__ import annotations

import socket
import sys

from webhook.server.settings import Address, SettingsError

BACKLOG = 2048


def listen(address: Address) -> socket.socket:
    """Raises SettingsError."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingsError(f"cannot listen on {address}: {error.strerror or error}") from None


def complain(*lines: str) -> None:
    """To whoever started it."""
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201
    sys.stderr.flush()
