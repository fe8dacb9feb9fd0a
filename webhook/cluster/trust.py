"""Who trusts which authority now: what stands in the Secrets, what is published, what is served."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cryptography import x509

from webhook.certificates import (
    BACKDATE,
    KeyOfAnother,
    Signed,
    Unusable,
    certificates_in,
    is_authority,
    is_issued_by,
    is_valid,
    read_pair,
)

Data = Mapping[str, bytes]
"""A Secret's data, decoded."""

PREVIOUS, RETIRED = "previous.crt", "retired"
AUTHORITY = "authority"


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates live, and how long the world takes to notice."""

    authority: dt.timedelta = dt.timedelta(days=1825)
    leaf: dt.timedelta = dt.timedelta(days=90)
    settle: dt.timedelta = dt.timedelta(minutes=5)  # until every API server trusts what was published
    margin: dt.timedelta = dt.timedelta(hours=1)  # until no pod starts on the leaf before

    def __post_init__(self) -> None:
        """A leaf signed in an authority's first two thirds must not be cut short by its end."""
        if self.leaf * 3 > self.authority:
            raise ValueError("an authority must live at least three times as long as a leaf")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A Secret with a server's certificate: the DNS names it must be for, and what stands in it (None: there is none)."""

    names: tuple[str, ...]
    data: Data | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Published:
    """The bundle that one webhook configuration carries, and when the configuration was last changed."""

    pem: bytes
    since: dt.datetime


@dataclass(frozen=True, slots=True)
class State:
    """All that a step looks at.

    To be read in this order, and written with the resourceVersions of this reading: what is published and served,
    then the leaves, the authority's Secret last. Then nothing is published that is older than what is already there,
    and of two controllers one has its write refused.
    """

    published: Mapping[str, Published]  # by webhook configuration
    serving: Mapping[str, bytes | None]  # by running pod: the leaf it shows, PEM; None where it cannot be asked
    leaves: Mapping[str, Leaf]  # by Secret
    authority: Data | None = field(repr=False)  # None: there is no Secret


@dataclass(frozen=True, slots=True)
class Seen:
    """The state, read: what of it can be used, and what is wrong with the rest."""

    now: dt.datetime
    current: Signed | None  # signs leaves
    next: Signed | None  # is to sign once it is trusted
    previous: frozenset[x509.Certificate]  # sign no more
    retired: dt.datetime | None  # when the last of them was replaced
    damage: tuple[str, ...]  # to the authority's Secret
    leaves: Mapping[str, Signed | None]
    shown: tuple[x509.Certificate, ...]  # leaves that stand or are served, and have not ended
    unknown: bool  # some pod cannot be asked
    bundles: Mapping[str, frozenset[x509.Certificate]]
    torn: frozenset[str]  # bundles that hold what is no certificate
    faults: tuple[str, ...]  # all that is damaged, for people

    @property
    def published(self) -> frozenset[x509.Certificate]:
        """What any bundle carries that has not ended."""
        carried = (certificate for bundle in self.bundles.values() for certificate in bundle)
        return frozenset(certificate for certificate in carried if is_valid(certificate, self.now))

    @property
    def is_idle(self) -> bool:
        """Nobody serves what anybody trusts: there is nothing to be careful of."""
        published = self.published
        if self.unknown and published:
            return False
        return not any(is_issued_by(leaf, authority) for leaf in self.shown for authority in published)

    def has_live_leaf(self, authority: x509.Certificate) -> bool:
        return any(is_issued_by(leaf, authority) for leaf in self.shown)


def look(state: State, now: dt.datetime) -> Seen:
    """Reads a state; nothing in it can make this fail."""
    damage: list[str] = []
    data = state.authority
    if data is not None and not data.keys() & {"ca.crt", "ca.key", "next.crt", "next.key"}:
        damage.append(f"{AUTHORITY}: the Secret is empty")
    current, following = (_signer(data or {}, name, damage) for name in ("ca", "next"))
    leaves, faults = {}, list(damage)
    for secret, leaf in state.leaves.items():
        leaves[secret] = _leaf(secret, leaf, faults)
    shown = [*(leaf.certificate for leaf in leaves.values() if leaf), *_served(state)]
    torn = [name for name, held in state.published.items() if _is_torn(held)]
    faults.extend(f"{name}: the bundle holds what is no certificate" for name in torn)
    return Seen(
        now=now,
        current=current,
        next=following,
        previous=frozenset(certificates_in((data or {}).get(PREVIOUS, b""))),
        retired=_past((data or {}).get(RETIRED, b""), now),
        damage=tuple(damage),
        leaves=leaves,
        shown=tuple(dict.fromkeys(leaf for leaf in shown if is_valid(leaf, now))),
        unknown=None in state.serving.values(),
        bundles={name: frozenset(certificates_in(held.pem)) for name, held in state.published.items()},
        torn=frozenset(torn),
        faults=tuple(faults),
    )


def issued_at(leaf: x509.Certificate) -> dt.datetime:
    return leaf.not_valid_before_utc + BACKDATE


def in_order(certificates: Iterable[x509.Certificate]) -> list[x509.Certificate]:
    """Oldest first: a bundle stays the same to the byte while its certificates do."""
    return sorted(set(certificates), key=lambda each: (each.not_valid_before_utc, each.serial_number))


def _served(state: State) -> Iterator[x509.Certificate]:
    for shown in state.serving.values():
        yield from certificates_in(shown or b"")[:1]


def _leaf(secret: str, leaf: Leaf, faults: list[str]) -> Signed | None:
    if leaf.data is not None and not leaf.data.keys() & {"tls.crt", "tls.key"}:
        faults.append(f"{secret}: the Secret is empty")
    return _pair(leaf.data or {}, "tls", secret, faults)


def _signer(data: Data, name: str, faults: list[str]) -> Signed | None:
    pair = _pair(data, name, AUTHORITY, faults)
    if pair is None or is_authority(pair.certificate):
        return pair
    faults.append(f"{AUTHORITY}: {name}.crt is not an authority's")
    return None


def _pair(data: Data, name: str, secret: str, faults: list[str]) -> Signed | None:
    """NAME.crt and NAME.key, or None; where only half of it is there, or unfit, that is a fault."""
    certificate, key = f"{name}.crt", f"{name}.key"
    if certificate not in data and key not in data:
        return None
    for each in (certificate, key):
        if not data.get(each):
            faults.append(f"{secret}: {each} is missing")
            return None
    try:
        return read_pair(data[certificate], data[key])
    except KeyOfAnother:
        faults.append(f"{secret}: {key} is not the key of {certificate}")
    except Unusable:
        faults.append(f"{secret}: {certificate} or {key} is no unencrypted PEM")
    return None


def _is_torn(held: Published) -> bool:
    found = len(certificates_in(held.pem))
    return held.pem.count(b"-----BEGIN ") != found or (not found and bool(held.pem.strip()))


def _past(text: bytes, now: dt.datetime) -> dt.datetime | None:
    try:
        read = dt.datetime.fromisoformat(text.decode())
        return read if read.tzinfo and read <= now + BACKDATE else None
    except (ValueError, OverflowError):
        return None
