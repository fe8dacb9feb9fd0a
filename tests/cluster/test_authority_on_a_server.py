"""A real API server trusts both leaves while authorities change, and neither for longer than that."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.trust_world import DAY, HOUR, LIFETIMES, MINUTE
from webhook.certificates import Signed, read_pair
from webhook.cluster import authority
from webhook.cluster.authority import IssueLeaf, Publish, Wait, WriteAuthority
from webhook.cluster.trust import Data, Leaf, Published, State
from webhook.sandbox import Capture, Registration, Sandbox

NAMES = ("localhost", "127.0.0.1")
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]


def settle(state: State, now: dt.datetime) -> State:
    """Steps until it waits; the pod serves what is in its Secret."""
    for _ in range(9):
        leaf, data, published = state.leaves["leaf"].data, state.authority, state.published
        for action in authority.step(state, now, LIFETIMES):
            match action:
                case Wait():
                    return state
                case WriteAuthority():
                    data = authority.written(action, now, LIFETIMES)
                case IssueLeaf():
                    leaf = authority.issued(action, now, LIFETIMES)
                case Publish(name, pem):
                    published = {name: Published(pem, now)}
        state = State(published, {"pod": leaf["tls.crt"] if leaf else None}, {"leaf": Leaf(NAMES, leaf)}, data)
    raise AssertionError("it never waits")


def leaf_of(state: State) -> Signed:
    data: Data = state.leaves["leaf"].data or {}
    return read_pair(data["tls.crt"], data["tls.key"])


@pytest.fixture
def called(sandbox: Sandbox, namespace: str, tmp_path: Path) -> Callable[[State, bytes, str], bool]:
    def call(serving: State, bundle: bytes, name: str) -> bool:
        """Whether the API server, given a bundle, trusts what a state serves."""
        pair = tmp_path / "pair.pem"
        pair.write_bytes(leaf_of(serving).key_pem + leaf_of(serving).certificate_pem)
        with Capture.start() as capture:
            capture._server.socket.context.load_cert_chain(pair)  # type: ignore[attr-defined]
            sandbox.register(Registration(capture.url, bundle, RULES), ["validate"])
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            reply = sandbox.request("POST", path, {"metadata": {"name": name}}, "developer")
            assert (reply.status == 201) == bool(capture.take()), reply.body
            assert reply.status == 201 or "certificate" in reply.body["message"], reply.body
            return reply.status == 201

    return call


def test_both_leaves_are_trusted_by_the_bundle_between_them(
    sandbox: Sandbox, called: Callable[[State, bytes, str], bool]
) -> None:
    now = dt.datetime.now(dt.UTC)
    first = settle(
        State({"one": Published(b"", now)}, {}, {"leaf": Leaf(NAMES, None)}, None),
        now - LIFETIMES.authority * 2 / 3 - HOUR,
    )
    old = settle(first, now - DAY)
    between = settle(old, now - LIFETIMES.settle - MINUTE)
    new = settle(between, now)
    last = settle(new, now + LIFETIMES.margin)
    bundle = between.published["one"].pem
    assert leaf_of(old) != leaf_of(new)
    assert len({old.published["one"].pem, bundle, last.published["one"].pem}) == 3
    try:
        assert called(old, bundle, "old-leaf")
        assert called(new, bundle, "new-leaf")
        assert called(new, last.published["one"].pem, "new-leaf-at-the-end")
        assert not called(old, last.published["one"].pem, "old-leaf-at-the-end")
        assert not called(new, old.published["one"].pem, "new-leaf-too-early")
    finally:
        sandbox.unregister_webhooks()
