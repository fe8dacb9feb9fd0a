"""What a worker does besides answering."""

from __future__ import annotations

import os

from webhook.cluster.gate import Gate
from webhook.cluster.settling import Together
from webhook.server.files import Outcome
from webhook.server.lastgood import LastGood
from webhook.server.metrics import Metrics
from webhook.server.parts import Server
from webhook.server.recording import Recorder
from webhook.server.shared import WorkerStatus
from webhook.server.state import EngineLike, NotRead, ServerState
from webhook.server.users import WithoutUsers, as_it_is
from webhook.server.watch import Watcher


class Duties:
    """Keep policies and certificate current, and say what it judges by."""

    def __init__(self, server: Server) -> None:
        server.ops_listener.close()
        self._server = server
        self._good = LastGood(server.runtime.good)
        self._metrics = Metrics.shared(server.runtime.metrics)
        sender = server.desk.sender()
        recorder = Recorder(sender, server.shown) if sender else None
        self.state = ServerState(
            self._engine(), _gate(server), self._metrics, server.log, recorder=recorder, shown=server.shown
        )
        self._watcher = Watcher(
            self.check,
            server.policies.folders,
            interval=server.settings.timing.reload_interval,
            flags=server.flags,
            log=server.log,
        )

    def begin(self) -> None:
        """The policies may have changed since the first process read them: look before anything is answered."""
        self._check_policies(False)
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

    def _catch_up(self) -> bool:
        """While the files do not load, judge by the newest set that did in any worker, as the others do."""
        files, log = self._server.policies.files, self._server.log
        if not (files and files.failure and files.in_force):
            return False
        newest, mine = self._good.newest(), files.in_force
        if newest is None or newest.generation == mine.generation or newest.kept_at < mine.loaded_at:
            return False
        taken = self._server.policies.adopt(self._good.paths(newest.generation, files.paths))
        if taken:
            self.state.engine = self._engine()
            log.info("policies loaded as they were last good", pid=os.getpid(), generation=newest.generation)
        return taken

    def _check_policies(self, force: bool) -> Outcome:
        sources, log, pid = self._server.policies, self._server.log, os.getpid()
        before = sources.in_force
        outcome = sources.check(force=force)
        loaded = sources.in_force
        if loaded is not None and loaded is not before:
            self.state.engine = self._engine()
            count = len(loaded.policies.policies)
            log.info("policies loaded", pid=pid, policies=count, generation=loaded.generation)
            self._keep_copy()
        if outcome == "failed":
            self._metrics.policies_failed()
            log.error("policies do not load, older ones stay in force", pid=pid, problems=sources.failure[:20])
        return "loaded" if self._catch_up() else outcome

    def _keep_copy(self) -> None:
        files, log = self._server.policies.files, self._server.log
        try:
            if files and files.in_force and not files.failure:
                self._good.keep(files.in_force.generation, files.paths)
        except OSError as error:
            log.warning("no copy of the policies could be kept", pid=os.getpid(), error=type(error).__name__)

    def _check_certificate(self) -> Outcome:
        keeper, log = self._server.certificate, self._server.log
        outcome = keeper.check()
        if outcome == "loaded":
            log.info("certificate loaded", pid=os.getpid(), expires=round(keeper.expires))
        elif outcome == "failed":
            self._metrics.certificate_failed()
            log.error("the certificate does not load, the older one stays", pid=os.getpid(), problem=keeper.failure)
        return outcome

    def _engine(self) -> EngineLike:
        in_force = self._server.policies.in_force
        if not in_force:
            return NotRead()
        engine = self._server.rooms.make_engine(in_force.policies)
        return engine if self._server.shown is as_it_is else WithoutUsers(engine, self._server.shown)

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


def _gate(server: Server) -> Gate:
    settings, runtime = server.settings, server.runtime
    together = Together(settings.policies, runtime.scratch, settings.strict)
    return Gate(together, runtime.mirrored if settings.cluster else None)
