"""What an operator may set, in one frozen value. Nothing here reads files or the environment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from webhook.policy.compiled import Mode
from webhook.report.journal_bounds import Limits

MAX_BODY = 40 * 1024 * 1024
"""Bytes. A write of 3 MiB can make a review of 23 MB; a lower limit would be a way around the policies."""

MAX_PORT = 65535

REPORT_FORMATS = ("openreports", "policyreport")

LOG_LEVELS = ("debug", "info", "warning", "error")


class SettingsError(Exception):
    """The server cannot start as it was told to; `str()` is for the operator."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 lets the system choose.

    >>> Address.parse("0.0.0.0:8443")
    Address(host='0.0.0.0', port=8443)
    >>> str(Address.parse("[::1]:0"))
    '[::1]:0'
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises SettingsError unless the text is HOST:PORT, with an IPv6 host in brackets."""
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not bare or (":" in bare and bare == host):
            raise SettingsError(f"{text!r} is not HOST:PORT (an IPv6 host stands in brackets: [::]:8443)")
        if not (port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
            raise SettingsError(f"{text!r}: the port must be a number from 0 to {MAX_PORT}")
        return cls(bare, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate chain and its key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class SelfSigned:
    """A folder in which an authority and a certificate are made, and the names beyond the usual ones."""

    folder: Path
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FromCluster:
    """Policies that are custom resources, and the labels of namespaces, of one cluster."""

    kubeconfig: Path | None = None  # else KUBECONFIG, the pod's service account, or ~/.kube/config


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds."""

    reload_interval: float = 5.0  # how often files are compared even when no notification came
    drain: float = 5.0  # after SIGTERM: still accepting, telling every client to go elsewhere
    grace: float = 20.0  # after the drain: for the calls that are still under way
    keepalive: int = 150  # an API server keeps an idle connection for 90


@dataclass(frozen=True, slots=True)
class JournalAt:
    """The file of the journal, and what it may hold."""

    path: Path
    limits: Limits


@dataclass(frozen=True, slots=True)
class Reporting:
    """How a cluster is told what was found: by reports of a format, by Events, or by both."""

    format: str | None  # openreports, policyreport
    events: bool = False
    interval: float = 10.0  # seconds between two writes of one report
    owner: str = ""  # the ClusterRole with which reports go away
    kubeconfig: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All of `fieldwarden serve`."""

    policies: tuple[Path, ...]
    certificate: KeyPair | SelfSigned
    cluster: FromCluster | None = None  # without it, and without paths of policies, there is nothing to serve
    client_ca: Path | None = None
    listen: Address = Address("0.0.0.0", 8443)  # noqa: S104 (the API server comes from elsewhere)
    ops_listen: Address = Address("0.0.0.0", 8080)  # noqa: S104
    mode: Mode = Mode.ENFORCE
    strict: bool = False
    workers: int = 2
    threads: int = 8
    log_level: str = "info"
    ports_file: Path | None = None
    timing: Timing = Timing()
    journal: JournalAt | None = None
    reports: Reporting | None = None  # of what is in the journal
    hash_users: Path | None = None  # a file with the key by which names of users are replaced
    worker_class: str = "webhook.server.worker.Worker"
