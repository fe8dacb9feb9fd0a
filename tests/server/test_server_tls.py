"""What is spoken on the port, by whom, and under which certificate."""

from __future__ import annotations

import contextlib
import datetime as dt
import shutil
import socket
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import with_policy
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from serving import PATIENCE, Server, eventually, review, running

from webhook.certificates import CLIENT, new_leaf, read_pair
from webhook.server import authority
from webhook.server.settings import KeyPair, SettingsError


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[KeyPair, KeyPair]:
    """Two certificates of two authorities."""
    folder = tmp_path_factory.mktemp("pairs")
    return authority.ensure(folder / "one", []), authority.ensure(folder / "two", [])


@pytest.fixture
def given(pairs: tuple[KeyPair, KeyPair], tmp_path: Path) -> KeyPair:
    """Files of an operator's own, with the first certificate."""
    pair = KeyPair(tmp_path / "given.crt", tmp_path / "given.key")
    put(pairs[0], pair)
    return pair


def put(source: KeyPair, target: KeyPair) -> None:
    for old, new in ((source.certificate, target.certificate), (source.key, target.key)):
        shutil.copy(old, new.with_suffix(".draft"))
        new.with_suffix(".draft").replace(new)


@contextlib.contextmanager
def serving(folder: Path, pair: KeyPair, ca: Path) -> Iterator[Server]:
    """Looks at its files often: certificates lie in no folder that is watched."""
    policies = with_policy(folder / "policies")
    arguments = ("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key), "--reload-interval", "0.2")
    with running(folder / "s", policies, *arguments, ca=ca) as server:
        yield server


def handshake(server: Server, context: ssl.SSLContext) -> ssl.SSLSocket:
    raw = socket.create_connection(server.listen, timeout=PATIENCE)
    return context.wrap_socket(raw, server_hostname="localhost")


def served(server: Server) -> bytes:
    """The certificate that a new connection is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with handshake(server, context) as connection:
        found = connection.getpeercert(binary_form=True)
        assert found is not None
        return found


def der(pair: KeyPair) -> bytes:
    return x509.load_pem_x509_certificate(pair.certificate.read_bytes()).public_bytes(serialization.Encoding.DER)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_tls_1_1_is_refused(server: Server) -> None:
    context = ssl.create_default_context(cafile=server.ca)
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(server, context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken(server: Server, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=server.ca)
    context.minimum_version = context.maximum_version = version
    with handshake(server, context) as connection:
        assert connection.version() == version.name.replace("_", ".")


def test_no_session_is_offered_to_be_resumed(server: Server) -> None:
    """What a server sends after the handshake, of its own accord, to a client that has hung up can spoil another's call."""
    context = ssl.create_default_context(cafile=server.ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with handshake(server, context) as connection:
        connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(16).startswith(b"HTTP/1.1 404")  # tickets would have come before it
        assert connection.session is not None
        assert not connection.session.has_ticket


@pytest.mark.parametrize(
    "offered, chosen", [(["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), (["h2"], None)]
)
def test_http_2_is_never_agreed_on(server: Server, offered: list[str], chosen: str | None) -> None:
    context = ssl.create_default_context(cafile=server.ca)
    context.set_alpn_protocols(offered)
    with handshake(server, context) as connection:
        assert connection.selected_alpn_protocol() == chosen


def test_with_an_authority_for_clients_only_theirs_are_answered(tmp_path: Path, pairs: tuple[KeyPair, KeyPair]) -> None:
    """A client's certificate of another authority is refused as well as none."""
    ours, other = (client(pair.certificate.parent) for pair in pairs)
    trusted = pairs[0].certificate.parent / "ca.crt"
    arguments = ("--workers", "1", "--client-ca", str(trusted))
    with running(tmp_path / "s", with_policy(tmp_path / "policies"), *arguments) as server:
        for refused in (None, other):
            server.context = ssl.create_default_context(cafile=server.ca)
            if refused is not None:
                server.context.load_cert_chain(refused.certificate, refused.key)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                server.post(review())
        server.context = ssl.create_default_context(cafile=server.ca)
        server.context.load_cert_chain(ours.certificate, ours.key)
        assert not server.post(review()).allowed
        assert server.metric("fieldwarden_requests_total") == 1


def client(folder: Path) -> KeyPair:
    """A certificate for a client, of the authority in the folder."""
    pair = KeyPair(folder / "client.crt", folder / "client.key")
    signer = read_pair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    made = new_leaf(signer, ["client"], dt.datetime.now(dt.UTC), dt.timedelta(days=1), CLIENT)
    pair.certificate.write_bytes(made.certificate_pem)
    pair.key.write_bytes(made.key_pem)
    return pair


def test_a_new_certificate_is_served_with_no_restart(
    tmp_path: Path, given: KeyPair, pairs: tuple[KeyPair, KeyPair]
) -> None:
    with serving(tmp_path, given, pairs[0].certificate.parent / "ca.crt") as server:
        workers = server.workers()
        kept = server.connect()
        kept.connect()
        assert {served(server) for _ in range(8)} == {der(pairs[0])}
        put(pairs[1], given)
        eventually(lambda: server.said_by("certificate loaded") == set(workers))
        assert {served(server) for _ in range(8)} == {der(pairs[1])}
        assert server.workers() == workers
        kept.request("POST", "/validate", body=review(), headers={"Content-Type": "application/json"})
        assert kept.getresponse().status == 200, "a connection that stands is not cut"
        kept.close()


def test_a_damaged_certificate_leaves_the_last_good_one_and_is_told(
    tmp_path: Path, given: KeyPair, pairs: tuple[KeyPair, KeyPair]
) -> None:
    with serving(tmp_path, given, pairs[0].certificate.parent / "ca.crt") as server:
        shutil.copy(pairs[1].key, given.key)  # of another certificate
        eventually(lambda: server.metric("fieldwarden_certificate_load_failures_total") >= 2)
        eventually(lambda: "the certificate does not load" in server.get("/readyz")[1])  # counted first, then told
        assert {served(server) for _ in range(8)} == {der(pairs[0])}
        assert server.post(review()).status == 200
        assert server.get("/readyz")[0] == 200
        put(pairs[1], given)
        eventually(lambda: server.said_by("certificate loaded") == set(server.workers()))
        eventually(lambda: not server.ready()["warnings"])
        assert {served(server) for _ in range(8)} == {der(pairs[1])}


def test_the_made_certificate_is_for_loopback_the_host_and_the_names_given(tmp_path: Path) -> None:
    pair = authority.ensure(tmp_path, ["fieldwarden.example.com", "192.0.2.7", "0.0.0.0"])
    made = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(name.value) for name in names} == {
        "localhost",
        "127.0.0.1",
        "::1",
        "fieldwarden.example.com",
        "192.0.2.7",
    }
    for key in ("tls.key", "ca.key"):
        assert stat.S_IMODE((tmp_path / key).stat().st_mode) == 0o600


def test_a_good_certificate_is_used_again(tmp_path: Path) -> None:
    before = authority.ensure(tmp_path, ["a.example.com", "b.example.com"]).certificate.read_bytes()
    assert authority.ensure(tmp_path, ["b.example.com"]).certificate.read_bytes() == before


@pytest.mark.parametrize("names, days", [(["new.example.com"], 1), ([], 250), ([], 400)])
def test_a_certificate_that_lacks_a_name_or_grows_old_is_renewed_under_the_same_authority(
    tmp_path: Path, names: list[str], days: int
) -> None:
    before = authority.ensure(tmp_path, []).certificate.read_bytes()
    trusted = (tmp_path / "ca.crt").read_bytes()
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    assert authority.ensure(tmp_path, names, later).certificate.read_bytes() != before
    assert (tmp_path / "ca.crt").read_bytes() == trusted


def test_a_certificate_under_a_lost_authority_is_made_anew(tmp_path: Path) -> None:
    before = authority.ensure(tmp_path, []).certificate.read_bytes()
    (tmp_path / "ca.crt").unlink()
    (tmp_path / "ca.key").unlink()
    after = authority.ensure(tmp_path, [])
    assert after.certificate.read_bytes() != before
    ssl.create_default_context(cafile=tmp_path / "ca.crt")


@pytest.mark.parametrize("broken", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_a_broken_file_is_named_and_not_overwritten(tmp_path: Path, broken: str) -> None:
    authority.ensure(tmp_path, [])
    (tmp_path / broken).write_text("broken")
    with pytest.raises(SettingsError, match=broken.replace(".", r"\.") + ".*remove both files"):
        authority.ensure(tmp_path, [])
    assert (tmp_path / broken).read_text() == "broken"


def test_a_key_of_another_certificate_is_named(tmp_path: Path, pairs: tuple[KeyPair, KeyPair]) -> None:
    pair = authority.ensure(tmp_path, [])
    shutil.copy(pairs[0].key, pair.key)
    with pytest.raises(SettingsError, match="is not the key of"):
        authority.ensure(tmp_path, [])
