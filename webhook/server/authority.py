"""`--self-signed`: an authority and a certificate of one's own, for a laptop, a sandbox or a small cluster."""

from __future__ import annotations

import datetime as dt
import fcntl
import ipaddress
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.server.settings import KeyPair, SettingsError

AUTHORITY_LIFE = dt.timedelta(days=3650)
LEAF_LIFE = dt.timedelta(days=365)
BACKDATE = dt.timedelta(minutes=5)  # clocks differ

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH

USUAL_NAMES = ("localhost", "127.0.0.1", "::1")

_DNS_NAME = re.compile(r"(?:\*\.)?(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*")

_ANY = ("0.0.0.0", "::")  # noqa: S104


@dataclass(frozen=True, slots=True)
class _Signed:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def ensure(folder: Path, names: Sequence[str], now: dt.datetime | None = None) -> KeyPair:
    """Make ca.crt, ca.key, tls.crt and tls.key in the folder, or keep those that are there and still good.

    The leaf is renewed at two thirds of its life, and when a name is missing; the authority stays, so that what trusts
    it goes on trusting. Raises SettingsError for files that cannot be read or written.
    """
    now = now or dt.datetime.now(dt.UTC)
    pair = KeyPair(folder / "tls.crt", folder / "tls.key")
    wanted = frozenset([*USUAL_NAMES, *(name for name in names if name not in _ANY)])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            authority, made = _authority(folder, now)
            leaf = None if made else _stored(pair.certificate, pair.key)
            if leaf is None or not _good(leaf, authority, wanted, now):
                _store(_leaf(authority, wanted, now), pair.certificate, pair.key)
    except OSError as error:
        raise SettingsError(f"{error.filename or folder}: {error.strerror or type(error).__name__}") from None
    return pair


def _authority(folder: Path, now: dt.datetime) -> tuple[_Signed, bool]:
    """The stored authority, or a new one; and whether it is new."""
    certificate, key = folder / "ca.crt", folder / "ca.key"
    stored = _stored(certificate, key)
    if stored is not None and _fresh(stored.certificate, now):
        return stored, False
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fieldwarden self-signed authority")])
    signing = ec.generate_private_key(ec.SECP256R1())
    public = signing.public_key()
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    built = (
        _builder(name, name, public, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(signing, hashes.SHA256())
    )
    made = _Signed(built, signing)
    _store(made, certificate, key)
    return made, True


def _leaf(
    authority: _Signed, names: frozenset[str], now: dt.datetime, usage: x509.ObjectIdentifier = SERVER
) -> _Signed:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fieldwarden")])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    built = (
        _builder(subject, authority.certificate.subject, key.public_key(), now, LEAF_LIFE)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in sorted(names)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return _Signed(built, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime, life: dt.timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + life)
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    if _DNS_NAME.fullmatch(name):
        return x509.DNSName(name)
    raise SettingsError(f"{name!r} is neither a DNS name in ASCII nor an address")


def _good(leaf: _Signed, authority: _Signed, names: frozenset[str], now: dt.datetime) -> bool:
    if not _fresh(leaf.certificate, now):
        return False
    try:
        leaf.certificate.verify_directly_issued_by(authority.certificate)
        held = leaf.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # whatever is wrong with it, a new one is better
        return False
    return {_general(name) for name in names} <= set(held)


def _fresh(certificate: x509.Certificate, now: dt.datetime) -> bool:
    """Less than two thirds of its life gone."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return start <= now < start + (end - start) * 2 / 3


def _stored(certificate: Path, key: Path) -> _Signed | None:
    """None where neither file is there; a clear error where they cannot be used, since they may be precious."""
    if not certificate.exists() and not key.exists():
        return None
    advice = "remove both files to have new ones made"
    try:
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
        signing = serialization.load_pem_private_key(key.read_bytes(), password=None)
    except (ValueError, TypeError):
        raise SettingsError(f"{certificate} and {key} cannot be read as PEM: {advice}") from None
    if not isinstance(signing, ec.EllipticCurvePrivateKey) or signing.public_key() != read.public_key():
        raise SettingsError(f"{key} is not the key of {certificate}: {advice}")
    return _Signed(read, signing)


def _store(signed: _Signed, certificate: Path, key: Path) -> None:
    pem = signed.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(key, pem, 0o600)
    _write(certificate, signed.certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _write(file: Path, content: bytes, mode: int) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two servers that start on one folder make one authority."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
