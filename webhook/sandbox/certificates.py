"""Certificates for servers on loopback: an authority for one sandbox and what it signs."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from webhook.certificates import Signed, key_pem, new_authority, new_leaf

_LIFE = dt.timedelta(days=30)  # a sandbox lives for hours
_HOSTS = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Paths of a certificate and of its key, both PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs for 127.0.0.1 and localhost."""

    signed: Signed

    @classmethod
    def create(cls, name: str) -> Authority:
        return cls(new_authority(name, dt.datetime.now(dt.UTC), _LIFE))

    @property
    def pem(self) -> bytes:
        return self.signed.certificate_pem

    def issue(self, folder: Path, name: str) -> KeyPair:
        """Sign a server certificate; FOLDER/NAME.crt and FOLDER/NAME.key."""
        leaf = new_leaf(self.signed, _HOSTS, dt.datetime.now(dt.UTC), _LIFE)
        pair = KeyPair(folder / f"{name}.crt", folder / f"{name}.key")
        pair.certificate.write_bytes(leaf.certificate_pem)
        _write_key(pair.key, leaf.key_pem)
        return pair


def write_signing_pair(folder: Path, name: str) -> KeyPair:
    """A key and its bare public half, as the API server wants them for service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / f"{name}.pub", folder / f"{name}.key")
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    pair.certificate.write_bytes(key.public_key().public_bytes(encoding, form))
    _write_key(pair.key, key_pem(key))
    return pair


def _write_key(path: Path, pem: bytes) -> None:
    """Readable by its owner alone."""
    path.touch(mode=0o600)
    path.write_bytes(pem)
