"""A real etcd and kube-apiserver on loopback, with the users of the stories, gone without a trace afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from webhook.sandbox import apiserver, registration
from webhook.sandbox.apiserver import Options
from webhook.sandbox.binaries import SERVER, binaries
from webhook.sandbox.client import Call, Client, Object, Reply
from webhook.sandbox.errors import SandboxError
from webhook.sandbox.processes import Processes
from webhook.sandbox.registration import PHASES, Phase, Registration
from webhook.sandbox.users import CONTROLLER_MANAGER, SandboxUser, admin_binding, users, write_kubeconfig

_KUBECTL_TIMEOUT = 180  # seconds
_FIRST_ANSWER = 2  # seconds


@dataclass(frozen=True, slots=True)
class Completed:
    """What a kubectl said and how it ended."""

    stdout: str
    stderr: str
    returncode: int


class Sandbox:
    """One API server of one's own. Use as a context manager; all of it ends with the block, or with the process."""

    def __init__(self, programs: Mapping[str, Path], options: Options) -> None:
        self.users: Mapping[str, SandboxUser] = users()
        self._programs = dict(programs)
        self._options = options
        self._processes = Processes()
        self.url = ""

    @classmethod
    def start(cls, programs: Mapping[str, Path] | None = None, options: Options | None = None) -> Self:
        """Start and wait until it is ready (a few seconds; minutes when the programs must be built first).

        Raises SandboxError with the programs' last words when it does not come up.
        """
        sandbox = cls(binaries() if programs is None else programs, options or Options())
        try:
            sandbox._come_up()
        except BaseException:
            sandbox.stop()
            raise
        return sandbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the programs and remove all files. Fine to call twice."""
        self._processes.close()

    @property
    def folder(self) -> Path:
        """Where everything of this sandbox lies, logs included; gone after `stop`."""
        return self._processes.folder

    @property
    def processes(self) -> Processes:
        """To run something beside the servers that ends with them."""
        return self._processes

    @property
    def ca_file(self) -> Path:
        """The authority of the API server's certificate, PEM."""
        return self.folder / "ca.crt"

    @property
    def audit_log(self) -> Path:
        """One JSON audit event a line; there when `Options.audit` asked for it."""
        return self.folder / "audit.log"

    @property
    def program_folders(self) -> tuple[Path, ...]:
        """Where its programs lie, kubectl among them."""
        return tuple(dict.fromkeys(program.parent for program in self._programs.values()))

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig file with the user's token. Raises SandboxError for an unknown user."""
        self._user(user)
        return self.folder / "kubeconfig" / f"{user}.yaml"

    def environment(self, user: str = "admin") -> dict[str, str]:
        """Environment for clients: KUBECONFIG, our programs first on PATH, kubectl's caches in the sandbox."""
        folders = [str(folder) for folder in self.program_folders]
        return {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig(user)),
            "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
            "KUBERC": "off",
            "PATH": os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)]),
        }

    def kubectl(self, *args: str, user: str = "admin", input: str | None = None, check: bool = True) -> Completed:  # noqa: A002
        """Run the sandbox's kubectl; `input` goes to its standard input.

        With `check`, a status other than 0 raises SandboxError with what it printed.
        """
        done = subprocess.run(  # noqa: S603
            [str(self._programs["kubectl"]), *args],
            env=self.environment(user),
            input=input if input is not None else "",
            capture_output=True,
            text=True,
            timeout=_KUBECTL_TIMEOUT,
            check=False,
        )
        if check and done.returncode != 0:
            raise SandboxError(f"kubectl {' '.join(args)}: status {done.returncode}: {done.stderr.strip()}")
        return Completed(done.stdout, done.stderr, done.returncode)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        user: str = "admin",
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        user_agent: str = "fieldwarden-sandbox",
    ) -> Reply:
        """One HTTP call: `(status, body, warnings)` whatever the status. A body of bytes is sent as it is, else as JSON."""
        call = Call(method, path, body, content_type, params, self._user(user).token, user_agent)
        return self._client.send(call)

    def path_of(self, item: Object, subresource: str = "") -> str:
        """The path of an object given by apiVersion, kind and metadata; the collection's when it has no name."""
        path = self._client.path_of(item, self.users["admin"].token)
        return f"{path}/{subresource}" if subresource else path

    def apply(
        self,
        item: Object,
        manager: str,
        user: str = "admin",
        force: bool = False,
        dry_run: bool = False,
        subresource: str = "",
    ) -> Reply:
        """A server-side apply of `item` under `manager`."""
        params = {"fieldManager": manager, "force": str(force).lower()}
        if dry_run:
            params["dryRun"] = "All"
        path = self.path_of(item, subresource)
        return self.request("PATCH", path, item, user, "application/apply-patch+yaml", params)

    def start_controller_manager(self) -> None:
        """Also run kube-controller-manager, an account for each controller; returns when it works (built on first use)."""
        program = (
            self._programs.get("kube-controller-manager")
            or binaries({"kube-controller-manager"})["kube-controller-manager"]
        )
        apiserver.start_controller_manager(self._processes, program, self.kubeconfig(CONTROLLER_MANAGER), self._files)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.wait_until(lambda: self.request("GET", account).status == 200, "kube-controller-manager")

    def stop_apiserver(self) -> None:
        """Kill the API server, as a crash would. What it has stored stays, for `start_apiserver`."""
        self._processes.stop("kube-apiserver")

    def start_apiserver(self) -> None:
        """Start it again at the same address; returns when it is ready."""
        port = int(self.url.rpartition(":")[2])
        program = self._programs["kube-apiserver"]
        apiserver.start_apiserver(self._processes, program, self._files, self._options, port)
        self.wait_until(lambda: self._is_ready(port), "etcd", "kube-apiserver")

    def register_webhooks(
        self,
        url: str,
        ca_pem: bytes,
        rules: Sequence[Object],
        *,
        mutating: bool = True,
        failure_policy: Literal["Fail", "Ignore"] = "Fail",
        timeout: int = 10,
        reinvocation: Literal["IfNeeded", "Never"] = "IfNeeded",
        ready: Callable[[], bool] | None = None,
    ) -> None:
        """Have the API server call `url`/validate and, with `mutating`, `url`/mutate for what `rules` name.

        Replaces an earlier registration. Returns once the API server acts on it, and `ready()` (if given) says so too:
        from then on no write escapes.
        """
        wanted = Registration(url, ca_pem, rules, failure_policy, timeout, reinvocation)
        phases: tuple[Phase, ...] = ("validate", "mutate") if mutating else ("validate",)
        self.register(wanted, phases)
        if ready is not None:
            self.wait_until(ready, "kube-apiserver")

    def register(self, wanted: Registration, phases: Collection[Phase] = ("validate", "mutate")) -> None:
        """The same with all there is to choose; a phase that is not among `phases` is unregistered."""
        for phase in PHASES:
            if phase in phases:
                registration.put(self, phase, wanted)
            else:
                registration.remove(self, phase)
        for phase in PHASES:
            with registration.Probe(self, phase).registered() as probe:
                self.wait_until(probe.noticed, "kube-apiserver")

    def unregister_webhooks(self) -> None:
        """Returns once the API server calls none of ours any more."""
        self.register(Registration("", b"", ()), phases=())

    def wait_until(self, done: Callable[[], bool], *needed: str) -> None:
        """Poll until `done()`. Raises SandboxError when a needed program ends or the start's deadline has passed again."""
        apiserver.wait_until(done, self._processes, needed, time.monotonic() + self._options.deadline)

    def _come_up(self) -> None:
        deadline = time.monotonic() + self._options.deadline
        if missing := SERVER - self._programs.keys():
            raise SandboxError(f"The sandbox also needs {', '.join(sorted(missing))}.")
        self._files = apiserver.write_files(self.folder, self.users, self._options)
        apiserver.start_etcd(self._processes, self._programs["etcd"])
        apiserver.with_port(
            lambda: apiserver.start_apiserver(
                self._processes, self._programs["kube-apiserver"], self._files, self._options
            ),
            self._is_ready,
            self._processes,
            deadline,
        )
        for name, user in self.users.items():
            write_kubeconfig(self.kubeconfig(name), self.url, self.ca_file, user)
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        bound = self.request("POST", path, admin_binding(self.users))
        if bound.status != 201:
            raise SandboxError(f"The users could not be given their rights: {bound.body.get('message')}")
        # The authorizer hears of the binding a moment later.
        self.wait_until(lambda: self._may_write("developer"), "etcd", "kube-apiserver")

    def _is_ready(self, port: int) -> bool:
        self.url = f"https://127.0.0.1:{port}"
        # Where somebody else got the port, there may never be an answer.
        self._client = Client(self.url, str(self.ca_file), timeout=_FIRST_ANSWER)
        try:
            if self.request("GET", "/readyz").status != 200:
                return False
            if self.request("GET", "/api/v1/namespaces/default").status != 200:
                return False
        except SandboxError:
            return False
        finally:
            self._client.close()
        self._client = Client(self.url, str(self.ca_file))
        return True

    def _may_write(self, user: str) -> bool:
        item: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "may-i-write"}}
        path = "/api/v1/namespaces/default/configmaps"
        return self.request("POST", path, item, user, params={"dryRun": "All"}).status == 201

    def _user(self, name: str) -> SandboxUser:
        try:
            return self.users[name]
        except KeyError:
            raise SandboxError(f"There is no user {name}; there are {', '.join(self.users)}.") from None
