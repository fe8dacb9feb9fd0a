"""Another mutating webhook, which undoes what ours does: called after ours, once or as often as ours."""

from __future__ import annotations

import base64
import copy
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.stories.support import Object
from webhook.sandbox import Sandbox
from webhook.sandbox.certificates import Authority
from webhook.sandbox.registration import Probe

NAME = "z-hostile"  # the server calls mutating webhooks in the order of their configurations' names
LABEL = "hostile"  # of namespaces: "once" or "always"
RESOURCES = (("apps", "v1", "deployments"), ("", "v1", "configmaps"))

Act = Callable[[Object, Object], None]
"""Given the old object, change the new one in place."""


class Hostile:
    """`act` is what it does now."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.act: Act = nothing
        self.calls = 0
        authority = Authority.create("somebody else")
        self.ca_pem = authority.pem
        pair = authority.issue(sandbox.folder, NAME)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.hostile = self
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, name=NAME, daemon=True)

    def answer(self, request: Object) -> Object:
        """A response to one request, with a patch when something changed."""
        self.calls += 1
        response: Object = {"uid": request["uid"], "allowed": True}
        if request["operation"] != "UPDATE":
            return response
        new = copy.deepcopy(request["object"])
        self.act(request["oldObject"], new)
        if new != request["object"]:
            patch: list[dict[str, Any]] = [{"op": "replace", "path": "", "value": new}]
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
            response["patchType"] = "JSONPatch"
        return response

    def configuration(self) -> Object:
        url = f"https://127.0.0.1:{self.server.server_address[1]}"
        rules = [
            {"apiGroups": [group], "apiVersions": [version], "operations": ["UPDATE"], "resources": [resource]}
            for group, version, resource in RESOURCES
        ]
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [
                {
                    "name": f"{often}.hostile.example.com",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"url": url, "caBundle": base64.b64encode(self.ca_pem).decode()},
                    "rules": rules,
                    "namespaceSelector": {"matchLabels": {LABEL: often}},
                    "sideEffects": "None",
                    "reinvocationPolicy": policy,
                }
                for often, policy in (("once", "Never"), ("always", "IfNeeded"))
            ],
        }


def nothing(old: Object, new: Object) -> None:
    """It does no harm."""


@contextmanager
def registered(sandbox: Sandbox) -> Iterator[Hostile]:
    """Called for namespaces with its label."""
    hostile = Hostile(sandbox)
    hostile.thread.start()
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    try:
        assert sandbox.request("POST", path, hostile.configuration()).status == 201
        with Probe(sandbox, "mutate").registered() as probe:
            sandbox.wait_until(probe.noticed, "kube-apiserver")
        yield hostile
    finally:
        sandbox.request("DELETE", f"{path}/{NAME}")
        with Probe(sandbox, "mutate").registered() as probe:
            sandbox.wait_until(probe.noticed, "kube-apiserver")
        hostile.server.shutdown()
        hostile.server.server_close()
        hostile.thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # the API server keeps its connections open
    hostile: Hostile

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks off is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {
            "apiVersion": review["apiVersion"],
            "kind": review["kind"],
            "response": self.server.hostile.answer(review["request"]),
        }
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Silent."""
