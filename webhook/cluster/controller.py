"""The controller: certificates, registration and the status of policies, one turn after the other.

A turn reads all that stands in the cluster, does what is missing, and remembers nothing that it could not read again.
Only who leads takes turns. What fails is said and tried at the next turn; what is there stays.
"""

from __future__ import annotations

import datetime as dt
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from webhook.certificates import certificates_in
from webhook.cluster import configurations, registration, statuses
from webhook.cluster.api import Api, Object
from webhook.cluster.authority import USUAL, service_names
from webhook.cluster.configurations import MUTATE, POLICIES, POLICY_RULES, VALIDATE, Ours, Standing
from webhook.cluster.discovery import Discovery, discover
from webhook.cluster.endpoints import Pods, Shown, endpoints
from webhook.cluster.errors import ApiError, Missing, Unreachable
from webhook.cluster.informer import Lost, News, follow
from webhook.cluster.keeping import Kept, Secrets, keep
from webhook.cluster.known import KnownPolicies
from webhook.cluster.leader import RETRY, Leader
from webhook.cluster.resource import POLICIES as RESOURCES
from webhook.cluster.trust import Lifetimes
from webhook.policy import Mode

TICK = 0.5
"""Seconds between two looks at whether policies have changed."""

BUSY, IDLE = 1.0, 10.0
"""Seconds between two turns while something is on its way, and while nothing is."""


@dataclass(frozen=True, slots=True)
class Release:
    """Whose configurations, Service and Secrets these are, and what its webhook pods are told."""

    namespace: str
    name: str
    service: str
    lease: str
    secrets: Secrets
    mode: Mode = Mode.AUDIT
    from_cluster: bool = False
    strict: bool = False
    lifetimes: Lifetimes = USUAL

    @property
    def lease_path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{self.lease}"


@dataclass(frozen=True, slots=True)
class ControllerState:
    """How the controller does, for probes and metrics. `faults` are sentences for people."""

    leads: bool = False
    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  # about policies that are in force
    pods: int = 0  # ready ones
    registered: int = 0  # rules that stand in the configurations
    policies: int = 0
    left_out: int = 0
    turned: float = 0.0  # when a turn last ended, by a monotonic clock
    expires: dt.datetime | None = None  # the authority


