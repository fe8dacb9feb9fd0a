"""One API server, fieldwarden's server, and a listener on either side of it: what came, and what was let through."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from tests.histories.judge import Finding
from tests.histories.play import Fault, Stage
from tests.histories.shapes import Kind, Object
from tests.histories.steps import Step
from tests.histories.world import PUT, Seen, World, Write, told
from tests.rewriting_histories import expected
from tests.rewriting_histories.steps import made
from tests.rewriting_laws.answers import answer, patched
from tests.stories.server import Server
from webhook.admission import Decision, DoubtfulPatch
from webhook.admission.messages import NOT_HERE, UNDONE
from webhook.cluster import registration
from webhook.policy import PolicySet
from webhook.sandbox import Capture, Registration, Reply, Sandbox
from webhook.sandbox.beside import discovery

ACCOUNTS = {"flux": "flux", "argocd": "argocd", "helm": "helm", "autoscaler": "autoscaler"}
PEOPLE = ("developer", "developer", "admin", "oncall", "flux")
EXEMPT = "platform"
_LISTENER = "before-fieldwarden"  # mutating webhooks are called in the order of these names


@contextmanager
def listening(sandbox: Sandbox, server: Server, policies: PolicySet) -> Iterator[Capture]:
    """A listener that is asked before fieldwarden, and of what comes of it; both registered."""
    with Capture.start() as capture:
        rules = registration.rules(policies, discovery(policies, sandbox)).validating
        paths = []
        for phase in ("mutate", "validate"):
            wanted = Registration(capture.url, capture.ca_pem, rules, reinvocation="Never").configuration(phase)
            wanted["metadata"]["name"] = _LISTENER
            group = f"/apis/{wanted['apiVersion']}/{wanted['kind'].lower()}s"
            assert sandbox.request("POST", group, wanted).status == 201
            paths.append(f"{group}/{_LISTENER}")
        try:
            server.register(rules)  # returns once the API server acts on the earlier configurations too
            yield capture
        finally:
            for path in paths:
                sandbox.request("DELETE", path)
            sandbox.unregister_webhooks()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One write, what was asked about it, and what came of it."""

    kind: Kind
    write: Write
    before: Object | None
    came: Object | None  # the review before fieldwarden; None where the server refused the request itself
    passed: Object | None  # the review of the validating call
    reply: Reply
    after: Object | None  # as stored, or as a dry run says it would be

    @property
    def done(self) -> bool:
        return self.reply.status in (200, 201)

    @property
    def message(self) -> str:
        return str(self.reply.body.get("message", ""))


