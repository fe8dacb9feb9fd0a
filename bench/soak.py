"""The soak: `python bench/soak.py [SECONDS]`. A real server under steady load, a worker killed every now and then; at the
end every event that was answered must have been counted once, in the journal and in the reports of a real API server.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.material import ROOT, review
from tests.reports_cluster.installing import install
from webhook.cluster.report_objects import OPENREPORTS
from webhook.sandbox import Sandbox

POLICY = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: no-labels-by-hand}
spec:
  match: {resources: [{groups: ["*"], resources: ["*"]}]}
  rules:
  - name: who-writes
    writers: {deny: [kubectl-label]}
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, and how hard."""

    seconds: float = 600
    rate: float = 200  # events a second
    kill_every: float = 20
    workers: int = 4
    clients: int = 8
    objects: int = 50  # of each client


@dataclass
class Run:
    """What happened. Events by the name of the object that they are about."""

    folder: Path
    kubeconfig: Path | None = None  # of a cluster that is reported to
    sent: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    taken: list[float] = field(default_factory=list)  # seconds of each answer
    killed: int = 0
    lost: float = 0

    @property
    def journal(self) -> Path:
        return self.folder / "journal.db"


def in_journal(run: Run) -> Counter[str]:
    from webhook.report.journal import JournalReader

    found: Counter[str] = Counter()
    for record in JournalReader(run.journal).records():
        found[record.name] += record.count
    return found


def in_reports(run: Run) -> Counter[str]:
    from webhook.cluster.report_source import ClusterReports

    found: Counter[str] = Counter()
    for record in ClusterReports.connect(run.kubeconfig).records(None):
        found[record.name] += record.count
    return found


def counted(run: Run) -> dict[str, Counter[str]]:
    """What is counted at the end, wherever it is counted."""
    found = {"journal": in_journal(run)}
    if run.kubeconfig is not None:
        found["reports"] = in_reports(run)
    return found


def soak(plan: Plan, folder: Path, kubeconfig: Path | None = None) -> Run:
    """Send, kill, and stop the server as it is stopped in a cluster. `kubeconfig`: of one to report to."""
    run = Run(folder, kubeconfig)
    reports = {"--reports": "openreports", "--kubeconfig": kubeconfig} if kubeconfig else {}
    with _server(folder, plan.workers, reports) as (process, listen, ops):
        stop = threading.Event()
        clients = [_Client(run, plan, listen, number, stop) for number in range(plan.clients)]
        for client in clients:
            client.start()
        end = time.monotonic() + plan.seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, plan.kill_every))
            if time.monotonic() < end:
                _kill_one(ops, run)
        stop.set()
        for client in clients:
            client.join(60)
        run.lost = _metric(ops, "fieldwarden_journal_lost_total")
        process.send_signal(signal.SIGTERM)
        if process.wait(60) != 0:
            raise SystemExit("the server did not stop as told")
    return run


def faults(run: Run, found: Counter[str]) -> list[str]:
    """What is not counted right. A call whose worker was killed may have been counted or not; no other may be."""
    wrong = [
        f"{name}: answered {run.answered[name]}, counted {found[name]}, sent {run.sent[name]}"
        for name in run.sent
        if not run.answered[name] <= found[name] <= run.sent[name]
    ]
    return wrong + [f"{name}: counted but never sent" for name in found if name not in run.sent]


