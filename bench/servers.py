"""The servers that are compared: `python -m bench.servers ours|journal|bare[:WORKER_CLASS:THREADS] FOLDER WORKERS`."""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from flask import Flask, Response, request
from gunicorn.app.base import BaseApplication

from bench.material import shipped
from webhook.admission import Engine
from webhook.policy import Loaded, Mode, PolicySet
from webhook.report.journal_bounds import Limits
from webhook.server.authority import ensure
from webhook.server.gunicorn_app import Rooms, serve
from webhook.server.settings import Address, JournalAt, SelfSigned, Settings, Timing


def ours(folder: Path, workers: int, journal: bool = False) -> int:
    policies = PolicySet(shipped())
    settings = Settings(
        policies=(folder / "policies",),
        certificate=SelfSigned(folder / "tls"),
        listen=Address("127.0.0.1", 0),
        ops_listen=Address("127.0.0.1", 0),
        workers=workers,
        ports_file=folder / "ports.json",
        timing=replace(Timing(), drain=0.0, grace=1.0),
        journal=JournalAt(folder / "journal.db", Limits()) if journal else None,
    )
    (folder / "policies").mkdir()
    rooms = Rooms(lambda _paths, **_: Loaded(policies, ()), lambda found: Engine(found, Mode.ENFORCE))
    return serve(settings, rooms)


class Bare(BaseApplication):  # type: ignore[misc]
    """A Flask view that parses a review and answers it, with the settings of the real server."""

    def __init__(self, folder: Path, workers: int, model: str = "gthread", threads: int = 8) -> None:
        self.workers, self.model, self.threads = workers, model, threads
        self.pair = ensure(folder / "tls", ("127.0.0.1",))
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        ports = {"listen": "{}:{}".format(*self.listener.getsockname())}
        (folder / "ports.json").write_text(json.dumps(ports))
        super().__init__()

    def load_config(self) -> None:
        values = {
            "bind": f"fd://{self.listener.detach()}",
            "workers": self.workers,
            "worker_class": self.model,
            "threads": self.threads,
            "keepalive": 150,
            "certfile": str(self.pair.certificate),
            "keyfile": str(self.pair.key),
            "control_socket_disable": True,
        }
        for name, value in values.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        app = Flask("bare")

        @app.post("/validate")
        def validate() -> Response:
            review = orjson.loads(request.get_data())
            response = {"uid": review["request"]["uid"], "allowed": True}
            body = orjson.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
            return Response(body, content_type="application/json")

        return app


def main() -> int:
    which, folder, workers = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if which in ("ours", "journal"):
        return ours(folder, workers, which == "journal")
    _, model, threads = (which + ":gthread:8").split(":")[:3]
    Bare(folder, workers, model, int(threads)).run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
