"""The cluster that KUBECONFIG names, as the stories know their sandbox: its people, their clients, and plain requests.

None of the people has to exist there: whoever holds the kubeconfig impersonates them, which takes the right to.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

import urllib3
from kubernetes import client, config

from tests.e2e.quiet import QUIET, quiet_policy
from webhook.sandbox import Completed, Reply, SandboxError
from webhook.sandbox.users import SandboxUser, admin_binding, users

Object = dict[str, Any]

ADMIN = "admin"
DEADLINE = 120.0  # seconds
_TIMEOUT = 60.0  # seconds of one request; above the API server's own limit for a webhook
_PAUSE = 0.05  # seconds between two looks
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')


class Cluster:
    """What is made through `request` and belongs to no namespace goes with `forget`; namespaces take the rest along."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users: Mapping[str, SandboxUser] = users()
        self.namespace_labels: Mapping[str, str] = QUIET
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}
        self._made: dict[str, None] = {}  # paths in the order of their making
        self._lock = threading.Lock()
        view = ("kubectl", "config", "view", "--raw", "--minify", "--flatten", "--output=json")
        shown = subprocess.run(view, capture_output=True, text=True, timeout=60, check=True).stdout
        for user in self.users:
            self._write_kubeconfig(user, json.loads(shown))
        self._api = config.new_client_from_config(str(self.kubeconfig()))
        self._api.configuration.retries = False
        self._pool: urllib3.PoolManager = self._api.rest_client.pool_manager
        self._pool.connection_pool_kw["maxsize"] = 32

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator[Self]:
        """Its people may do what the stories say, and controllers keep quiet in quiet namespaces, as long as the block."""
        with tempfile.TemporaryDirectory(prefix="fieldwarden-e2e-") as folder:
            cluster = cls(Path(folder))
            try:
                cluster.put(admin_binding(cluster.users))
                cluster._quieten()
                yield cluster
            finally:
                cluster.forget()

    def alive(self) -> Self:
        """The same cluster, in whose namespaces controllers work."""
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "namespace_labels": {}}
        return other

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """kubectl and helm impersonate by it; the Python client does not, see `python_client`."""
        return self.folder / f"{user}.kubeconfig"

    def environment(self, user: str = ADMIN) -> dict[str, str]:
        """For kubectl and helm, which are those on PATH."""
        homes = {f"HELM_{kind}_HOME": str(self.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        mine = {"KUBECONFIG": str(self.kubeconfig(user)), "KUBECACHEDIR": str(self.folder / "cache"), "KUBERC": "off"}
        return {**os.environ, **homes, **mine}

    def kubectl(self, *args: str, user: str = ADMIN, input: str | None = None, check: bool = True) -> Completed:  # noqa: A002
        return self.run(("kubectl", *args), user, input, check)

    def run(
        self,
        argv: Sequence[str],
        user: str = ADMIN,
        input: str | None = None,  # noqa: A002
        check: bool = True,
    ) -> Completed:
        """A program that reads a kubeconfig. With `check`, a status other than 0 raises SandboxError with what it printed."""
        environment = self.environment(user)
        done = subprocess.run(
            argv, env=environment, input=input or "", capture_output=True, text=True, timeout=300, check=False
        )
        if check and done.returncode != 0:
            raise SandboxError(
                f"{' '.join(argv)}: status {done.returncode}: {done.stderr.strip()} {done.stdout.strip()}"
            )
        return Completed(done.stdout, done.stderr, done.returncode)

    def python_client(self, user: str) -> client.ApiClient:
        made = config.new_client_from_config(str(self.kubeconfig(user)))
        for name, value in self._impersonation(user).items():
            made.set_default_header(name, value)
        return made

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        user: str = ADMIN,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        user_agent: str = "fieldwarden-e2e",
    ) -> Reply:
        """One HTTP call on a kept connection; safe for threads. Raises SandboxError when there is no answer."""
        headers = {"Accept": "application/json", "User-Agent": user_agent, **self._impersonation(user)}
        headers |= {one["key"]: one["value"] for one in self._api.configuration.auth_settings().values()}
        payload = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if payload is not None:
            headers["Content-Type"] = content_type
        url = self._api.configuration.host + path + (f"?{urlencode(params)}" if params else "")
        try:
            answer = self._pool.request(method, url, body=payload, headers=headers, timeout=_TIMEOUT, retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise SandboxError(f"{method} {path}: no answer from the API server: {error!r}") from error
        reply = _reply(answer)
        if reply.status in (200, 201) and "dryRun" not in (params or {}):
            self._remember(method, path, reply.body)
        return reply

    def path_of(self, item: Object, subresource: str = "") -> str:
        """The path of an object given by apiVersion, kind and metadata; the collection's when it has no name."""
        meta = item["metadata"]
        plural, namespaced = self._plural(item["apiVersion"], item["kind"])
        place = f"/namespaces/{quote(meta.get('namespace', 'default'), safe='')}" if namespaced else ""
        parts = [f"{_root(item['apiVersion'])}{place}", plural, quote(meta.get("name", ""), safe=""), subresource]
        return "/".join(part for part in parts if part)

    def apply(self, item: Object, manager: str, user: str = ADMIN, force: bool = False, dry_run: bool = False) -> Reply:
        """A server-side apply of `item` under `manager`."""
        params = {"fieldManager": manager, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        return self.request("PATCH", self.path_of(item), item, user, "application/apply-patch+yaml", params)

    def put(self, item: Object) -> Object:
        """The same by force, for what the tests themselves need; the object as it is then."""
        reply = self.apply(item, "fieldwarden-e2e", force=True)
        assert reply.status in (200, 201), reply.body
        return reply.body

    def get(self, path: str) -> Object:
        """Empty where there is none."""
        reply = self.request("GET", path)
        assert reply.status in (200, 404), reply.body
        return reply.body if reply.status == 200 else {}

    def remove(self, path: str) -> None:
        assert self.request("DELETE", path).status in (200, 202, 404)

    def wait_until(self, done: Callable[[], bool], *_: str, seconds: float = DEADLINE) -> None:
        """Poll until `done()`. Raises SandboxError at the deadline."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise SandboxError(f"Waited {seconds} s in vain.")
            time.sleep(_PAUSE)

    def forget(self) -> None:
        """Take away what was made here and is in no namespace; nobody waits for it to be gone."""
        for path in reversed(self._made):
            self.request("DELETE", path, {"propagationPolicy": "Background"})

    def _quieten(self) -> None:
        for item in quiet_policy():
            self.put(item)
        name = f"quiet-{os.getpid()}"
        self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(QUIET)}})
        made = {"metadata": {"generateName": "any-"}, "spec": {"selector": {}, "template": {}}}
        path = f"/apis/apps/v1/namespaces/{name}/replicasets"
        controller = "controller-manager"
        self.wait_until(
            lambda: "quiet" in str(self.request("POST", path, made, controller, params={"dryRun": "All"}).body)
        )

    def _remember(self, method: str, path: str, body: Object) -> None:
        if method == "POST":
            path = f"{path}/{body.get('metadata', {}).get('name')}"
        namespace = re.fullmatch("/api/v1/namespaces/[^/]+", path)
        if method in ("POST", "PUT", "PATCH") and (namespace or "/namespaces/" not in path):
            with self._lock:
                self._made.setdefault(path)

    def _impersonation(self, user: str) -> dict[str, str]:
        """The server itself adds the groups of service accounts."""
        who = self.users[user]
        groups = [group for group in who.groups if not group.startswith("system:serviceaccounts")]
        assert len(groups) < 2, f"{user} has several groups, of which one header names one"
        headers = {"Impersonate-User": who.name}
        if groups:
            headers["Impersonate-Group"] = groups[0]
        return headers

    def _write_kubeconfig(self, user: str, shown: Object) -> None:
        headers = self._impersonation(user)
        login = shown["users"][0]["user"]
        login["as"] = headers["Impersonate-User"]
        if group := headers.get("Impersonate-Group"):
            login["as-groups"] = [group]
        path = self.kubeconfig(user)
        path.touch(mode=0o600)
        path.write_text(json.dumps(shown))

    def _plural(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._plurals:
            for resource in self.get(_root(api_version)).get("resources", ()):
                if "/" not in resource["name"]:
                    self._plurals[api_version, resource["kind"]] = resource["name"], resource["namespaced"]
        if (api_version, kind) not in self._plurals:
            raise SandboxError(f"The API server does not serve {kind} in {api_version}.")
        return self._plurals[api_version, kind]


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _reply(answer: urllib3.BaseHTTPResponse) -> Reply:
    try:
        body = json.loads(answer.data)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"text": answer.data.decode(errors="replace")}
    return Reply(answer.status, body, [text for one in answer.headers.getlist("Warning") for text in _warnings(one)])


def _warnings(header: str) -> list[str]:
    """http.client reads headers as Latin-1."""
    whole = header.encode("latin-1", "replace").decode(errors="replace")
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(whole)]