class _Client(threading.Thread):
    """Sends its share, evenly, over one connection; a call that gets no answer is not sent again."""

    def __init__(self, run: Run, plan: Plan, listen: tuple[str, int], number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._stopped, self._where = stop, listen
        self._pause = plan.clients / plan.rate
        self._names = [f"web-{number}-{n}" for n in range(plan.objects)]
        self._run = run
        self._context = ssl.create_default_context(cafile=str(run.folder / "tls" / "ca.crt"))

    def run(self) -> None:
        told: dict[str, Any] = json.loads(review("kubectl-label-overwrite"))
        connection = self._connect()
        due, number = time.monotonic(), 0
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._pause, time.monotonic() - 1)
            name = self._names[number % len(self._names)]
            number += 1
            told["request"]["name"] = name
            self._run.sent[name] += 1
            begin = time.perf_counter()
            try:
                connection.request("POST", "/validate", json.dumps(told), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                if answer.status == 200 and answer.read():
                    self._run.answered[name] += 1
                    self._run.taken.append(time.perf_counter() - begin)
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = self._connect()
        connection.close()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(*self._where, context=self._context, timeout=30)


@contextlib.contextmanager
def _server(
    folder: Path, workers: int, more: dict[str, Any]
) -> Iterator[tuple[subprocess.Popen[bytes], tuple[str, int], tuple[str, int]]]:
    (folder / "policy.yaml").write_text(POLICY)
    ports = folder / "ports.json"
    settings = {
        "--policies": folder / "policy.yaml",
        "--self-signed": folder / "tls",
        "--journal": folder / "journal.db",
        "--ports-file": ports,
        "--listen": "127.0.0.1:0",
        "--ops-listen": "127.0.0.1:0",
        "--workers": workers,
        "--drain": 0,
        "--log-level": "warning",
        **more,
    }
    words = [str(word) for pair in settings.items() for word in pair]
    program = "from webhook.cli.serve import serve; serve(prog_name='serve')"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *words], stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
    try:
        _until(ports.exists, (folder / "log").read_text)
        where = json.loads(ports.read_text())
        listen, ops = (_address(where[name]) for name in ("listen", "ops"))
        _until(lambda: len(_workers(ops)) == workers, (folder / "log").read_text)
        yield process, listen, ops
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _kill_one(ops: tuple[str, int], run: Run) -> None:
    workers = _workers(ops)
    with contextlib.suppress(ProcessLookupError, IndexError):
        os.kill(workers[run.killed % len(workers)], signal.SIGKILL)
        run.killed += 1


def _workers(ops: tuple[str, int]) -> list[int]:
    try:
        return [worker["pid"] for worker in json.loads(_get(ops, "/readyz"))["workers"]]
    except OSError:
        return []


def _metric(ops: tuple[str, int], name: str) -> float:
    lines = [line for line in _get(ops, "/metrics").splitlines() if line.startswith(f"{name} ")]
    return sum(float(line.split()[1]) for line in lines)


def _get(ops: tuple[str, int], path: str) -> str:
    with contextlib.closing(http.client.HTTPConnection(*ops, timeout=20)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def _until(look: Callable[[], object], why: Callable[[], str]) -> None:
    end = time.monotonic() + 60
    while not look():
        if time.monotonic() > end:
            raise SystemExit(f"the server did not start:\n{why()[-2000:]}")
        time.sleep(0.05)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def tell(run: Run, plan: Plan) -> int:
    """Print what happened; 1 where anything is not counted right."""
    sent, answered = sum(run.sent.values()), sum(run.answered.values())
    times = sorted(run.taken)
    print(
        f"{sent} events sent, {answered} answered, {run.killed} of {plan.workers} workers killed one after the other; "
        f"median {statistics.median(times) * 1000:.2f} ms, one in a hundred {times[len(times) * 99 // 100] * 1000:.1f} ms"
    )
    if sent < plan.seconds * plan.rate * 0.9:
        print(f"the load was not reached: {sent / plan.seconds:.0f} events a second, {plan.rate:.0f} were to be sent")
        return 1
    bad = 0
    for place, found in counted(run).items():
        wrong = faults(run, found)
        print(f"{place}: {sum(found.values())} events counted; {len(wrong)} of {len(run.sent)} objects counted wrong")
        print(*wrong[:10], sep="\n", end="\n" if wrong else "")
        bad += len(wrong)
    print(f"lost by its own account: {run.lost:.0f}")
    return 1 if bad or run.lost else 0


def main(arguments: list[str]) -> int:
    plan = Plan(seconds=float(arguments[0])) if arguments else Plan()
    with tempfile.TemporaryDirectory(prefix="fieldwarden-soak-") as name, Sandbox.start() as sandbox:
        folder = Path(name)
        install(sandbox, OPENREPORTS, folder)
        return tell(soak(plan, folder, sandbox.kubeconfig()), plan)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
