"""HTTPS: routes, workers, TLS, certificates, health, metrics, logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.server.settings import (
    Address,
    FromCluster,
    JournalAt,
    KeyPair,
    Reporting,
    SelfSigned,
    Settings,
    SettingsError,
    Timing,
)

if TYPE_CHECKING:
    from flask import Flask

    from webhook.server.state import ServerState

__all__ = [
    "Address",
    "FromCluster",
    "JournalAt",
    "KeyPair",
    "Reporting",
    "SelfSigned",
    "Settings",
    "SettingsError",
    "Timing",
    "create_app",
    "serve",
]


def serve(settings: Settings) -> int:
    """Run until told to stop; the process's exit code. What it takes is imported here: other commands do without."""
    from webhook.server.gunicorn_app import serve as run

    return run(settings)


def create_app(state: ServerState) -> Flask:
    """The application of one worker, as `serve` makes it."""
    from webhook.server.app import create_app as create

    return create(state)
