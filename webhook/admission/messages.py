"""The sentences that people read: what happened, who did it, and the way out. Paths and names, never values."""

from __future__ import annotations

from collections.abc import Iterable

from webhook.fields import Change, Identity, visible
from webhook.policy.compiled import Action, Event

SHOWN_PATHS = 5
MAX_PATH = 300  # characters; whatever a client cares to write may stand in a path
MAX_NAME = 300  # of a user or manager, or of what is said of several
MAX_MESSAGE = 4096
MAX_WARNING = 250  # the server cuts at 256 once all together pass 4096 characters
MAX_WARNINGS = 4096


UNDONE = "this was not done, or something undid it; see whether the mutating webhook is called, and what others change"
NOT_ALONE = "this was not done, since what another rule asks for cannot be"
NOT_HERE = "nothing is rewritten through a subresource"


def denials(sentences: Iterable[str]) -> str:
    """Each in a line, as many as people read; the last says how many more there are."""
    kept: list[str] = []
    every = list(sentences)
    room = MAX_MESSAGE
    for text in every:
        room -= len(text)
        if room < 0 and kept:
            kept.append(f"and {len(every) - len(kept)} more")
            break
        kept.append(text)
    return "\n".join(kept)


def denial(event: Event, finding: str, why: str) -> str:
    """One event that refuses the request, with its remedy; `why` a rewrite that the policy asks for was not done."""
    text = f"[{event.policy.name}/{event.rule}] {finding} {_remedy(event)}".rstrip()
    return visible(f"{text} ({event.action}: {why}.)" if why else text)


def warning(event: Event, finding: str) -> str:
    """One event that lets the request through, in a line."""
    if event.action is None:
        lead = ""
    elif event.action.rewrites:
        lead = f"{event.action.value} is called for: "
    else:
        lead = "would be refused: "
    return cut(visible(f"[{event.policy.name}/{event.rule}] {lead}{finding}"), MAX_WARNING)


def rewritten(event: Event) -> str:
    """What was done to the request, and why, in a line."""
    return cut(visible(f"[{event.policy.name}/{event.rule}] {_done(event)}"), MAX_WARNING)


def _done(event: Event) -> str:
    paths = listed(event.paths)
    one = len(event.paths) == 1
    them = "it is" if one else "they are"
    match event.action:
        case Action.RESTORE if event.kind == "tamper":
            return f"restored {event.note.partition(':')[0]}: claims are not edited"
        case Action.RESTORE:
            return f"restored {paths}: {them} owned by {event.owner}"
        case Action.REASSIGN:
            return f"returned {paths} to {named(event.owner)}, whose next apply sets {'it' if one else 'them'} again"
        case Action.RELEASE:
            return f"released {paths} from {_joined(event.claims)}: {event.owner} owns {'it' if one else 'them'}"
        case Action.PRUNE:
            return f"pruned {paths}: dropped by {event.owner}, {event.note}"
        case Action.RENAME:
            return f"renamed {event.owner} {event.note.replace('to be called', 'to')}"
    return ""


def _joined(claims: Iterable[Identity]) -> str:
    return ", ".join(map(str, claims))


def finding(event: Event, change: Change) -> str:
    """What was found, in one sentence, as it is recorded."""
    user = named(change.request.user.name)
    who = f"{named(str(change.requester))} by {user}"
    owner, note, paths = named(event.owner), named(event.note), listed(event.paths)
    one = len(event.paths) == 1
    match event.kind:
        case "change":
            return f"{who} may not change {paths}: {'it is' if one else 'they are'} owned by {owner}."
        case "share":
            return f"{paths}: {note}."
        case "ghost":
            return f"{owner} dropped {paths}, {'which is' if one else 'which are'} {note}."
        case "writer":
            return f"{who} may not write here: {note}."
        case "impersonation":
            return f"{user} may not write as {named(str(change.requester.manager))}: {note}."
        case "tamper":
            return f"{who} may not edit claims: {note}{': ' + paths if paths else ''}."
        case "rename":
            return f"{owner} is {note}."


def _remedy(event: Event) -> str:
    match event.kind:
        case "change" if "(Apply)" in event.owner:
            return "Change it in Git and let it be applied."
        case "change":
            return f"Leave it to {named(event.owner)}."
        case "share":
            return "Leave out of your manifest what others own."
        case "writer" if event.owner.startswith("kubectl-client-side-apply"):
            return "Change it in Git, or use kubectl apply --server-side."
        case "writer":
            return "Write under a manager that the policy allows, or change it where the object comes from."
        case "impersonation":
            return "Use a field manager of your own (--field-manager)."
        case "tamper":
            return "Leave metadata.managedFields as it is, or out of what you send."
        case "ghost" | "rename":
            return ""


def cause(event: Event) -> str:
    """The words beside one path in `details.causes`."""
    match event.kind:
        case "change":
            return f"owned by {named(event.owner)}"
        case "tamper":
            return f"the claim of {named(event.owner)} was edited"
        case _:
            return named(event.note)


def listed(paths: tuple[str, ...]) -> str:
    """A few paths in words."""
    shown = ", ".join([cut(path, MAX_PATH) for path in paths[:SHOWN_PATHS]])
    more = len(paths) - SHOWN_PATHS
    return f"{shown} and {more} more" if more > 0 else shown


def named(name: str) -> str:
    """A name, or what is said of several, as it stands in a sentence."""
    return visible(cut(name, MAX_NAME))


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def within_limits(warnings: Iterable[str]) -> tuple[str, ...]:
    """As many warnings as the server passes on whole; the last says how many more there are."""
    kept: list[str] = []
    every = list(dict.fromkeys(warnings))
    room = MAX_WARNINGS - 40
    for text in every:
        if room < len(text.encode()):
            kept.append(f"and {len(every) - len(kept)} more warnings")
            break
        kept.append(text)
        room -= len(text.encode())
    return tuple(kept)