@dataclass(slots=True)
class Controller:
    """One turn at a time."""

    api: Api
    release: Release
    known: KnownPolicies
    leader: Leader
    log: Any
    pods: Pods = field(default_factory=Pods)
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    state: ControllerState = ControllerState()
    _told: tuple[str, ...] = field(default=(), init=False)

    def turn(self) -> float:
        """Seconds until the next one. Never raises for what the API server says."""
        faults = [*self.known.faults]
        if self.known.lost:
            faults.append(f"the policies of the cluster cannot be followed: {self.known.lost}")
        if not self.leader.leads:
            self.state = ControllerState(faults=tuple(faults), policies=self._policies(), turned=monotonic())
            return TICK
        try:
            pause = self._lead(faults)
        except ApiError as error:
            faults.append(str(error))
            pause = BUSY
        self._tell(tuple(dict.fromkeys(faults)))
        return pause

    def _lead(self, faults: list[str]) -> float:
        """One turn of who leads, and seconds until the next. Raises ApiError."""
        release = self.release
        standing, missing = self._standing()
        faults += missing
        pods = endpoints(self.api, release.namespace, release.service)
        shown = self.pods.look(pods)
        faults += [f"{name}: {text}" for name, one in standing.items() for text in one.strange]
        distrusted: list[str] = []
        kept = self._keep(standing, shown, faults, distrusted)
        discovery = discover(self.known.policies, self._document) if self.known.policies else Discovery()
        before = len(faults)
        doubts, done = self._register(standing, shown, discovery, faults)
        self._write_statuses(discovery, "; ".join([*missing, *distrusted, *faults[before:]]), faults)
        self.state = replace(
            self.state,
            leads=True,
            doubts=doubts,
            pods=sum(one.ready for one in pods),
            registered=sum(len(one.ours.rules) for one in standing.values()),
            policies=self._policies(),
            left_out=len(self.known.left_out),
            expires=kept.expires,
        )
        if kept.again or not done:
            return BUSY
        left = (kept.until - self.now()).total_seconds() if kept.until else IDLE
        return min(max(left, BUSY), IDLE)

    def _standing(self) -> tuple[dict[str, Standing], list[str]]:
        """The configurations that are there, and words about those that are not."""
        found, missing = {}, []
        for target in configurations.targets(self.release.name, policies=self.release.from_cluster):
            one = configurations.read(self.api, target)
            if one is None:
                missing.append(f"{target} is not there: nothing is sent for it until `helm upgrade` makes it again")
            else:
                found[str(target)] = one
        return found, missing

    def _keep(
        self, standing: dict[str, Standing], shown: tuple[Shown, ...], faults: list[str], distrusted: list[str]
    ) -> Kept:
        def publish(name: str, pem: bytes, reason: str) -> bool:
            one = standing[name]
            try:
                standing[name] = configurations.apply(self.api, one, replace(one.ours, bundle=pem))
            except Unreachable:
                raise
            except ApiError as error:  # somebody else holds it: the others go on without that one
                distrusted.append(f"{name} does not trust our authority: {error}")
                return False
            self.log.info("an authority's bundle is published", configuration=name, why=reason)
            return True

        kept = keep(
            self.api, self.release.secrets, standing.values(), shown, publish, self.now(), self.release.lifetimes
        )
        faults += [*kept.faults, *distrusted]
        for step in kept.steps:
            self.log.info(step)
        return kept

    def _register(
        self, standing: dict[str, Standing], shown: tuple[Shown, ...], discovery: Discovery, faults: list[str]
    ) -> tuple[tuple[str, ...], bool]:
        """Doubts about policies, and whether all stands as it should."""
        policies = self.known.policies
        if policies is None:
            if not (self.known.faults or self.known.lost):
                faults.append("the policies have not been read yet")
            return (), False
        asked = registration.rules(policies, discovery, self.release.mode)
        exempt = tuple(registration.conditions(policies))
        wanted = {VALIDATE: asked.validating, MUTATE: asked.mutating, POLICIES: POLICY_RULES}
        before = len(faults)
        for name, one in standing.items():
            rules, is_gate = tuple(wanted[one.target.webhook]), one.target.webhook == POLICIES
            if not one.ours.rules and rules and (why := self._not_yet(one.ours.bundle, shown)):
                faults.append(f"{name} has no rules yet: {why}")
                continue
            ours = Ours(one.ours.bundle, rules, () if is_gate else exempt)
            if ours == one.ours or not ours.bundle:
                continue
            try:
                standing[name] = configurations.apply(self.api, one, ours)
            except ApiError as error:
                faults.append(f"{name}: {error}")
                continue
            self.log.info("webhook rules are registered", configuration=name, rules=len(rules))
        return asked.doubts, len(faults) == before

    def _not_yet(self, bundle: bytes, shown: tuple[Shown, ...]) -> str:
        """Why nothing may be sent to the pods yet: empty once all that are ready would be trusted."""
        if not certificates_in(bundle):
            return "there is no authority to trust"
        ready = [one.endpoint for one in shown if one.endpoint.ready]
        if not ready:
            return "no pod is ready"
        name = service_names(self.release.service, self.release.namespace)[2]
        for one in ready:
            if not self.pods.trusts(one, bundle, name):
                return f"the pod {one.name} does not show a certificate of the authority for {name}"
        return ""

    def _document(self, path: str) -> Object | None:
        try:
            return self.api.get(path)
        except Missing:
            return None

    def _write_statuses(self, discovery: Discovery, unsent: str, faults: list[str]) -> None:
        """`unsent`: why not all is registered; empty where it is."""
        if not self.known.resources or self.known.policies is None:
            return
        left_out = {one.name: one for one in self.known.left_out}
        in_force = {policy.name: policy for policy in self.known.policies.policies}
        now = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, resource in sorted(self.known.resources.items()):
            about = statuses.About(
                in_force.get(name), left_out.get(name), unsent, self.known.problems(resource), self.release.mode
            )
            wanted = statuses.status(resource, about, discovery, now)
            if not statuses.differs(resource, wanted):
                continue
            try:
                self.api.patch_status(f"{RESOURCES}/{name}", wanted)
            except Missing:
                continue  # it has just been taken away
            except ApiError as error:
                faults.append(f"the status of {name} cannot be written: {error}")
                return

    def _policies(self) -> int:
        return len(self.known.policies.policies) if self.known.policies else 0

    def _tell(self, faults: tuple[str, ...]) -> None:
        """Each fault once, as it comes and as it goes."""
        for fault in faults:
            if fault not in self._told:
                self.log.warning("not as it should be", fault=fault)
        for fault in self._told:
            if fault not in faults:
                self.log.info("no longer so", fault=fault)
        self._told = faults
        self.state = replace(self.state, leads=self.leader.leads, faults=faults, turned=monotonic())


def run(controller: Controller, stop: threading.Event) -> None:
    """Turns, as often as is called for, until told to stop; then another may lead at once."""
    news: queue.SimpleQueue[News | BaseException] = queue.SimpleQueue()
    if controller.release.from_cluster:
        threading.Thread(target=_follow, args=(controller.api, news), name="policies", daemon=True).start()
    elector = threading.Thread(target=_elect, args=(controller.leader, stop), name="leader", daemon=True)
    elector.start()
    due, led = 0.0, False
    while not stop.is_set():
        changed = _take(controller, news, TICK)
        if changed or monotonic() >= due or controller.leader.leads != led:
            led = controller.leader.leads
            due = monotonic() + controller.turn()
    elector.join(RETRY)
    controller.leader.release()


def _take(controller: Controller, news: queue.SimpleQueue[News | BaseException], patience: float) -> bool:
    """Learn what has come, and wait for it for a moment; whether policies are now others."""
    known, log = controller.known, controller.log
    before, left_out = known.policies, known.left_out
    try:
        one = news.get(timeout=patience)
        while True:
            if isinstance(one, BaseException):
                raise one
            if isinstance(one, Lost):
                log.warning("the policies cannot be followed", why=one.why)
            known.take(one)
            one = news.get_nowait()
    except queue.Empty:
        pass
    try:
        known.settle()
    except OSError as error:
        log.error("policies cannot be written to the folder for drafts", why=error.strerror)
    return known.policies is not before or known.left_out != left_out


def _follow(api: Api, news: queue.SimpleQueue[News | BaseException]) -> None:
    try:
        follow(api, RESOURCES, news.put, threading.Event())
    except BaseException as error:
        news.put(error)


def _elect(leader: Leader, stop: threading.Event) -> None:
    while not stop.is_set():
        leader.turn()
        stop.wait(RETRY)
