"""What one server is made of, before the first fork."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any

from webhook.server.desk import Desk
from webhook.server.settings import Settings
from webhook.server.shared import Flags, Runtime
from webhook.server.sources import Sources
from webhook.server.state import Load, MakeEngine
from webhook.server.tls import CertificateKeeper
from webhook.server.users import Shown


@dataclass(frozen=True, slots=True)
class Rooms:
    """What the server takes from the rooms before it."""

    load: Load
    make_engine: MakeEngine


@dataclass(slots=True)
class Server:
    """Everything that exists before the first fork; each worker goes on with its own copy."""

    settings: Settings
    rooms: Rooms
    policies: Sources
    certificate: CertificateKeeper
    runtime: Runtime
    flags: Flags
    listener: socket.socket
    ops_listener: socket.socket
    log: Any
    desk: Desk
    shown: Shown  # names of users, as they are written down
