"""An authority and what it signs: ECDSA P-256, PEM, valid from a little before they are made."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE = dt.timedelta(minutes=5)  # clocks differ

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH

_DNS_NAME = re.compile(r"(?:\*\.)?(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*")
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


_NO_SUCH_EXTENSION = (
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    ValueError,
)
"""What asking for one raises, whatever the certificate is."""


class Unusable(ValueError):
    """A certificate and a key that cannot be used together."""


class Unreadable(Unusable):
    """One of both is no PEM, or not in clear."""


class KeyOfAnother(Unusable):
    """The key is not the certificate's, or not on an elliptic curve."""


class BadName(ValueError):
    """Neither a DNS name in ASCII nor an address."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False, compare=False)

    @property
    def certificate_pem(self) -> bytes:
        return pem([self.certificate])

    @property
    def key_pem(self) -> bytes:
        return key_pem(self.key)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Unencrypted PKCS#8."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def new_authority(name: str, now: dt.datetime, life: dt.timedelta) -> Signed:
    """An authority that signs leaves, and no other authorities."""
    subject, key = _common_name(name), ec.generate_private_key(ec.SECP256R1())
    public = key.public_key()
    built = (
        _builder(subject, subject, public, now)
        .not_valid_after(now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage("digital_signature", "key_cert_sign", "crl_sign"), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Signed(built, key)


def new_leaf(
    authority: Signed,
    names: Iterable[str],
    now: dt.datetime,
    life: dt.timedelta,
    usage: x509.ObjectIdentifier = SERVER,
) -> Signed:
    """A certificate for DNS names and addresses that ends with its authority at the latest. Raises BadName."""
    key = ec.generate_private_key(ec.SECP256R1())
    held = x509.SubjectAlternativeName([general_name(name) for name in sorted(set(names))])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    built = (
        _builder(_common_name("fieldwarden"), authority.certificate.subject, key.public_key(), now)
        .not_valid_after(min(now + life, authority.certificate.not_valid_after_utc))
        .add_extension(held, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Signed(built, key)


def read_pair(certificate: bytes, key: bytes) -> Signed:
    """The first certificate of a PEM text and its key. Raises Unreadable and KeyOfAnother."""
    try:
        read = x509.load_pem_x509_certificate(certificate)
        signing = serialization.load_pem_private_key(key, password=None)
        public = read.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Unreadable("cannot be read as PEM") from None
    if not isinstance(signing, ec.EllipticCurvePrivateKey) or signing.public_key() != public:
        raise KeyOfAnother("is not the key of the certificate")
    return Signed(read, signing)


def certificates_in(text: bytes) -> tuple[x509.Certificate, ...]:
    """All certificates of a PEM text that can be read; whatever else it holds is read over, as clients do."""
    found = []
    for block in _BLOCK.findall(text):
        try:
            found.append(x509.load_pem_x509_certificate(block))
        except ValueError:
            continue
    return tuple(found)


def pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def renewal(certificate: x509.Certificate) -> dt.datetime:
    """When two thirds of its life are gone, as counted from when it was made: ours are dated back."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if end - start > BACKDATE:
        start += BACKDATE
    return start + (end - start) * 2 / 3


def is_fresh(certificate: x509.Certificate, now: dt.datetime) -> bool:
    """Valid, and less than two thirds of its life gone."""
    return certificate.not_valid_before_utc <= now < renewal(certificate)


def is_valid(certificate: x509.Certificate, now: dt.datetime) -> bool:
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether it may sign others."""
    try:
        return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except _NO_SUCH_EXTENSION:
        return False


def is_issued_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    """By name and signature; whether either is still valid is another question."""
    try:
        leaf.verify_directly_issued_by(authority)
    except Exception:  # whatever is wrong with it, it is not what was asked for
        return False
    return True


def holds_names(leaf: x509.Certificate, names: Iterable[str]) -> bool:
    """Whether it is for all these DNS names and addresses. Raises BadName."""
    wanted = {general_name(name) for name in names}
    try:
        held = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _NO_SUCH_EXTENSION:
        return False
    return wanted <= set(held)


def general_name(name: str) -> x509.GeneralName:
    """A DNS name or an address. Raises BadName."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    if _DNS_NAME.fullmatch(name):
        return x509.DNSName(name)
    raise BadName(f"{name!r} is neither a DNS name in ASCII nor an address")


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*allowed: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{use: use in allowed for use in _KEY_USES})
