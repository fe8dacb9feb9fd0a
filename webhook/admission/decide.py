"""decide: from a readable review to a Decision. The one place where modes and the server-wide cap soften a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from webhook.admission import messages
from webhook.admission.decision import Cause, Decision, Result, Would
from webhook.admission.review import BadCall, Review
from webhook.admission.understand import understand
from webhook.fields import Change, FieldsError, Request
from webhook.fields.errors import TooDeep
from webhook.policy.compiled import Event, Mode, Verdict
from webhook.policy.evaluate import Phase, evaluate
from webhook.policy.policyset import PolicySet

MAX_CAUSES = 100
MAX_ANNOTATION = 2000
ALLOWED = Decision()


def decide(policies: PolicySet, review: Review, phase: Phase, cap: Mode = Mode.ENFORCE) -> Decision:
    """Judges a review. Raises BadCall (400) where its managedFields cannot be read."""
    request = review.request
    if request is None or not policies.about(request):
        return ALLOWED
    try:
        change = understand(request)
        verdict = evaluate(policies, change, phase)
    except (RecursionError, TooDeep):
        return _too_deep(policies, request, cap)
    except FieldsError as error:
        raise BadCall(400, "unreadable-claims", error.message) from None
    return soften(verdict, change, cap)


def soften(verdict: Verdict, change: Change, cap: Mode) -> Decision:
    """The decision after modes: Audit records, Warn tells as well, Enforce acts."""
    if not verdict.events:
        return Decision(manager=change.requester.manager)
    told = [_Told(event, event.policy.mode.capped(cap), messages.finding(event, change)) for event in verdict.events]
    refused = [item for item in told if item.refuses]
    results = tuple(_result(item, change) for item in told)
    return Decision(
        allowed=not refused,
        message="\n".join(messages.denial(item.event, item.finding) for item in refused),
        causes=_causes(refused),
        warnings=messages.within_limits(
            messages.warning(item.event, item.finding, would_deny=denies(item.event)) for item in told if item.warns
        ),
        audit_annotations=_annotations(results, allowed=not refused),
        results=results,
        policies=tuple(dict.fromkeys(item.event.policy.name for item in told)),
        manager=change.requester.manager,
    )


class _Told(NamedTuple):
    """An event, the mode that it is taken in, and its sentence."""

    event: Event
    mode: Mode
    finding: str

    @property
    def refuses(self) -> bool:
        return self.mode is Mode.ENFORCE and denies(self.event)

    @property
    def warns(self) -> bool:
        """Warn tells of everything; Enforce of what it was asked to act on and let through."""
        if self.mode is Mode.ENFORCE:
            return self.event.action is not None and not denies(self.event)
        return self.mode is Mode.WARN


def denies(event: Event) -> bool:
    """Whether Enforce refuses the request for this event.

    A change or a tampering that a policy wants rewritten is refused as long as nothing rewrites it.
    """
    if event.action is None:
        return False
    return not event.action.rewrites or event.kind in ("change", "tamper")


def _result(told: _Told, change: Change) -> Result:
    event, request, identity = told.event, change.request, change.requester.identity
    return Result(
        kind=event.kind,
        policy=event.policy.name,
        rule=event.rule,
        mode=told.mode,
        action=event.action,
        outcome="refused" if told.refuses else "recorded",
        would=_would(event),
        paths=event.paths,
        owner=event.owner,
        manager=identity.manager if identity is not None else None,
        operation=identity.operation if identity is not None else None,
        user=request.user.name,
        resource=_resource(request),
        namespace=request.namespace,
        name=request.name,
        dry_run=request.dry_run,
        message=told.finding,
    )


def _would(event: Event) -> Would:
    if event.action is None:
        return "record"
    return event.action.value.lower()  # type: ignore[return-value]  # the actions' names, in lower case


def _resource(request: Request) -> str:
    name = request.resource.resource
    if request.subresource:
        name += f"/{request.subresource}"
    return f"{name}.{request.resource.group}" if request.resource.group else name


def _causes(refused: Iterable[_Told]) -> tuple[Cause, ...]:
    every = (
        Cause(path, f"[{item.event.policy.name}/{item.event.rule}] {messages.cause(item.event)}")
        for item in refused
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
    enforced = [policy.name for policy in policies.about(request) if policy.mode.capped(cap) is Mode.ENFORCE]
    text = "the object nests too deeply to be judged"
    if not enforced:
        return Decision(warnings=(text,))
    return Decision(allowed=False, message=f"[{', '.join(enforced)}] {text}", policies=tuple(enforced))
