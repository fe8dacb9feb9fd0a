"""decide: from a readable review to a Decision. The one place where modes and the server-wide cap soften a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from webhook.admission import messages
from webhook.admission.decision import Cause, Decision, Outcome, Ownership, Result, Would
from webhook.admission.judge import Judgement, judge, rewriters
from webhook.admission.mutate import mutated, refuses
from webhook.admission.patching import Operation
from webhook.admission.review import BadCall, Review
from webhook.admission.rewrite import asks_rewrite, can_rewrite, key_of
from webhook.fields import Change, Claim, FieldPath, FieldsError, FieldSet, Identity, ManagedFields, Request
from webhook.fields.errors import TooDeep
from webhook.policy.compiled import Action, Event, Mode, RenameRule
from webhook.policy.evaluate import Phase, needs_claims
from webhook.policy.policyset import PolicySet

MAX_CAUSES = 100
MAX_OWNERSHIP = 20
MAX_ANNOTATION = 2000
ALLOWED = Decision()


def decide(policies: PolicySet, review: Review, phase: Phase, cap: Mode = Mode.ENFORCE) -> Decision:
    """Judges a review. Raises BadCall (400) where its managedFields cannot be read, DoubtfulPatch for a bad rewrite."""
    request = review.request
    if request is None or not policies.about(request):
        return ALLOWED
    if phase == "mutate" and (request.is_outdated or not (request.is_scale or rewriters(policies, request, cap))):
        return ALLOWED
    try:
        judged = judge(policies, request, phase, cap)
        if phase == "mutate":
            return _mutating(policies, judged, cap)
        return _decision(list(_validating(judged, cap)), judged.change)
    except (RecursionError, TooDeep):
        return _too_deep(policies, request, cap)
    except FieldsError as error:
        if phase == "mutate" and not request.is_scale:
            return ALLOWED  # another webhook left them so; the server puts them back before the validating call
        raise BadCall(400, "unreadable-claims", error.message) from None


class _Told(NamedTuple):
    """An event, the mode that it is taken in, what came of it, and its sentence."""

    event: Event
    mode: Mode
    outcome: Outcome
    finding: str
    why: str = ""  # a rewrite was not done
    ownership: tuple[Ownership, ...] = ()

    @property
    def warns(self) -> bool:
        """Warn tells of everything; Enforce of what it rewrote, and of what it would have and let through."""
        if self.mode is Mode.ENFORCE:
            return self.outcome == "rewritten" or (self.outcome == "recorded" and bool(self.why))
        return self.mode is Mode.WARN


def _validating(judged: Judgement, cap: Mode) -> Iterator[_Told]:
    """The validating call denies and records; of what was rewritten, the mutating call has told and made its record."""
    request, blocked, denied = judged.came, judged.rewriting.blocked, refuses(judged, cap)
    for event in judged.verdict.events:
        mode, finding = event.policy.mode.capped(cap), messages.finding(event, judged.change)
        if not asks_rewrite(event, cap):
            refused = mode is Mode.ENFORCE and event.action is Action.DENY
            yield _Told(event, mode, "refused" if refused else "recorded", finding)
        elif not can_rewrite(request):
            refused = event.kind in ("change", "tamper")
            yield _Told(event, mode, "refused" if refused else "recorded", finding, messages.NOT_HERE)
        elif denied:
            yield _Told(event, mode, "recorded", finding)  # nothing is rewritten in a request that is denied anyway
        elif not judged.landed(event):
            why = messages.NOT_ALONE if blocked else messages.UNDONE
            yield _Told(event, mode, "refused", finding, blocked.get(key_of(event), why))


def _mutating(policies: PolicySet, judged: Judgement, cap: Mode) -> Decision:
    """The mutating call rewrites, and tells of that alone; on a Scale also of what no other call can judge."""
    here = [event for event in judged.verdict.events if judged.came.is_scale and _needs_claims(event)]
    done = mutated(policies, judged, cap)
    told = []
    for event in here:
        mode, finding = event.policy.mode.capped(cap), messages.finding(event, judged.change)
        why = judged.rewriting.blocked.get(key_of(event), "")
        if not asks_rewrite(event, cap) or done is None:
            refused = mode is Mode.ENFORCE and (event.action is Action.DENY or bool(why))
            told.append(_Told(event, mode, "refused" if refused else "recorded", finding, why))
    if done is None:
        return _decision(told, judged.change)
    before = judged.change.new_claims
    after = ManagedFields.of(done.obj)
    for event in done.events:
        finding = messages.finding(event, judged.change)
        told.append(_Told(event, Mode.ENFORCE, "rewritten", finding, "", _ownership(event, before, after)))
    return _decision(told, judged.change, done.patch)


def _needs_claims(event: Event) -> bool:
    return needs_claims(event.policy, event.found_by())


def _ownership(event: Event, before: ManagedFields, after: ManagedFields) -> tuple[Ownership, ...]:
    """Whose claims hold what was rewritten, without the rewrite and with it."""
    rule = event.found_by()
    if isinstance(rule, RenameRule):
        return (Ownership("", (event.owner,), tuple(str(claim._replace(manager=rule.to)) for claim in event.claims)),)
    if not event.fields:
        return (Ownership("", (event.owner,), (event.owner,)),)  # an API version was altered
    fields = event.fields
    was = {identity: claim.held_of(fields) for identity, claim in before.items()}
    now = {
        identity: was[identity] if identity in was and before[identity].entry is claim.entry else claim.held_of(fields)
        for identity, claim in after.items()
    }
    rows = islice(zip(event.paths, fields.paths, strict=False), MAX_OWNERSHIP)
    then, since = _by_name(was), _by_name(now)
    told = [Ownership(text, _among(then, path), _among(since, path)) for text, path in rows]
    if all(item.before or item.after for item in told):
        return tuple(told)
    return tuple(
        item if item.before or item.after else _around(item.path, path, before, after)
        for item, path in zip(told, fields.paths, strict=False)
    )


def _by_name(claims: Mapping[Identity, FieldSet]) -> list[tuple[str, FieldSet]]:
    return sorted(((str(identity), held) for identity, held in claims.items() if held), key=itemgetter(0))


def _among(claims: list[tuple[str, FieldSet]], path: FieldPath) -> tuple[str, ...]:
    return tuple([name for name, held in claims if path in held])


def _around(text: str, path: FieldPath, before: ManagedFields, after: ManagedFields) -> Ownership:
    """By whom the atomic value is held that a path is a part of."""
    seat = _seat(path, (*before.claims(), *after.claims()))
    return Ownership(text, _named(before.holders(seat)), _named(after.holders(seat)))


def _named(claims: Iterable[Identity]) -> tuple[str, ...]:
    return tuple(sorted(map(str, claims)))


def _seat(path: FieldPath, claims: tuple[Claim, ...]) -> tuple[str, ...]:
    """Where claims on a path stand: at the atomic value around it, where it is a part of one."""
    for length in range(2, len(path)):
        around = [claim for claim in claims if claim.reaches(path[:length])]
        if around and all(claim.holds_leaf(path[:length]) for claim in around):
            return path[:length]
    return path


def _decision(told: list[_Told], change: Change, patch: tuple[Operation, ...] = ()) -> Decision:
    """The answer: Audit records, Warn tells as well, Enforce acts."""
    if not told:
        return Decision(manager=change.requester.manager, patch=patch)
    refused = [item for item in told if item.outcome == "refused"]
    results = tuple(_result(item, change) for item in told)
    return Decision(
        allowed=not refused,
        message=messages.denials(messages.denial(item.event, item.finding, item.why) for item in refused),
        causes=_causes(refused),
        warnings=messages.within_limits(_warning(item) for item in told if item.warns),
        audit_annotations=_annotations(results, allowed=not refused),
        results=results,
        policies=tuple(dict.fromkeys(item.event.policy.name for item in told)),
        manager=change.requester.manager,
        patch=patch,
    )


def _warning(told: _Told) -> str:
    if told.outcome == "rewritten":
        return messages.rewritten(told.event)
    return messages.warning(told.event, told.finding)


def _result(told: _Told, change: Change) -> Result:
    event, request, identity = told.event, change.request, change.requester.identity
    return Result(
        kind=event.kind,
        policy=event.policy.name,
        rule=event.rule,
        mode=told.mode,
        action=event.action,
        outcome=told.outcome,
        would=_would(event),
        paths=event.paths,
        owner=event.owner,
        manager=identity.manager if identity is not None else None,
        operation=identity.operation if identity is not None else None,
        user=request.user.name,
        resource=request.resource.with_subresource(request.subresource),
        namespace=request.namespace,
        name=request.name,
        dry_run=request.dry_run,
        message=told.finding,
        ownership=told.ownership,
    )


def _would(event: Event) -> Would:
    if event.action is None:
        return "record"
    return event.action.value.lower()  # type: ignore[return-value]  # the actions' names, in lower case


def _causes(refused: Iterable[_Told]) -> tuple[Cause, ...]:
    every = (
        Cause(messages.cut(path, messages.MAX_PATH), words)
        for item in refused
        for words in [f"[{item.event.policy.name}/{item.event.rule}] {messages.cause(item.event)}"]
        for path in item.event.paths
    )
    return tuple(islice(every, MAX_CAUSES))


def _annotations(results: tuple[Result, ...], *, allowed: bool) -> dict[str, str]:
    told = (f"[{result.policy}/{result.rule}] {result.kind} ({result.would}): {result.message}" for result in results)
    return {
        "decision": "allowed" if allowed else "denied",
        "events": messages.cut(" ".join(told), MAX_ANNOTATION),
    }


def _too_deep(policies: PolicySet, request: Request, cap: Mode) -> Decision:
    """An object that nests too deeply to be followed must not pass where a policy is enforced."""
    modes = {policy.name: policy.mode.capped(cap) for policy in policies.about(request)}
    enforced = [name for name, mode in modes.items() if mode is Mode.ENFORCE]
    text = "the object nests too deeply to be judged"
    if not enforced:
        return Decision(warnings=(text,) if Mode.WARN in modes.values() else ())
    return Decision(allowed=False, message=f"[{', '.join(enforced)}] {text}", policies=tuple(enforced))
