"""Keeps certificates: reads what stands in the cluster, does the next step, and says when to look again.

`authority.step` decides; here is where its State comes from and where its actions go. Each Secret is written only as long as
it is as it was read.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from webhook.certificates import certificates_in
from webhook.cluster import authority
from webhook.cluster.api import Api, Object, decoded, version_of
from webhook.cluster.authority import IssueLeaf, Publish, Wait, WriteAuthority
from webhook.cluster.configurations import Standing
from webhook.cluster.endpoints import Shown
from webhook.cluster.errors import Missing
from webhook.cluster.trust import Data, Leaf, Lifetimes, Published, State

Source = Literal["own", "cert-manager", "files"]
"""Who keeps the webhook's certificate: we, cert-manager, or whoever made the Secret."""

Publisher = Callable[[str, bytes, str], bool]
"""Puts a bundle into the configuration of that name, for a reason; whether that was done. Raises Unreachable."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where certificates are kept, and for which Service's names."""

    namespace: str
    leaf: str
    service: str
    authority: str | None  # None: others sign

    def path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets/{name}"


@dataclass(frozen=True, slots=True)
class Kept:
    """What a turn came to. `steps`: what was done, for the log. `again`: whether to look again at once."""

    faults: tuple[str, ...]
    steps: tuple[str, ...] = ()
    again: bool = False
    until: dt.datetime | None = None
    expires: dt.datetime | None = None  # the authority that signs


@dataclass(frozen=True, slots=True)
class _Secret:
    data: Data | None  # None: there is none
    version: str = ""


def keep(
    api: Api,
    secrets: Secrets,
    standing: Iterable[Standing],
    shown: Iterable[Shown],
    publish: Publisher,
    now: dt.datetime,
    lifetimes: Lifetimes = authority.USUAL,
) -> Kept:
    """One turn. `standing` and `shown` were read before. Raises ApiError; then look again."""
    published = {str(one.target): Published(one.ours.bundle, one.since) for one in standing}
    serving = {one.endpoint.name: one.certificate for one in shown}
    leaf = _read(api, secrets.path(secrets.leaf))
    leaves = {secrets.leaf: Leaf(authority.service_names(secrets.service, secrets.namespace), leaf.data or None)}
    faults = [] if leaf.data is not None else [_missing(secrets.leaf)]
    if secrets.authority is None:
        return _follow(State(published, serving, leaves, None), publish, faults, now)
    own = _read(api, secrets.path(secrets.authority))
    if own.data is None:
        faults.append(_missing(secrets.authority))
    if faults:
        return Kept(tuple(faults))
    state = State(published, serving, leaves, own.data or None)  # the chart makes Secrets empty
    faults += authority.faults(state, now)
    signing = certificates_in((own.data or {}).get("ca.crt", b""))
    expires = signing[0].not_valid_after_utc if signing else None
    steps, changed = [], False
    for action in authority.step(state, now, lifetimes):
        match action:
            case WriteAuthority():
                _write(api, secrets.path(secrets.authority), own, authority.written(action, now, lifetimes))
                steps.append(f"the authority is written: {action.reason}")
            case IssueLeaf():
                _write(api, secrets.path(secrets.leaf), leaf, authority.issued(action, now, lifetimes))
                steps.append(f"a certificate is issued: {action.reason}")
            case Publish():
                changed |= publish(action.configuration, action.pem, action.reason)
            case Wait():
                return Kept(tuple(faults), until=action.until, expires=expires)
    return Kept(tuple(faults), tuple(steps), again=changed or bool(steps), expires=expires)


def _follow(state: State, publish: Publisher, faults: list[str], now: dt.datetime) -> Kept:
    """The Secret is somebody else's: only what it is signed by is ours to publish."""
    faults += authority.faults(state, now)
    done = [publish(action.configuration, action.pem, action.reason) for action in authority.follow(state, now)]
    (name, leaf), *_ = state.leaves.items()
    if leaf.data is not None and not leaf.data.get("ca.crt"):
        faults.append(f"{name}: ca.crt is missing: the API server cannot be told whom to trust")
    return Kept(tuple(dict.fromkeys(faults)), again=any(done))


def _missing(name: str) -> str:
    return f"the Secret {name} does not exist: `helm upgrade` makes it again"


def _read(api: Api, path: str) -> _Secret:
    try:
        item = api.get(path)
    except Missing:
        return _Secret(None)
    return _Secret({key: decoded(text) for key, text in (item.get("data") or {}).items()}, version_of(item))


def _write(api: Api, path: str, before: _Secret, data: Data) -> None:
    changed: Object = {key: base64.b64encode(value).decode() for key, value in data.items()}
    gone = dict.fromkeys((before.data or {}).keys() - data.keys())
    api.patch(path, {"metadata": {"resourceVersion": before.version}, "data": {**changed, **gone}})
