"""The composition root: settings to a running server."""

from __future__ import annotations

import gc
import json
import os
import signal
import ssl
import time
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from webhook.cluster.access import Unconfigured, find
from webhook.cluster.mirror import MirrorSettings, alive_with
from webhook.cluster.mirror import run as follow_cluster
from webhook.server import authority, reporting
from webhook.server.desk import Desk
from webhook.server.duties import Duties
from webhook.server.files import signature
from webhook.server.forked import Forked
from webhook.server.listening import BACKLOG, complain, listen
from webhook.server.logs import GunicornLog, make_logger
from webhook.server.parts import Rooms, Server
from webhook.server.policies import PolicyKeeper
from webhook.server.settings import Address, FromCluster, KeyPair, SelfSigned, Settings, SettingsError
from webhook.server.shared import Flags, Runtime
from webhook.server.sources import Sources
from webhook.server.tls import CertificateKeeper
from webhook.server.users import Hashed, as_it_is

EXIT_USE = 2
EXIT_POLICIES = 4

WORKER_TIMEOUT = 60
"""Seconds without a sign of life after which a worker is replaced."""

CHECK_INTERVAL = 1.0
"""Seconds between two looks of the first process at the files; it waits for signals, not for notifications."""

RENEWAL_INTERVAL = 3600.0


def serve(settings: Settings, rooms: Rooms | None = None) -> int:
    """Run until told to stop. 0: stopped as told; 2: cannot start so; 4: the policies do not load."""
    rooms = rooms or _real_rooms(settings)
    files = PolicyKeeper(settings.policies, rooms.load, strict=settings.strict) if settings.policies else None
    if files and files.check() != "loaded":
        complain(*files.failure, "the policies do not load: nothing is served")
        return EXIT_POLICIES
    complain(*(files.in_force.warnings if files and files.in_force else ()))
    try:
        _check_cluster(settings)
        _check_journal(settings)
        certificate = CertificateKeeper(_key_pair(settings), settings.client_ca)
        with listen(settings.listen) as listener, listen(settings.ops_listen) as ops, Runtime.create() as runtime:
            log = make_logger(settings.log_level)
            policies = Sources(files, runtime.mirrored if settings.cluster else None, strict=settings.strict)
            shown = Hashed.with_key_in(settings.hash_users) if settings.hash_users else as_it_is
            desk = Desk(settings, log)
            server = Server(settings, rooms, policies, certificate, runtime, Flags(), listener, ops, log, desk, shown)
            _announce(server)
            return _run(server)
    except SettingsError as error:
        complain(str(error))
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
    from webhook.cluster.mirrored import load_files
    from webhook.policy import load

    return Rooms(
        load_files if settings.cluster else load,
        lambda policies: Engine(policies=policies, cap=settings.mode),
    )


def _check_cluster(settings: Settings) -> None:
    """Raises SettingsError where nothing says where the cluster is. Whether it answers is for later."""
    if settings.cluster is None and not settings.policies:
        raise SettingsError("there are no policies to serve: neither files nor a cluster's")
    try:
        for talks in (settings.cluster, settings.reports):
            if talks is not None:
                find(talks.kubeconfig)
    except Unconfigured as error:
        raise SettingsError(str(error)) from None


def _check_journal(settings: Settings) -> None:
    """Raises SettingsError where it could never be written. What else may be wrong with the file passes, or is told."""
    if settings.journal and not settings.journal.path.parent.is_dir():
        raise SettingsError(f"{settings.journal.path}: there is no such folder for the journal")


def _key_pair(settings: Settings) -> KeyPair:
    if isinstance(settings.certificate, SelfSigned):
        names = (settings.listen.host, *settings.certificate.names)
        return authority.ensure(settings.certificate.folder, names)
    return settings.certificate


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
            "pre_fork": self._pre_fork,
            "child_exit": self._child_exit,
            "worker_exit": self._worker_exit,
        }
        for name, value in values.items():
            self.cfg.set(name, value)

    def wsgi(self) -> Any:
        """Called once in each worker, after the fork and before it accepts."""
        from webhook.server.app import create_app

        self.duties = Duties(self.server)
        app = create_app(self.duties.state)
        self.duties.begin()
        return app

    def _context(self, _config: Any, _default: Any) -> ssl.SSLContext:
        return self.server.certificate.context

    def _pre_request(self, _worker: Any, request: Any) -> None:
        if self.server.flags.draining:
            request.force_close()

    def _pre_fork(self, _arbiter: Any, worker: Any) -> None:
        self.server.desk.hire(worker)

    def _child_exit(self, _arbiter: Any, worker: Any) -> None:
        self.server.desk.dismiss(worker)
        self.server.runtime.forget(worker.pid)

    def _worker_exit(self, _arbiter: Any, worker: Any) -> None:
        if worker.pid == os.getpid() and hasattr(self, "duties"):
            self.duties.end()
            self.server.runtime.forget(worker.pid)


def _mirror(server: Server, cluster: FromCluster) -> None:
    settings, runtime = server.settings, server.runtime
    told = MirrorSettings(
        folder=runtime.mirrored.folder,
        scratch=runtime.scratch,
        kubeconfig=cluster.kubeconfig,
        files=settings.policies,
        version=lambda: signature(settings.policies),
        strict=settings.strict,
        report=runtime.report_mirror,
        alive=alive_with(server.flags.owner),
        log=server.log,
    )
    follow_cluster(told)


class _Arbiter(Arbiter):  # type: ignore[misc]
    """The first process: it starts workers and those beside them, follows the files, and drains before it stops.

    It has one thread, so that what it forks never inherits a lock that is held.
    """

    def __init__(self, app: _Application) -> None:
        self._server = server = app.server
        self._beside = [Forked("operations", self._run_ops, server.log)]
        if cluster := server.settings.cluster:
            self._beside.append(Forked("mirror", lambda: self._run_mirror(cluster), server.log))
        self._journal = Forked("journal", self._run_journal, server.log)
        if server.settings.journal:
            self._beside.append(self._journal)
        self._reporter = Forked("reporting", self._run_reporter, server.log)
        if server.settings.reports:
            self._beside.append(self._reporter)
        self._checked = self._renewed = time.monotonic()
        super().__init__(app)

    def manage_workers(self) -> None:
        for process in self._beside:
            process.keep()
        super().manage_workers()
        self._keep_current()

    def _run_ops(self) -> None:
        from webhook.server import ops

        self._leave_port()
        server, settings = self._server, self._server.settings
        followed = ops.Followed(settings.cluster is not None, settings.reports is not None)
        seen = ops.Overview(server.runtime, server.flags, settings.workers, followed, server.desk.inbox)
        ops.run(server.ops_listener, seen)

    def _run_mirror(self, cluster: FromCluster) -> None:
        self._leave_port()
        self._server.ops_listener.close()
        _mirror(self._server, cluster)

    def _run_journal(self) -> None:
        self._leave_port()
        self._server.ops_listener.close()
        self._server.desk.write(alive_with(self._server.flags.owner))

    def _run_reporter(self) -> None:
        self._leave_port()
        self._server.ops_listener.close()
        reporting.run(self._server)

    def _leave_port(self) -> None:
        for listener in self.LISTENERS:
            listener.close()

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
            self._server.desk.close(self._journal.pid)
            self._server.flags.finish()
            self._reporter.wait(reporting.LAST_WORDS)
            self._server.log.info("stopped", exit_code=exit_status)
            for process in self._beside:
                process.kill()
