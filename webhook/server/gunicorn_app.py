"""The composition root: settings to a running server."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from webhook.server import authority
from webhook.server.files import Outcome
from webhook.server.lastgood import LastGood
from webhook.server.logs import GunicornLog, make_logger
from webhook.server.metrics import Metrics
from webhook.server.policies import PolicyKeeper
from webhook.server.settings import Address, KeyPair, SelfSigned, Settings, SettingsError
from webhook.server.shared import Flags, Runtime, WorkerStatus
from webhook.server.state import Load, MakeEngine, ServerState
from webhook.server.tls import CertificateKeeper
from webhook.server.watch import Watcher

EXIT_USE = 2
EXIT_POLICIES = 4

BACKLOG = 2048
WORKER_TIMEOUT = 60
"""Seconds without a sign of life after which a worker is replaced."""

CHECK_INTERVAL = 1.0
"""Seconds between two looks of the first process at the files; it waits for signals, not for notifications."""

RENEWAL_INTERVAL = 3600.0


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
    policies: PolicyKeeper
    certificate: CertificateKeeper
    runtime: Runtime
    flags: Flags
    listener: socket.socket
    ops_listener: socket.socket
    log: Any


def serve(settings: Settings, rooms: Rooms | None = None) -> int:
    """Run until told to stop. 0: stopped as told; 2: cannot start so; 4: the policies do not load."""
    rooms = rooms or _real_rooms(settings)
    policies = PolicyKeeper(settings.policies, rooms.load, strict=settings.strict)
    if policies.check() != "loaded" or policies.in_force is None:
        _complain(*policies.failure, "the policies do not load: nothing is served")
        return EXIT_POLICIES
    _complain(*policies.in_force.warnings)
    try:
        certificate = CertificateKeeper(_key_pair(settings), settings.client_ca)
        with _listen(settings.listen) as listener, _listen(settings.ops_listen) as ops, Runtime.create() as runtime:
            log = make_logger(settings.log_level)
            server = Server(settings, rooms, policies, certificate, runtime, Flags(), listener, ops, log)
            _announce(server)
            return _run(server)
    except SettingsError as error:
        _complain(str(error))
        return EXIT_USE


def _run(server: Server) -> int:
    gc.collect()
    gc.freeze()  # what is loaded by now is shared with the workers and never looked at again
    try:
        _Arbiter(_Application(server)).run()
    except SystemExit as stopped:
        if os.getpid() == server.flags.owner:
            return stopped.code if isinstance(stopped.code, int) else 1
        raise  # a worker's own end
    return 0


def _real_rooms(settings: Settings) -> Rooms:
    from webhook.admission import Engine
    from webhook.policy import load

    return Rooms(load, lambda policies: Engine(policies=policies, cap=settings.mode))


def _key_pair(settings: Settings) -> KeyPair:
    if isinstance(settings.certificate, SelfSigned):
        names = (settings.listen.host, *settings.certificate.names)
        return authority.ensure(settings.certificate.folder, names)
    return settings.certificate


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingsError(f"cannot listen on {address}: {error.strerror or error}") from None


def _announce(server: Server) -> None:
    """Where it really listens: port 0 lets the system choose."""
    ports = {
        "listen": str(Address(*server.listener.getsockname()[:2])),
        "ops": str(Address(*server.ops_listener.getsockname()[:2])),
    }
    if file := server.settings.ports_file:
        try:
            draft = file.with_name(f".{file.name}.{os.getpid()}")
            draft.write_text(json.dumps(ports), encoding="utf-8")
            draft.replace(file)
        except OSError as error:
            raise SettingsError(f"{file}: {error.strerror or type(error).__name__}") from None
    count = len(server.policies.in_force.policies.policies) if server.policies.in_force else 0
    server.log.info("serving", **ports, workers=server.settings.workers, policies=count, mode=str(server.settings.mode))


def _complain(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201
    sys.stderr.flush()


class _Application(BaseApplication):  # type: ignore[misc]
    """gunicorn's view of the settings, and the application that each worker makes after the fork."""

    def __init__(self, server: Server) -> None:
        self.server = server
        super().__init__()

    def load_config(self) -> None:
        settings, certificate = self.server.settings, self.server.certificate
        values: dict[str, Any] = {
            "bind": f"fd://{self.server.listener.detach()}",
            "workers": settings.workers,
            "worker_class": settings.worker_class,
            "threads": settings.threads,
            "keepalive": settings.timing.keepalive,
            "graceful_timeout": max(1, round(settings.timing.grace)),
            "timeout": WORKER_TIMEOUT,
            "backlog": BACKLOG,
            "worker_tmp_dir": str(self.server.runtime.folder),
            "control_socket_disable": True,
            "logger_class": GunicornLog,
            "loglevel": settings.log_level,
            "proc_name": "fieldwarden",
            "certfile": str(certificate.pair.certificate),  # only says that there is TLS: the context is made below
            "keyfile": str(certificate.pair.key),
            "ssl_context": self._context,
            "pre_request": self._pre_request,
            "child_exit": self._child_exit,
            "worker_exit": self._worker_exit,
        }
        for name, value in values.items():
            self.cfg.set(name, value)

    def wsgi(self) -> Any:
        """Called once in each worker, after the fork and before it accepts."""
        from webhook.server.app import create_app

        self.duties = _Duties(self.server)
        app = create_app(self.duties.state)
        self.duties.begin()
        return app

    def _context(self, _config: Any, _default: Any) -> ssl.SSLContext:
        return self.server.certificate.context

    def _pre_request(self, _worker: Any, request: Any) -> None:
        if self.server.flags.draining:
            request.force_close()

    def _child_exit(self, _arbiter: Any, worker: Any) -> None:
        self.server.runtime.forget(worker.pid)

    def _worker_exit(self, _arbiter: Any, worker: Any) -> None:
        if worker.pid == os.getpid() and hasattr(self, "duties"):
            self.duties.end()
            self.server.runtime.forget(worker.pid)


