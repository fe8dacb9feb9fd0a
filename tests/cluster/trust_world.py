"""A cluster in memory, as far as certificates go: Secrets, bundles, API servers and pods that lag, controllers that stall."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from webhook.certificates import Unusable, certificates_in, read_pair
from webhook.cluster import authority
from webhook.cluster.authority import IssueLeaf, Publish, Wait, WriteAuthority
from webhook.cluster.trust import Data, Leaf, Lifetimes, Published, State

DAY, HOUR, MINUTE = dt.timedelta(days=1), dt.timedelta(hours=1), dt.timedelta(minutes=1)
START = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
LIFETIMES = Lifetimes(authority=40 * DAY, leaf=12 * DAY, settle=5 * MINUTE, margin=HOUR)
NAMES = authority.service_names("fieldwarden", "policies")
CALLED = x509.DNSName("fieldwarden.policies.svc")

KUBELET = 12 * HOUR  # at the latest a pod has a new leaf
DEAD = DAY  # at the latest some controller runs and nothing fails
TAMPERING = LIFETIMES.leaf  # between two misfortunes with Secrets
CONFIGURATIONS = ("validating", "mutating")
LEAF, AUTHORITY = "leaf", "authority"


class Conflict(Exception):
    """It is no longer as it was read."""


class Failed(Exception):
    """The API server did not answer."""


@dataclass
class Bundle:
    """What a configuration has carried, and how much of that each API server has noticed."""

    history: list[tuple[bytes, dt.datetime]]
    noticed: list[int]


@dataclass
class Snapshot:
    """What a controller has read, part by part, with the versions to write under."""

    published: dict[str, Published]
    serving: dict[str, bytes | None]
    versions: dict[str, int]
    leaf: Data | None = None
    authority: Data | None = None


@dataclass
class World:
    random: Random
    lifetimes: Lifetimes = LIFETIMES
    now: dt.datetime = START
    secrets: dict[str, Data] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    bundles: dict[str, Bundle] = field(default_factory=dict)
    pods: dict[str, tuple[bytes, dt.datetime]] = field(default_factory=dict)  # leaf shown, since when it is behind
    healthy: dt.datetime = START
    tampered: dt.datetime = START
    stalled: list[Snapshot] = field(default_factory=list)
    signers: list[bytes] = field(default_factory=list)  # all authorities that ever signed
    _verified: dict[tuple[bytes, bytes], tuple[dt.datetime, dt.datetime]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        for name in CONFIGURATIONS:
            self.bundles[name] = Bundle([(b"", self.now)], [0, 0])
            self.versions[name] = next(self._numbers)

    # What a controller does

    def observe(self, *, blind: bool = False) -> Snapshot:
        """The first half: what is published and served."""
        published = {name: Published(*bundle.history[-1]) for name, bundle in self.bundles.items()}
        serving = {pod: None if blind else shown for pod, (shown, _) in self.pods.items()}
        return Snapshot(published, serving, dict(self.versions))

    def read_secrets(self, snapshot: Snapshot) -> State:
        for name in (LEAF, AUTHORITY):
            snapshot.versions[name] = self.versions.get(name, 0)
        snapshot.leaf, snapshot.authority = self.secrets.get(LEAF), self.secrets.get(AUTHORITY)
        leaves = {LEAF: Leaf(NAMES, snapshot.leaf)}
        return State(snapshot.published, snapshot.serving, leaves, snapshot.authority)

    def control(
        self, snapshot: Snapshot, fails: Callable[[], bool] = lambda: False, pause: Callable[[], None] = lambda: None
    ) -> bool:
        """One step and its writes, with time to stall in between; whether it came to wait."""
        state = self.read_secrets(snapshot)
        when = self.now
        for action in authority.step(state, when, self.lifetimes):
            pause()
            if isinstance(action, Wait):
                assert action.until > when
                return True
            if fails():
                raise Failed
            self._carry_out(action, snapshot, when)
        return False

    def _carry_out(self, action: authority.Action, snapshot: Snapshot, when: dt.datetime) -> None:
        match action:
            case WriteAuthority():
                data = authority.written(action, when, self.lifetimes)
                self._write(AUTHORITY, data, snapshot)
                self.signers.append(data.get("ca.crt", b""))
            case IssueLeaf():
                self._write(LEAF, authority.issued(action, when, self.lifetimes), snapshot)
            case Publish(name, pem):
                self._check(name, snapshot)
                self.bundles[name].history.append((pem, self.now))

    def _write(self, name: str, data: Data, snapshot: Snapshot) -> None:
        self._check(name, snapshot)
        self.secrets[name] = data

    def _check(self, name: str, snapshot: Snapshot) -> None:
        if self.versions.get(name, 0) != snapshot.versions.get(name, 0):
            raise Conflict(name)
        self.versions[name] = snapshot.versions[name] = next(self._numbers)

    def settle(self) -> None:
        """A controller that nothing happens to, until it waits."""
        for _ in range(10):
            if self.control(self.observe()):
                self.healthy = self.now
                return
        raise AssertionError("it never comes to wait")

    # What time does

    def advance(self, duration: dt.timedelta) -> None:
        end = self.now + duration
        while self.now < end:
            self.now = min(end, self.now + self.random.choice((5 * MINUTE, 2 * HOUR, 6 * HOUR)))
            self.catch_up()

    def catch_up(self) -> None:
        """Nobody lags for longer than is promised."""
        for bundle in self.bundles.values():
            for server in range(len(bundle.noticed)):
                while (
                    bundle.noticed[server] + 1 < len(bundle.history)
                    and bundle.history[bundle.noticed[server] + 1][1] + self.lifetimes.settle <= self.now
                ):
                    bundle.noticed[server] += 1
        for pod, (shown, behind) in list(self.pods.items()):
            if shown == self.secrets.get(LEAF, {}).get("tls.crt"):
                self.pods[pod] = shown, self.now
            elif behind + KUBELET <= self.now:
                self.sync(pod)
        self.check()
        if self.healthy + DEAD <= self.now:
            self.settle()
            self.check()

    def notice(self, server: int) -> None:
        for bundle in self.bundles.values():
            bundle.noticed[server] = len(bundle.history) - 1

    # What pods do

    def sync(self, pod: str) -> None:
        """The kubelet brings the Secret; the server keeps its last good certificate where that cannot be used."""
        if leaf := self._usable_leaf():
            self.pods[pod] = leaf, self.now

    def start(self, pod: str) -> None:
        """Without a usable Secret it does not start."""
        self.pods.pop(pod, None)
        self.sync(pod)

    def _usable_leaf(self) -> bytes | None:
        data = self.secrets.get(LEAF)
        try:
            return read_pair(data["tls.crt"], data["tls.key"]).certificate_pem if data else None
        except (Unusable, KeyError):
            return None

    # Misfortunes

    def tamper(self, name: str, data: Data | None) -> None:
        if self.tampered + TAMPERING > self.now or name not in self.secrets:
            return
        self.tampered = self.now
        self.versions[name] = next(self._numbers)
        if data is None:
            del self.secrets[name]
            self.versions.pop(name)
        else:
            self.secrets[name] = data

    # What must hold

    def check(self) -> None:
        """Every pod's leaf is trusted by whatever is published, and by what each API server has noticed of it."""
        for name, bundle in self.bundles.items():
            for at in {*bundle.noticed, len(bundle.history) - 1}:
                for pod, (shown, _) in self.pods.items():
                    assert self._trusts(bundle.history[at][0], shown), f"{pod} is not trusted by {name} of {at}"

    def _trusts(self, bundle: bytes, leaf: bytes) -> bool:
        known = self._verified.get((bundle, leaf))
        if known is None or not known[0] <= self.now <= known[1]:
            known = trusted(bundle, leaf, self.now)
        if known is not None:
            self._verified[bundle, leaf] = known
        return known is not None


def trusted(bundle: bytes, leaf: bytes, now: dt.datetime) -> tuple[dt.datetime, dt.datetime] | None:
    """Since when and until when a client with the bundle trusts the leaf by this chain; None where it does not now."""
    found = certificates_in(bundle)
    if not found:
        return None
    verifier = PolicyBuilder().store(Store(list(found))).time(now).build_server_verifier(CALLED)
    try:
        chain = verifier.verify(certificates_in(leaf)[0], [])
    except VerificationError:
        return None
    return max(each.not_valid_before_utc for each in chain), min(each.not_valid_after_utc for each in chain)
