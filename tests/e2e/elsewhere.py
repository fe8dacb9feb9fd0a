"""Which stories are not told on a cluster, and why not: all others are. A name that is no story's any more is an error."""

from __future__ import annotations

from collections.abc import Iterable

ELSEWHERE = {
    "tests/stories/test_first_answer.py::test_nothing_forbidden_passes_while_the_server_starts": (
        "it stops and starts a process beside the API server; tests/e2e does that to pods"
    ),
    "tests/stories/test_shipped.py::test_every_object_replaced_by_itself_is_left_as_it_is": (
        "it replaces every object there is, and a living cluster's change meanwhile"
    ),
    "tests/rewriting/test_doors.py::test_without_the_mutating_call_it_is_refused": (
        "it takes the mutating call away, and the controller puts it back"
    ),
    "tests/rewriting/test_doors.py::test_without_the_mutating_call_shares_and_ghosts_are_refused": (
        "it takes the mutating call away, and the controller puts it back"
    ),
    "tests/rewriting/test_hostile.py": (
        "the other webhook is in the test's own process, which a cluster's API server cannot reach"
    ),
}


def split(names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Of the names of collected tests: those that are told elsewhere, with the reason; and names of ours that match none.

    A name of ours is not missed when nothing of its file was collected.

    >>> split(["tests/rewriting/test_hostile.py::test_not_undone[a]", "tests/stories/test_doors.py::test_a"])[1]
    []
    >>> split(["tests/rewriting/test_doors.py::test_a"])[1][0]
    'tests/rewriting/test_doors.py::test_without_the_mutating_call_it_is_refused'
    """
    given = list(names)
    files = {name.partition("::")[0] for name in given}
    left_out = {name: why for name in given for ours, why in ELSEWHERE.items() if _is_of(name, ours)}
    unknown = [
        ours
        for ours in ELSEWHERE
        if ours.partition("::")[0] in files and not any(_is_of(name, ours) for name in left_out)
    ]
    return left_out, unknown


def _is_of(name: str, ours: str) -> bool:
    return name == ours or name.startswith((f"{ours}[", f"{ours}::"))