class _Duties:
    """What a worker does besides answering: keep policies and certificate current, and say what it judges by."""

    def __init__(self, server: Server) -> None:
        server.ops_listener.close()
        self._server = server
        self._good = LastGood(server.runtime.good)
        self._metrics = Metrics.shared(server.runtime.metrics)
        self.state = ServerState(self._engine(), self._metrics, server.log)
        self._watcher = Watcher(
            self.check,
            [path for path in server.policies.paths if path.is_dir()],
            interval=server.settings.timing.reload_interval,
            flags=server.flags,
            log=server.log,
        )

    def begin(self) -> None:
        """The policies may have changed since the first process read them: look before anything is answered."""
        self._check_policies(False)
        self._catch_up()
        self._check_certificate()
        self._report()
        self._watcher.start()

    def end(self) -> None:
        self._watcher.stop()

    def check(self, force: bool) -> None:
        """Take what has changed into use; keep what is in use where the new does not load."""
        outcomes = self._check_policies(force), self._check_certificate()
        if outcomes != ("same", "same"):
            self._report()

    def _catch_up(self) -> None:
        """While the files do not load, judge by the newest set that did in any worker, as the others do."""
        keeper, log = self._server.policies, self._server.log
        newest = self._good.newest()
        if not keeper.failure or keeper.in_force is None or newest in (None, keeper.in_force.generation):
            return
        if keeper.adopt(self._good.paths(newest, keeper.paths)):
            self.state.engine = self._engine()
            log.info("policies loaded as they were last good", pid=os.getpid(), generation=newest)

    def _check_policies(self, force: bool) -> Outcome:
        keeper, log, pid = self._server.policies, self._server.log, os.getpid()
        outcome = keeper.check(force=force)
        if outcome == "loaded" and keeper.in_force is not None:
            self.state.engine = self._engine()
            loaded = keeper.in_force
            count = len(loaded.policies.policies)
            log.info("policies loaded", pid=pid, policies=count, generation=loaded.generation)
            try:
                self._good.keep(loaded.generation, keeper.paths)
            except OSError as error:
                log.warning("no copy of the policies could be kept", pid=pid, error=type(error).__name__)
        elif outcome == "failed":
            self._metrics.policies_failed()
            log.error("policies do not load, older ones stay in force", pid=pid, problems=keeper.failure[:20])
        return outcome

    def _check_certificate(self) -> Outcome:
        keeper, log = self._server.certificate, self._server.log
        outcome = keeper.check()
        if outcome == "loaded":
            log.info("certificate loaded", pid=os.getpid(), expires=round(keeper.expires))
        elif outcome == "failed":
            self._metrics.certificate_failed()
            log.error("the certificate does not load, the older one stays", pid=os.getpid(), problem=keeper.failure)
        return outcome

    def _engine(self) -> Any:
        in_force = self._server.policies.in_force
        if in_force is None:  # the first process does not fork without
            raise SettingsError("no policies")
        return self._server.rooms.make_engine(in_force.policies)

    def _report(self) -> None:
        policies, certificate = self._server.policies, self._server.certificate
        in_force = policies.in_force
        if in_force is None:
            return
        status = WorkerStatus(
            pid=os.getpid(),
            generation=in_force.generation,
            policies=len(in_force.policies.policies),
            loaded_at=in_force.loaded_at,
            policy_warnings=in_force.warnings,
            policy_failure=policies.failure,
            certificate_expires=certificate.expires,
            certificate_failure=certificate.failure,
        )
        self._server.runtime.report(status)


