"""`--self-signed`: an authority and a certificate of one's own, for a laptop, a sandbox or a small cluster."""

from __future__ import annotations

import datetime as dt
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from webhook.certificates import (
    BadName,
    Signed,
    Unreadable,
    Unusable,
    holds_names,
    is_fresh,
    is_issued_by,
    new_authority,
    new_leaf,
    read_pair,
)
from webhook.server.settings import KeyPair, SettingsError

AUTHORITY_LIFE = dt.timedelta(days=3650)
LEAF_LIFE = dt.timedelta(days=365)

USUAL_NAMES = ("localhost", "127.0.0.1", "::1")

_ANY = ("0.0.0.0", "::")  # noqa: S104


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
                _store(new_leaf(authority, wanted, now, LEAF_LIFE), pair.certificate, pair.key)
    except OSError as error:
        raise SettingsError(f"{error.filename or folder}: {error.strerror or type(error).__name__}") from None
    except BadName as error:
        raise SettingsError(str(error)) from None
    return pair


def _authority(folder: Path, now: dt.datetime) -> tuple[Signed, bool]:
    """The stored authority, or a new one; and whether it is new."""
    certificate, key = folder / "ca.crt", folder / "ca.key"
    stored = _stored(certificate, key)
    if stored is not None and is_fresh(stored.certificate, now):
        return stored, False
    made = new_authority("fieldwarden self-signed authority", now, AUTHORITY_LIFE)
    _store(made, certificate, key)
    return made, True


def _good(leaf: Signed, authority: Signed, names: frozenset[str], now: dt.datetime) -> bool:
    found = leaf.certificate
    return is_fresh(found, now) and is_issued_by(found, authority.certificate) and holds_names(found, names)


def _stored(certificate: Path, key: Path) -> Signed | None:
    """None where neither file is there; a clear error where they cannot be used, since they may be precious."""
    if not certificate.exists() and not key.exists():
        return None
    advice = "remove both files to have new ones made"
    try:
        return read_pair(certificate.read_bytes(), key.read_bytes())
    except Unreadable:
        raise SettingsError(f"{certificate} and {key} cannot be read as PEM: {advice}") from None
    except Unusable:
        raise SettingsError(f"{key} is not the key of {certificate}: {advice}") from None


def _store(signed: Signed, certificate: Path, key: Path) -> None:
    _write(key, signed.key_pem, 0o600)
    _write(certificate, signed.certificate_pem, 0o644)


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
