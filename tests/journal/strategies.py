"""Results, and when they were found."""

from __future__ import annotations

import datetime as dt

from hypothesis import strategies as st

from webhook.admission import Result
from webhook.policy.compiled import Action, Mode
from webhook.server.inbox import WAIT, Sender


def send(sender: Sender, message: bytes, wait: float = WAIT) -> bool:
    """As an answer does it."""
    return sender.wait(sender.put(message), wait)


START = (dt.datetime.now(dt.UTC) - dt.timedelta(days=1)).replace(hour=22, minute=0, second=0, microsecond=0)
"""Yesterday, late: who writes a journal forgets by the clock what is older than a month."""

names = st.sampled_from(["a", "b", "über", ""])
paths = st.lists(st.sampled_from([".spec.a", ".spec.b", '.spec.c[name="x"]', ".metadata.labels.ß"]), max_size=3)


@st.composite
def results(draw: st.DrawFn) -> Result:
    """Few enough different ones that they repeat."""
    return Result(
        kind=draw(st.sampled_from(["change", "share", "writer"])),
        policy=draw(names),
        rule="rule",
        mode=draw(st.sampled_from(list(Mode))),
        action=Action.DENY,
        outcome=draw(st.sampled_from(["refused", "recorded"])),
        would=draw(st.sampled_from(["deny", "restore"])),
        paths=tuple(sorted(draw(paths))),
        owner=draw(names),
        manager=draw(st.none() | names),
        operation=draw(st.sampled_from([None, "Apply", "Update"])),
        user=draw(names),
        resource=draw(st.sampled_from(["pods", "deployments.apps/status"])),
        namespace=draw(names),
        name=draw(names),
        dry_run=draw(st.booleans()),
        message="a sentence",
    )


moments = st.integers(0, 3 * 86_400_000_000).map(lambda ticks: START + dt.timedelta(microseconds=ticks))

sightings = st.tuples(st.lists(results(), min_size=1, max_size=3), moments)
"""What one review found, and when."""


def result(number: int = 0, **fields: object) -> Result:
    """One like any other, of the object with this number."""
    return Result(
        kind="change",
        policy="flux",
        rule="labels",
        mode=Mode.AUDIT,
        action=Action.DENY,
        outcome="recorded",
        would="deny",
        paths=(".metadata.labels.team",),
        owner="kustomize-controller (Apply)",
        manager="kubectl-edit",
        operation="Update",
        user="developer@example.com",
        resource="deployments.apps",
        namespace="shop",
        name=f"web-{number}",
        dry_run=False,
        message="a sentence",
    )._replace(**fields)