class _Arbiter(Arbiter):  # type: ignore[misc]
    """The first process: it starts workers and the operations process, follows the files, and drains before it stops.

    It has one thread, so that what it forks never inherits a lock that is held.
    """

    def __init__(self, app: _Application) -> None:
        self._server = app.server
        self._ops_pid = 0
        self._checked = self._renewed = time.monotonic()
        super().__init__(app)

    def manage_workers(self) -> None:
        super().manage_workers()
        self._keep_ops()
        self._keep_current()

    def _keep_ops(self) -> None:
        if self._ops_pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._ops_pid, 0)
                return
            self._server.log.warning("the operations process has ended and is started again")
        pid = os.fork()
        if pid == 0:
            from webhook.server import ops

            for listener in self.LISTENERS:
                listener.close()
            server = self._server
            ops.run(server.ops_listener, server.runtime, server.flags, server.settings.workers)
        self._ops_pid = pid

    def _keep_current(self) -> None:
        """A worker that is started later begins with the newest good policies and certificate."""
        now, server = time.monotonic(), self._server
        if now - self._checked >= CHECK_INTERVAL:
            self._checked = now
            server.policies.check()
            server.certificate.check()
        if isinstance(server.settings.certificate, SelfSigned) and now - self._renewed >= RENEWAL_INTERVAL:
            self._renewed = now
            try:
                _key_pair(server.settings)  # the files change, and every worker sees it
            except SettingsError as error:
                server.log.error("the certificate cannot be renewed", problem=str(error))

    def handle_hup(self) -> None:
        """Reload policies; workers and connections stay."""
        self._server.flags.ask_reload()

    def handle_usr2(self) -> None:
        """gunicorn would start a second server from the command line."""

    def handle_term(self) -> None:
        """Stay in service while those who send calls learn that this server goes; then stop."""
        server = self._server
        server.flags.drain()
        server.log.info("draining", seconds=server.settings.timing.drain)
        end = time.monotonic() + server.settings.timing.drain
        while (left := end - time.monotonic()) > 0:
            received = self.wait_for_signals(timeout=min(left, 0.5))
            if any(number in received for number in (signal.SIGINT, signal.SIGQUIT)):
                break
            self.reap_workers()
            self.murder_workers()
            self.manage_workers()
        raise StopIteration

    def halt(self, reason: str | None = None, exit_status: int = 0) -> None:
        try:
            super().halt(reason, exit_status)
        finally:
            self._server.log.info("stopped", exit_code=exit_status)
            if self._ops_pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._ops_pid, signal.SIGKILL)
