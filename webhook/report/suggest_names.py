"""Which names are one program's: seen with a few users only, mostly service accounts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webhook.report.evidence import Evidence, Name, Place, is_machine, often, subjects
from webhook.report.suggest_fields import MAX_USERS, Refused
from webhook.report.texts import events


@dataclass(slots=True)
class Bindings:
    """Names to bind to their users."""

    bind: list[dict[str, Any]] = field(default_factory=list)
    places: set[Place] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def bindings(evidence: Evidence, *, deny_seen: bool) -> Bindings:
    """All users that were seen may go on; with `deny_seen` only machines, where most of a name's writes are theirs."""
    made = Bindings()
    for manager in sorted(evidence.names):
        name = evidence.names[manager]
        if not name.by_machines * 2 > name.events:
            continue  # people's, or anybody's
        users = [user for user in often(name.users) if user in name.bearers or not deny_seen]
        if why := _unfit(name, users):
            made.left_out.append(f"the name {manager}: {why}")
            continue
        made.bind.append({"manager": manager, "subjects": subjects(users)})
        made.places |= name.places
        made.told.append(_why(name, users))
        lost = sorted(set(name.users) - set(users))
        made.refused += [Refused(user, manager, name.users[user], "") for user in lost]
    return made


def _why(name: Name, users: list[str]) -> str:
    machines = [f"{user} ({events(name.users[user])})" for user in users if is_machine(user)]
    people = [f"{user} ({events(name.users[user])})" for user in users if not is_machine(user)]
    told = f"{name.manager}: {', '.join(machines)}"
    return f"{told}; and {', '.join(people)}: remove whoever should not bear the name" if people else told


def _unfit(name: Name, users: list[str]) -> str:
    if len(users) > MAX_USERS:
        return "too many users write under it"
    return "" if name.is_telling else "it, or one of its users, is hashed or cut, or would be read as a glob"
