"""What is signed is trusted by real clients, for the time and the names it was signed for."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from webhook import certificates
from webhook.certificates import KeyOfAnother, Signed, Unreadable, new_authority, new_leaf, read_pair

NOW = dt.datetime(2031, 5, 1, 12, tzinfo=dt.UTC)
LIFE, LEAF = dt.timedelta(days=90), dt.timedelta(days=30)
NAME = "fieldwarden.policies.svc"


@pytest.fixture(scope="module")
def authority() -> Signed:
    return new_authority("an authority", NOW, LIFE)


def verify(leaf: Signed, authority: Signed, at: dt.datetime, name: str = NAME) -> None:
    store = Store([authority.certificate])
    PolicyBuilder().store(store).time(at).build_server_verifier(x509.DNSName(name)).verify(leaf.certificate, [])


def test_a_leaf_is_trusted_for_its_names_from_a_little_before_now_until_its_end(authority: Signed) -> None:
    leaf = new_leaf(authority, [NAME], NOW, LEAF)
    verify(leaf, authority, NOW - certificates.BACKDATE)
    verify(leaf, authority, NOW + LEAF)
    for at in (NOW - certificates.BACKDATE - dt.timedelta(seconds=1), NOW + LEAF + dt.timedelta(seconds=1)):
        with pytest.raises(VerificationError):
            verify(leaf, authority, at)
        assert not certificates.is_valid(leaf.certificate, at)
    with pytest.raises(VerificationError):
        verify(leaf, authority, NOW, "other.policies.svc")


def test_a_leaf_ends_with_its_authority(authority: Signed) -> None:
    leaf = new_leaf(authority, [NAME], NOW + LIFE - dt.timedelta(days=1), LEAF)
    assert leaf.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc


def test_only_its_own_authority_issued_a_leaf(authority: Signed) -> None:
    """Another authority of the same name is another authority."""
    leaf, namesake = new_leaf(authority, [NAME], NOW, LEAF), new_authority("an authority", NOW, LIFE)
    assert certificates.is_issued_by(leaf.certificate, authority.certificate)
    assert not certificates.is_issued_by(leaf.certificate, namesake.certificate)


def test_an_authority_is_told_from_a_leaf(authority: Signed) -> None:
    assert certificates.is_authority(authority.certificate)
    assert not certificates.is_authority(new_leaf(authority, [NAME], NOW, LEAF).certificate)
    assert not certificates.is_authority(x509.load_pem_x509_certificate(rsa_pair()[0]))


def odd(*extensions: x509.ExtensionType) -> x509.Certificate:
    """With these, of which the placeholder 2.5.29.99 becomes a second `basicConstraints`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "odd")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + LIFE)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    made = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    return x509.load_der_x509_certificate(made.replace(bytes.fromhex("0603551d63"), bytes.fromhex("0603551d13")))


def test_an_odd_certificate_is_neither_an_authoritys_nor_for_any_name() -> None:
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    again = x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.99"), constraints.public_bytes())
    address = x509.UnrecognizedExtension(x509.SubjectAlternativeName.oid, bytes.fromhex("3002a300"))
    assert certificates.is_authority(odd(constraints))
    assert not certificates.is_authority(odd(constraints, again))
    assert not certificates.holds_names(odd(address), [NAME])
    assert not certificates.holds_names(odd(constraints, again), [NAME])


def test_the_first_two_thirds_of_a_life_are_fresh(authority: Signed) -> None:
    start, end = NOW, NOW + LIFE
    turn = start + (end - start) * 2 / 3
    assert certificates.renewal(authority.certificate) == turn
    assert certificates.is_fresh(authority.certificate, turn - dt.timedelta(seconds=1))
    assert not certificates.is_fresh(authority.certificate, turn)
    assert not certificates.is_fresh(authority.certificate, start - certificates.BACKDATE - dt.timedelta(seconds=1))


def test_what_is_written_is_read_again_and_serves_in_a_handshake(tmp_path: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    authority = new_authority("an authority", now, LIFE)
    leaf = new_leaf(authority, [NAME], now, LEAF)
    assert read_pair(leaf.certificate_pem, leaf.key_pem).certificate == leaf.certificate
    (tmp_path / "pair.pem").write_bytes(leaf.key_pem + leaf.certificate_pem)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(tmp_path / "pair.pem")
    asking = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    asking.verify_flags |= ssl.VERIFY_X509_STRICT
    shown = handshake(serving, asking)
    assert shown == leaf.certificate.public_bytes(serialization.Encoding.DER)


def handshake(serving: ssl.SSLContext, asking: ssl.SSLContext) -> bytes | None:
    """In memory; the certificate that was shown. Raises SSLError where it is not trusted."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(down, up, server_hostname=NAME)
    server = serving.wrap_bio(up, down, server_side=True)
    waiting = [client, server]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    return client.getpeercert(binary_form=True)


def rsa_pair() -> tuple[bytes, bytes]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rsa")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + LIFE)
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(encoding), key.private_bytes(encoding, form, serialization.NoEncryption())


def encrypted() -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        encoding, form, serialization.BestAvailableEncryption(b"secret")
    )


def test_pairs_that_do_not_fit_are_told_apart_from_what_cannot_be_read(authority: Signed) -> None:
    certificate, key = authority.certificate_pem, authority.key_pem
    other = new_authority("another", NOW, LIFE).key_pem
    for text, secret in ((b"", key), (certificate, b""), (key, certificate), (certificate[:200], key)):
        with pytest.raises(Unreadable):
            read_pair(text, secret)
    with pytest.raises(Unreadable):
        read_pair(certificate, encrypted())
    for pair in ((certificate, other), rsa_pair()):
        with pytest.raises(KeyOfAnother):
            read_pair(*pair)


def test_of_a_damaged_bundle_the_readable_certificates_remain(authority: Signed) -> None:
    other = new_authority("another", NOW, LIFE)
    broken = authority.certificate_pem.replace(b"MII", b"!!!", 1)
    found = certificates.certificates_in(b"a note\n" + broken + other.certificate_pem + authority.certificate_pem)
    assert found == (other.certificate, authority.certificate)
    assert certificates.certificates_in(b"") == ()


@pytest.mark.parametrize("name", ["", "a b", "-a", "a..b", "bücher.example.com", "a" * 64])
def test_what_is_neither_name_nor_address_is_refused(authority: Signed, name: str) -> None:
    with pytest.raises(certificates.BadName):
        new_leaf(authority, [name], NOW, LEAF)


def test_a_leaf_is_asked_for_all_names(authority: Signed) -> None:
    leaf = new_leaf(authority, [NAME, "127.0.0.1", "::1"], NOW, LEAF).certificate
    assert certificates.holds_names(leaf, ["127.0.0.1", NAME])
    assert not certificates.holds_names(leaf, [NAME, "more.example.com"])
    assert not certificates.holds_names(authority.certificate, [NAME])


@pytest.mark.parametrize("life", [dt.timedelta(seconds=24), dt.timedelta(minutes=8), dt.timedelta(days=90)])
def test_two_thirds_of_a_life_are_counted_from_when_it_was_made(life: dt.timedelta) -> None:
    """However short it is beside the time by which it is dated back."""
    made = new_authority("short", NOW, life).certificate
    assert certificates.renewal(made) == NOW + life * 2 / 3
    assert certificates.is_fresh(made, NOW)
    assert not certificates.is_fresh(made, NOW + life * 3 / 4)