@dataclass(slots=True)
class RewritingStage(Stage):
    """Histories in one namespace, under the policies of one. Raises Fault where something else is stored than was decided."""

    policies: PolicySet = field(default_factory=lambda: PolicySet(()))

    def play(self, kind: Kind, steps: Sequence[Step]) -> None:
        world = World(self.sandbox, self.capture, kind, self.namespace, f"rewriting-{self.tally['objects']}")
        self.tally["objects"] += 1
        log: list[str] = []
        for step in steps:
            write = made(step, world)
            if write is None:
                continue
            write = replace(write, user=_user(Random(f"{step.seed} user"), write), honest=None)
            log.append(f"{step} by {write.user}: {told(write)}")
            self.tally["writes"] += 1
            self._judge_exchange(world, self._exchange(world, write), log)

    def _exchange(self, world: World, write: Write) -> Exchange:
        before = world.get(write.version)
        self.capture.take()
        reply = self._send(world, write)
        last = {call.phase: call.review for call in self.capture.take()}
        came, passed = last.get("mutate"), last.get("validate")
        after: Object | None = reply.body
        if reply.status in (200, 201) and not write.dry_run and came is not None and not write.subresource:
            kind = came["request"]["kind"]
            version = f"{kind['group']}/{kind['version']}".removeprefix("/")
            after = world.get(version)
        elif write.subresource == "scale" and not write.dry_run:
            after = world.get(write.version)
        return Exchange(world.kind, write, before, came, passed, reply, after)

    def _send(self, world: World, write: Write) -> Reply:
        params = {"fieldManager": write.manager} if write.named else {}
        if write.operation == "Apply":
            params["force"] = str(write.force).lower()
        if write.dry_run:
            params["dryRun"] = "All"
        path = world.path(write.version, write.subresource, collection=write.creates)
        agent = "some-client/1.0" if write.named else f"{write.manager}/v1.2 (linux/amd64)"
        body = copy.deepcopy(write.body)
        return self.sandbox.request(write.method, path, body, write.user, write.content_type, params, user_agent=agent)

    def _judge_exchange(self, world: World, seen: Exchange, log: list[str]) -> None:
        if seen.came is None:
            self.tally["refused before any webhook"] += 1
            assert "webhook" not in seen.message, seen.message
            return
        try:
            decision = answer(self.policies, seen.came, "mutate")
            findings = list(self._findings(world, seen, decision))
        except DoubtfulPatch as doubt:
            findings = [Finding("decided", "any answer", str(doubt))]
        if findings:
            shown = Seen(seen.kind, seen.write, "mutate", seen.came, seen.reply, seen.before)
            raise Fault(shown, findings, log)

    def _findings(self, world: World, seen: Exchange, decision: Decision) -> Iterator[Finding]:
        assert seen.came is not None
        for result in decision.results:
            if result.outcome == "rewritten":
                self.tally[f"rewritten: {'Restore claims' if result.kind == 'tamper' else result.action}"] += 1
        self.tally["patched"] += bool(decision.patch)
        if seen.done:
            yield from self._stored(world, seen, decision)
        elif "denied the request" in seen.message:
            yield from self._denied(seen, decision)
        elif decision.patch and seen.reply.status == 422:
            yield from self._invalid(world, seen)
        elif seen.reply.status >= 500:
            yield Finding("answer", "any other", f"{seen.reply.status} {seen.message}")
        else:
            self.tally["refused by the server"] += 1

    def _stored(self, world: World, seen: Exchange, decision: Decision) -> Iterator[Finding]:
        assert seen.came is not None
        self.tally["stored"] += 1
        wanted = patched(seen.came["request"]["object"], decision)
        if seen.write.subresource == "scale":
            if seen.after is not None and not seen.write.dry_run:
                yield from expected.scale_findings(wanted, seen.after)
            return
        if seen.write.subresource or seen.after is None:
            return
        if seen.write.dry_run and wanted["apiVersion"] != seen.after["apiVersion"]:
            self.tally["dry runs in another version"] += 1
            return
        for finding in expected.value_findings(seen.kind, wanted, seen.after):
            if isinstance(finding, Finding):
                yield finding
            else:
                self.tally[finding] += 1
        yield from expected.claim_findings(wanted, seen.after)
        if decision.patch and not seen.write.dry_run:
            yield from self._left_alone(world, seen.after)

    def _left_alone(self, world: World, stored: Object) -> Iterator[Finding]:
        """Writing what is stored changes nothing, the claims' order included."""
        if expected.has_twins(stored):
            self.tally[expected.TWINS] += 1
            return
        path = world.path(stored["apiVersion"])
        reply = self.sandbox.request("PUT", path, stored, "developer", PUT, {"fieldManager": "kubectl-edit"})
        if reply.status != 200:
            yield Finding("no-op", 200, f"{reply.status} {reply.body.get('message')}")
        elif _shown(reply.body) != _shown(stored):
            yield Finding("no-op", "nothing stored", "another object")
        elif reply.body["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            self.tally[expected.RESPELT] += 1

    def _denied(self, seen: Exchange, decision: Decision) -> Iterator[Finding]:
        self.tally["denied"] += 1
        if decision.patch:
            changed = set(self._by_the_server(seen, decision))
            if expected.DROPPED in changed:
                self.tally[expected.DROPPED_AND_REFUSED] += 1
                return
            if expected.DEFAULTED in changed and "may not edit claims" in seen.message:
                self.tally[expected.DEFAULTED_AND_REFUSED] += 1
                return
            yield Finding("denied what was rewritten", "", seen.message)
        told = seen.message.split("\n")
        if all(UNDONE in line for line in told):
            yield Finding("denied for what was not rewritten", "", seen.message)
        elif all(NOT_HERE in line for line in told):
            self.tally[expected.SUBRESOURCE] += 1
        elif any(reason in line for line in told for reason in ("(Restore: ", "(Reassign: ") if UNDONE not in line):
            self.tally[expected.CANNOT] += 1
        if decision.allowed and seen.passed is not None:
            again = answer(self.policies, seen.passed, "validate")
            if again.allowed:
                yield Finding("denied", "allowed", seen.message)

    def _by_the_server(self, seen: Exchange, decision: Decision) -> Iterator[Finding | str]:
        """What came of the patched object until the validating call was made."""
        if seen.came is not None and seen.passed is not None and not seen.write.subresource:
            wanted = patched(seen.came["request"]["object"], decision)
            yield from expected.value_findings(seen.kind, wanted, seen.passed["request"]["object"])

    def _invalid(self, world: World, seen: Exchange) -> Iterator[Finding]:
        """The rewrite made it so, where the same write passes for somebody whom policies leave alone."""
        twin = self._send(world, replace(seen.write, user=EXEMPT, dry_run=True))
        if twin.status in (200, 201):
            self.tally[expected.INVALID] += 1
            self.tally[f"{expected.INVALID}: {_fields(seen.reply)}"] += 1
        else:
            self.tally["refused by the server"] += 1
        yield from ()


def _shown(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}


def _fields(reply: Reply) -> str:
    causes = (reply.body.get("details") or {}).get("causes") or ()
    return ", ".join(sorted({str(cause.get("field")) for cause in causes}))


def _user(rng: Random, write: Write) -> str:
    """The account behind a name, mostly."""
    account = ACCOUNTS.get(write.manager)
    return account if account is not None and rng.random() < 0.7 else rng.choice(PEOPLE)
