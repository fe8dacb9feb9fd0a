"""decide: from a readable review to a Decision. The one place where modes and the server-wide cap soften a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from webhook.admission import messages
from webhook.admission.decision import Cause, Decision, Result, Would
from webhook.admission.review import BadCall, Review
from webhook.admission.understand import understand
from webhook.fields import Change, FieldsError, Request
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
    except FieldsError as error:
        raise BadCall(400, "unreadable-claims", error.message) from None
    except RecursionError:
        return _too_deep(policies, request, cap)
    return soften(verdict, change, cap)


def soften(verdict: Verdict, change: Change, cap: Mode) -> Decision:
    """The decision after modes: Audit records, Warn tells as well, Enforce acts."""
    if not verdict.events:
        return Decision(manager=change.requester.manager)
    modes = [event.policy.mode.capped(cap) for event in verdict.events]
    refused = [
        event for event, mode in zip(verdict.events, modes, strict=True) if mode is Mode.ENFORCE and denies(event)
    ]
    warned = [
        messages.warning(event, change, would_deny=denies(event))
        for event, mode in zip(verdict.events, modes, strict=True)
        if mode is not Mode.AUDIT and not (mode is Mode.ENFORCE and (denies(event) or event.action is None))
    ]
    results = tuple(_result(event, mode, change) for event, mode in zip(verdict.events, modes, strict=True))
    return Decision(
        allowed=not refused,
        message="\n".join(messages.denial(event, change) for event in refused),
        causes=_causes(refused),
        warnings=messages.within_limits(warned),
        audit_annotations=_annotations(results, allowed=not refused),
        results=results,
        policies=tuple(dict.fromkeys(event.policy.name for event in verdict.events)),
        manager=change.requester.manager,
    )


def denies(event: Event) -> bool:
    """Whether Enforce refuses the request for this event.

    A change or a tampering that a policy wants rewritten is refused as long as nothing rewrites it.
    """
    if event.action is None:
        return False
    return not event.action.rewrites or event.kind in ("change", "tamper")


def _result(event: Event, mode: Mode, change: Change) -> Result:
    request, identity = change.request, change.requester.identity
    return Result(
        kind=event.kind,
        policy=event.policy.name,
        rule=event.rule,
        mode=mode,
        action=event.action,
        enforced=mode is Mode.ENFORCE and denies(event),
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
        message=messages.note(event, change),
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


def _causes(refused: Iterable[Event]) -> tuple[Cause, ...]:
    every = (
        Cause(path, f"[{event.policy.name}/{event.rule}] {messages.cause(event)}")
        for event in refused
        for path in event.paths
    )
    return tuple(islice(every, MAX_CAUSES))


def _annotations(results: tuple[Result, ...], *, allowed: bool) -> dict[str, str]:
    told = (
        f"{result.policy}/{result.rule} {result.kind} {result.mode.value} would={result.would} {messages.listed(result.paths)}"
        for result in results
    )
    return {
        "decision": "allowed" if allowed else "denied",
        "events": messages.cut("; ".join(text.rstrip() for text in told), MAX_ANNOTATION),
    }


def _too_deep(policies: PolicySet, request: Request, cap: Mode) -> Decision:
    """An object that nests too deeply to be followed must not pass where a policy is enforced."""
    enforced = [policy.name for policy in policies.about(request) if policy.mode.capped(cap) is Mode.ENFORCE]
    text = "the object nests too deeply to be judged"
    if not enforced:
        return Decision(warnings=(text,))
    return Decision(allowed=False, message=f"[{', '.join(enforced)}] {text}", policies=tuple(enforced))
