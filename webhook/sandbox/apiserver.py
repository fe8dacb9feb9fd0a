"""How etcd, kube-apiserver and kube-controller-manager are started for one sandbox."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from webhook.sandbox import certificates, users
from webhook.sandbox.errors import SandboxError
from webhook.sandbox.processes import Processes

AuditLevel = Literal["None", "Metadata", "Request", "RequestResponse"]
_ATTEMPTS = 5  # to find a port that nobody takes between our look and the server's
_PAUSE = 0.05  # seconds between two looks at something that will happen


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose. `deadline`: seconds for the whole start."""

    audit: AuditLevel = "None"
    apiserver_flags: tuple[str, ...] = ()
    deadline: float = 120


@dataclass(frozen=True, slots=True)
class Files:
    """What the servers read, all in the sandbox's folder."""

    ca: Path
    serving: certificates.KeyPair
    service_accounts: certificates.KeyPair
    tokens: Path
    audit_policy: Path
    audit_log: Path


def write_files(folder: Path, everybody: Mapping[str, users.SandboxUser], options: Options) -> Files:
    authority = certificates.Authority.create("fieldwarden sandbox")
    files = Files(
        ca=folder / "ca.crt",
        serving=authority.issue(folder, "apiserver"),
        service_accounts=certificates.write_signing_pair(folder, "service-accounts"),
        tokens=folder / "tokens.csv",
        audit_policy=folder / "audit-policy.json",
        audit_log=folder / "audit.log",
    )
    files.ca.write_bytes(authority.pem)
    files.tokens.touch(mode=0o600)
    files.tokens.write_text(users.token_file(everybody))
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": options.audit}],
    }
    files.audit_policy.write_text(json.dumps(policy))
    return files


def start_etcd(processes: Processes, program: Path) -> None:
    """On sockets in the sandbox's folder: no port, and nobody else can read it."""
    peers = "http://localhost:0"
    argv = [
        str(program),
        "--name=sandbox",
        "--data-dir=etcd",
        "--unsafe-no-fsync",
        "--listen-client-urls=unix://etcd.sock:0",
        "--advertise-client-urls=unix://etcd.sock:0",
        "--listen-peer-urls=unix://peer.sock:0",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=sandbox={peers}",
        "--log-level=warn",
    ]
    processes.start("etcd", argv, env={})


def start_apiserver(processes: Processes, program: Path, files: Files, options: Options, port: int = 0) -> int:
    """Start it on a port, by default a free one; the port. It may end at once, where somebody took it meanwhile."""
    port = port or free_port()
    argv = [str(program), *_apiserver_flags(port, files), *options.apiserver_flags]
    if options.audit != "None":
        argv += [f"--audit-policy-file={files.audit_policy}", f"--audit-log-path={files.audit_log}"]
    processes.start("kube-apiserver", argv, env={})
    return port


def _apiserver_flags(port: int, files: Files) -> list[str]:
    return [
        "--etcd-servers=unix://etcd.sock:0",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={files.ca.parent}",
        f"--tls-cert-file={files.serving.certificate}",
        f"--tls-private-key-file={files.serving.key}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.service_accounts.certificate}",
        f"--service-account-signing-key-file={files.service_accounts.key}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--endpoint-reconciler-type=none",
        "--disable-admission-plugins=ServiceAccount",  # nobody makes service accounts without a controller manager
        "--enable-priority-and-fairness=false",  # a test may write as fast as it can
        "--allow-privileged=true",
        "--profiling=false",
    ]


def start_controller_manager(processes: Processes, program: Path, kubeconfig: Path, files: Files) -> None:
    """With an account for each controller, and no port at all."""
    argv = [
        str(program),
        f"--kubeconfig={kubeconfig}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={files.service_accounts.key}",
        f"--root-ca-file={files.ca}",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    processes.start("kube-controller-manager", argv, env={})


def free_port() -> int:
    """A port on loopback that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def with_port(start: Callable[[], int], ready: Callable[[int], bool], processes: Processes, deadline: float) -> int:
    """Start the API server until it has a port to itself and is ready; the port."""
    for _ in range(_ATTEMPTS):
        port = start()
        try:
            wait_until(partial(ready, port), processes, ("etcd", "kube-apiserver"), deadline)
            return port
        except SandboxError:
            if "address already in use" not in processes.log("kube-apiserver"):
                raise
            processes.stop("kube-apiserver")
            (processes.folder / "kube-apiserver.log").unlink()
    raise SandboxError(f"No free port in {_ATTEMPTS} attempts.")


def wait_until(done: Callable[[], bool], processes: Processes, needed: tuple[str, ...], deadline: float) -> None:
    """Until `done()`; raises SandboxError when a needed program ends, or at `deadline` (time.monotonic)."""
    while not done():
        for name in needed:
            if processes.ended(name):
                raise SandboxError(f"{name} ended by itself; its last words:\n{processes.log(name)}")
        if time.monotonic() > deadline:
            logs = "\n".join(f"{name}: {processes.log(name)}" for name in needed)
            raise SandboxError(f"Waited in vain; what the programs last said:\n{logs}")
        time.sleep(_PAUSE)
