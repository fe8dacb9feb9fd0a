"""Which stories are not told again, or not to their end, or not all of what they say is compared; and why not.

All others are. A name that is no story's any more is an error, and so is one that could be told after all.
"""

from __future__ import annotations

from typing import Any

LEFT_OUT = {
    "stories/test_first_answer.py": "it waits for denials while the server starts",
    "stories/test_shipped.py::test_every_object_replaced_by_itself_is_left_as_it_is": (
        "it replaces what each API server has made for itself, which no other has"
    ),
    "rewriting/test_autoscaler.py": "its controllers write when they like; the same writes are told by hand elsewhere",
    "rewriting/test_people.py::test_an_applys_claim_is_never_renamed": "it lints a policy, and writes nothing",
}

SHORT = {
    "stories/test_kinds.py::test_a_cluster_scoped_objects_rules": "its last write is told; then it unpacks a denial",
}

SILENT = {
    "rewriting/test_quiet.py::test_clients_that_change_nothing": 1,
    "rewriting/test_reassign.py::test_everybody_else_is_refused": 3,
}
"""Steps that send no write, as kubectl sends none where nothing is to be changed."""

OTHERWISE = {
    # Another webhook undoes what Enforce has rewritten: Enforce is asked more than once, and finds it each time.
    "once": ("rewriting/test_hostile.py::test_undone_once", "rewriting/test_hostile.py::test_undone_always"),
    # Enforce puts an edited claim right, and with it goes what else was wrong with it.
    "more": ("rewriting/test_attacks.py::test_a_rename_by_hand_hides_no_edit",),
    # A Scale shows claims to the mutating call alone, which is asked where it rewrites: the audit names no manager.
    "unnamed": (
        "rewriting/test_restore.py::test_replicas_through_scale_where_they_are_claimed",
        "rewriting/test_restore.py::test_replicas_through_scale_where_a_leftover_claims_them",
    ),
}
"""Where the audit records something else than Enforce does, and in which way."""

NAMED_ANEW: dict[str, dict[str, Any]] = {
    "rewriting/test_quiet.py": {"ROUNDS": 6},  # each round is the same again
}


def is_of(nodeid: str, name: str) -> bool:
    """Whether a story told again is of that name.

    >>> is_of("tests/audit/stories/test_retold.py::test_doors.py::test_scale[1]", "stories/test_doors.py::test_scale")
    True
    >>> is_of("tests/audit/stories/test_retold.py::test_doors.py::test_scaled", "stories/test_doors.py::test_scale")
    False
    """
    told = nodeid.removeprefix("tests/audit/").replace("test_retold.py::", "", 1)
    return told == name or told.startswith((f"{name}[", f"{name}::"))
