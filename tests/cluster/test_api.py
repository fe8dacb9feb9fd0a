"""What each verb says and raises, against a real API server."""

from __future__ import annotations

import datetime as dt
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from webhook.cluster import Api, Conflict, Denied, Invalid, Listing, Missing, Unconfigured, Unreachable
from webhook.cluster.access import find
from webhook.sandbox import Sandbox

CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Api:
    return Api.connect(sandbox.kubeconfig())


def settings(name: str = "settings", **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_an_object_is_made_read_replaced_and_deleted(api: Api, namespace: str) -> None:
    path = CONFIG_MAPS.format(namespace)
    made = api.create(path, settings(color="red"))
    assert api.get(f"{path}/settings")["data"] == {"color": "red"}
    replaced = api.replace(f"{path}/settings", {**made, "data": {"color": "blue"}})
    assert replaced["data"] == {"color": "blue"}
    with pytest.raises(Conflict):  # made is old by now
        api.replace(f"{path}/settings", {**made, "data": {}})
    with pytest.raises(Conflict):
        api.create(path, settings())
    api.delete(f"{path}/settings")
    with pytest.raises(Missing):
        api.get(f"{path}/settings")


def test_an_apply_takes_nothing_from_others(api: Api, sandbox: Sandbox, namespace: str) -> None:
    path = f"{CONFIG_MAPS.format(namespace)}/settings"
    applied = api.apply(path, settings(color="red"))
    assert [(one["manager"], one["operation"]) for one in applied["metadata"]["managedFields"]] == [
        ("fieldwarden", "Apply")
    ]
    taken = {**settings(size="1"), "metadata": {"name": "settings", "namespace": namespace}}
    sandbox.apply(taken, "somebody")
    with pytest.raises(Conflict, match="somebody"):
        api.apply(path, settings(color="red", size="2"))


def test_a_status_is_merged(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    condition = {"type": "Tried", "status": "True", "reason": "R", "message": "m"}
    patched = api.patch_status(path, {"conditions": [condition], "phase": "Active"})
    assert patched["status"]["phase"] == "Active"
    assert patched["status"]["conditions"][0]["type"] == "Tried"


def test_what_is_no_object_of_its_kind_is_invalid(api: Api, namespace: str) -> None:
    with pytest.raises(Invalid, match="422") as raised:
        api.create(CONFIG_MAPS.format(namespace), settings("Not A Name"))
    assert raised.value.status == 422


def test_long_lists_come_in_pages(api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = CONFIG_MAPS.format(namespace)
    for number in range(5):
        api.create(path, settings(f"n{number}"))
    monkeypatch.setattr("webhook.cluster.api.PAGE", 2)
    listing = api.list(path)
    assert [item["metadata"]["name"] for item in listing.items] == [f"n{number}" for number in range(5)]
    assert int(listing.resource_version) > 0


def test_a_watch_tells_what_happens_and_bookmarks(api: Api, namespace: str) -> None:
    path = CONFIG_MAPS.format(namespace)
    listing = api.list(path)
    watch = api.watch(path, listing.resource_version, 5)
    made = api.create(path, settings(color="red"))
    api.delete(f"{path}/settings")
    elsewhere = api.create("/api/v1/namespaces", {"metadata": {"generateName": "later-"}})
    events = list(watch)  # until its time is over
    assert [event.type for event in events[:2]] == ["ADDED", "DELETED"]
    assert events[0].object["data"] == {"color": "red"}
    assert events[0].resource_version == made["metadata"]["resourceVersion"]
    marks = [event for event in events if event.type == "BOOKMARK"]
    assert int(marks[-1].resource_version) >= int(elsewhere["metadata"]["resourceVersion"]) - 1 > 0


def test_who_may_not_is_told_so(sandbox: Sandbox, namespace: str) -> None:
    with pytest.raises(Denied, match="outsider"):
        Api.connect(sandbox.kubeconfig("outsider")).list(CONFIG_MAPS.format(namespace))


def test_who_is_unknown_is_told_so(sandbox: Sandbox, tmp_path: Path) -> None:
    config = json.loads(sandbox.kubeconfig().read_text())
    config["users"][0]["user"]["token"] = "wrong"
    strange = tmp_path / "config"
    strange.write_text(json.dumps(config))
    with pytest.raises(Denied, match="401"):
        Api.connect(strange).list("/api/v1/namespaces")


def nowhere(tmp_path: Path, server: str, **cluster: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": "secret-token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    return tmp_path / "config"


def test_no_server_is_unreachable_and_says_why(tmp_path: Path) -> None:
    api = Api.connect(nowhere(tmp_path, "https://127.0.0.1:1"))
    with pytest.raises(Unreachable) as raised:
        api.list("/api/v1/namespaces")
    assert str(raised.value) == "get /api/v1/namespaces: Connection refused"


def test_another_authority_s_server_is_not_believed(sandbox: Sandbox, tmp_path: Path) -> None:
    api = Api.connect(nowhere(tmp_path, sandbox.url))
    with pytest.raises(Unreachable, match="certificate"):
        api.list("/api/v1/namespaces")


def test_a_server_that_hangs_up_is_unreachable(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        api = Api.connect(nowhere(tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}"))
        listener.listen()
        listener.close()
        with pytest.raises(Unreachable):
            api.watch("/api/v1/namespaces", "1", 1)


def test_an_answer_is_never_more_than_what_was_sent(api: Api) -> None:
    assert isinstance(api.list("/api/v1/namespaces"), Listing)
    assert "fieldpolicies" not in str(api.request("GET", "/version"))


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unconfigured, match="there is no such kubeconfig"):
        find(tmp_path / "config")
    with pytest.raises(Unconfigured, match="KUBECONFIG names no file"):
        find(None, {"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"})
    (tmp_path / "b").touch()
    assert find(None, {"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"}) == f"{tmp_path}/a:{tmp_path}/b"


def test_without_any_word_of_a_cluster_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(Unconfigured, match="no cluster is named"):
        find(None, {})


def test_a_kubeconfig_that_is_none_is_told_without_quoting_it(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("users: [{secret-token: ")
    with pytest.raises(Unconfigured) as raised:
        Api.connect(tmp_path / "config")
    assert "secret-token" not in str(raised.value)


def test_a_watch_in_which_nothing_is_heard_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may have stopped without a word. The next call finds out."""
    monkeypatch.setattr("webhook.cluster.api.SILENCE", 1.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        api = Api.connect(nowhere(tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}"))
        event = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}})

        def answer_once() -> None:
            accepted, _ = listener.accept()
            accepted.recv(65536)
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            accepted.sendall(f"{head}{len(event) + 1:x}\r\n{event}\n\r\n".encode())
            kept.append(accepted)

        kept: list[socket.socket] = []
        thread = threading.Thread(target=answer_once)
        thread.start()
        assert [one.resource_version for one in api.watch("/api/v1/namespaces", "1", 60)] == ["8"]
        thread.join()
        with pytest.raises(Unreachable, match="no answer in time"):
            api.watch("/api/v1/namespaces", "8", 60)
        kept[0].close()


def test_an_event_cut_short_is_no_event(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        api = Api.connect(nowhere(tmp_path, f"http://127.0.0.1:{listener.getsockname()[1]}"))

        def answer_half() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(65536)
                accepted.sendall(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{"type":\r\n0\r\n\r\n')

        thread = threading.Thread(target=answer_half)
        thread.start()
        with pytest.raises(Unreachable, match="within an event"):
            list(api.watch("/api/v1/namespaces", "1", 60))
        thread.join()


def test_a_pod_s_service_account_is_used_and_its_renewed_token(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubernetes.config import incluster_config

    host, _, port = sandbox.url.removeprefix("https://").rpartition(":")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    token = tmp_path / "token"
    token.write_text(sandbox.users["outsider"].token)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(sandbox.ca_file))
    loader = incluster_config.InClusterConfigLoader
    read = loader._read_token_file

    def read_and_expire(self: Any) -> None:
        """The client reads it again after a minute; here at once."""
        read(self)
        self.token_expires_at = dt.datetime.min

    monkeypatch.setattr(loader, "_read_token_file", read_and_expire)
    api = Api.connect()
    with pytest.raises(Denied, match="403"):
        api.list("/api/v1/namespaces")
    token.write_text(sandbox.users["admin"].token)
    assert api.list("/api/v1/namespaces").items
