"""What the stories are told in: an object on a real API server, writes to it, and what came of each.

A write returns an Answer, which says what its client saw, what fieldwarden recorded, and whether anything was stored:

    story.kubectl("label deployment web team=mine --overwrite").denied("change flux-owns/applied .metadata.labels.team")
    assert story.owners(".metadata.labels.team") == ["kustomize-controller (Apply)"]
"""

from __future__ import annotations

import copy
import json
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from kubernetes import client, config

from tests.stories.server import Server
from webhook.fields import ABSENT, FieldPath, ManagedFields, value_at
from webhook.sandbox import Reply, Sandbox

Object = dict[str, Any]
FLUX = "kustomize-controller"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one write. Events read `kind policy/rule path path`."""

    ok: bool
    told: str  # all that the client was shown
    refused: list[str]  # events that refused it
    found: list[str]  # events that were recorded only
    rewritten: list[str]  # events that were put right
    moved: list[
        str
    ]  # whose claims that changed, as `path: before, before -> after`; no path where it is the whole claim
    causes: list[str]  # paths of details.causes, where the client shows them
    stored: bool  # whether the object is another than before
    body: Object  # what the server answered, where the client shows it

    def allowed(self) -> Self:
        """It passed, and nobody found anything amiss."""
        return self.recorded()

    def recorded(self, *events: str) -> Self:
        """It passed, and this was found."""
        assert self.ok, self.told
        assert (self.rewritten, self.refused, self.found) == ([], [], list(events)), self.told
        return self

    def rewrote(self, *events: str, recorded: Sequence[str] = ()) -> Self:
        """It passed with this put right, the client was told of all of it, and nothing else was found but `recorded`."""
        assert self.ok, self.told
        assert (self.rewritten, self.refused, self.found) == (list(events), [], list(recorded)), self.told
        for event in events:
            kind, rule, *paths = event.split(" ")
            assert f"[{rule}] " in self.told
            assert kind == "tamper" or all(path in self.told for path in paths[:5]), self.told
        return self

    def denied(self, *events: str) -> Self:
        """The client was told of all of this, nothing else refused it, and nothing was stored."""
        assert not self.ok, f"it passed: {self.told}"
        assert self.refused == list(events), self.told
        assert "denied the request" in self.told
        assert not self.stored
        for event in events:
            _, rule, *paths = event.split(" ")
            assert f"[{rule}]" in self.told
            assert all(path in self.told for path in paths[:5]), self.told
            assert not self.causes or set(paths) <= set(self.causes)
        return self


@dataclass
class Story:
    """One object. `git` is the manifest that Flux applies."""

    sandbox: Sandbox
    server: Server
    git: Object
    clients: dict[str, client.ApiClient] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.sandbox.path_of(self.git)

    def flux(self, *, dry_run: bool = False) -> Answer:
        """Flux brings what Git says."""
        return self.apply(self.git, FLUX, "flux", force=True, dry_run=dry_run)

    def apply(
        self, item: Object, manager: str, user: str = "developer", *, force: bool = False, dry_run: bool = False
    ) -> Answer:
        """A server-side apply."""
        params = {"fieldManager": manager, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        return self.request("PATCH", item, user, APPLY, params=params)

    def request(
        self,
        method: str,
        body: object,
        user: str = "developer",
        content_type: str = "application/json",
        *,
        subresource: str = "",
        path: str = "",
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """A plain HTTP client's write; its manager is `some-client` unless `params` name a fieldManager."""
        path = (path or self.path) + (f"/{subresource}" if subresource else "")

        def send() -> _Said:
            reply = self.sandbox.request(method, path, body, user, content_type, params, user_agent="some-client/1.0")
            return _Said(reply.status in (200, 201), _shown(reply), _causes(reply.body), reply.body)

        return self._told(send)

    def kubectl(self, command: str, user: str = "developer", *, stdin: str = "", editor: str = "") -> Answer:
        """A kubectl command in the object's namespace."""
        environment = {
            **self.sandbox.environment(user),
            "TMPDIR": str(self.sandbox.folder),  # kubectl edit leaves refused changes there
            "KUBE_EDITOR": editor,
        }
        namespace = self.git["metadata"].get("namespace")
        argv = ["kubectl", *(["-n", namespace] if namespace else []), *shlex.split(command)]

        return self.program(argv, environment, stdin)

    def program(self, argv: Sequence[str], environment: Mapping[str, str], stdin: str = "") -> Answer:
        """Any program that writes."""

        def run() -> _Said:
            done = subprocess.run(
                argv, env=environment, input=stdin, capture_output=True, text=True, timeout=60, check=False
            )
            return _Said(done.returncode == 0, done.stdout + done.stderr)

        return self._told(run)

    def python(self, call: Callable[[client.ApiClient], object], user: str = "developer") -> Answer:
        """A write with the Python client."""
        if user not in self.clients:
            made = getattr(self.sandbox, "python_client", None) or self._python_client
            self.clients[user] = made(user)

        def write() -> _Said:
            try:
                call(self.clients[user])
            except client.ApiException as error:
                status = json.loads(error.body or "{}")
                return _Said(False, str(status["message"]), _causes(status))
            return _Said(True)

        return self._told(write)

    def _python_client(self, user: str) -> client.ApiClient:
        made: client.ApiClient = config.new_client_from_config(  # type: ignore[no-untyped-call]
            str(self.sandbox.kubeconfig(user))
        )
        return made

    def get(self, path: str = "") -> Object:
        """The object as it is stored, or through another path."""
        reply = self.sandbox.request("GET", path or self.path)
        return reply.body if reply.status == 200 else {}

    def value(self, path: str) -> Any:
        """None where there is none."""
        found = value_at(self.get(), FieldPath.parse(path))
        return None if found is ABSENT else found

    def owners(self, path: str) -> list[str]:
        """The claims that hold a path."""
        return sorted(map(str, self._claims().holders(FieldPath.parse(path))))

    def claims(self) -> list[str]:
        return [str(identity) for identity in self._claims()]

    def _claims(self) -> ManagedFields:
        return ManagedFields.parse(self.get()["metadata"].get("managedFields"))

    def _told(self, write: Callable[[], _Said]) -> Answer:
        before, mark = self.get(), self.server.mark()
        said = write()
        # The server writes its line before it answers: nothing is still to come.
        results = [
            result
            for line in self.server.reviews(mark)
            if (line["name"], line["namespace"])
            == (self.git["metadata"]["name"], self.git["metadata"].get("namespace", ""))
            for result in line.get("results", ())
        ]
        return Answer(
            ok=said.ok,
            told=said.told,
            refused=[_event(result) for result in results if result["outcome"] == "refused"],
            found=[_event(result) for result in results if result["outcome"] == "recorded"],
            rewritten=[_event(result) for result in results if result["outcome"] == "rewritten"],
            moved=[_movement(moved) for result in results for moved in result.get("ownership", ())],
            causes=said.causes,
            stored=self.get() != before,
            body=said.body,
        )


@dataclass(frozen=True, slots=True)
class _Said:
    """What a client made of the server's answer."""

    ok: bool
    told: str = ""
    causes: list[str] = field(default_factory=list)
    body: Object = field(default_factory=dict)


def _event(result: Object) -> str:
    return " ".join([result["event"], f"{result['policy']}/{result['rule']}", *result["paths"]])


def _movement(moved: Object) -> str:
    whose = f"{', '.join(moved['before'])} -> {', '.join(moved['after'])}".strip()
    return f"{moved['path']}: {whose}" if moved["path"] else whose


def without(item: Object, *path: str) -> Object:
    """A copy without one field."""
    changed = copy.deepcopy(item)
    node = changed
    for name in path[:-1]:
        node = node[name]
    del node[path[-1]]
    return changed


def _shown(reply: Reply) -> str:
    text = str(reply.body.get("message", "")) if reply.status >= 400 else ""
    return "\n".join([text, *reply.warnings])


def _causes(body: Object) -> list[str]:
    return [cause["field"] for cause in (body.get("details") or {}).get("causes", ()) if "field" in cause]
