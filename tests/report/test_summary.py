"""What a report tells is what was recorded, counted right."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.report.made import DAY, DEVELOPER, FLUX, MONDAY, OBSERVING, SHIPPED, observed, policies, record
from webhook.report.asking import Asked
from webhook.report.drawn import tables
from webhook.report.enforced import enforced
from webhook.report.flapping import Flap, flapping
from webhook.report.matrix import matrix
from webhook.report.plain_data import as_data
from webhook.report.records import Record
from webhook.report.summary import Report, summarise


def summary(records: Sequence[Record]) -> Report:
    return summarise(records, [], Asked(), MONDAY)


def test_every_event_is_counted_once_in_every_section_that_counts_events() -> None:
    records = observed(policies(OBSERVING, SHIPPED), times=3)
    report = summary(records)
    writes = sum(one.count for one in records if not one.dry_run)
    assert report.writes == writes > 300
    assert report.dry_runs == sum(one.count for one in records if one.dry_run)
    assert sum(sum(view.effects.values()) for view in report.policies) == writes
    assert sum(one.seen.writes for one in report.writers) == writes
    assert sum(one.seen.dry_runs for one in report.writers) == report.dry_runs
    assert sum(day.total for day in report.days) == writes


def test_what_enforce_would_do_is_told_of_each_writer() -> None:
    (view,) = enforced([record(count=2), record(would="restore"), record(would="record", count=7), record(user="x")])
    told = [(one.user, one.effect, one.seen.writes) for one in view.writers]
    assert told == [(DEVELOPER, "fails", 2), ("x", "fails", 1), (DEVELOPER, "rewritten", 1), (DEVELOPER, "recorded", 7)]
    assert view.effects == {"fails": 3, "rewritten": 1, "recorded": 7}
    assert len(view.who) == 2


def test_dry_runs_are_counted_apart_and_still_would_fail() -> None:
    (view,) = enforced([record(dry_run=True, count=4)])
    assert (view.effects["fails"], view.seen.dry_runs, view.is_harmless) == (0, 4, False)


def test_what_was_refused_already_is_told() -> None:
    (view,) = enforced([record(outcome="refused", mode="Enforce", count=3), record()])
    (writer,) = view.writers
    assert (writer.already, writer.seen.writes) == (3, 4)


def test_the_mode_is_the_last_one_that_was_seen() -> None:
    later = record(mode="Warn", last=MONDAY + DAY)
    for order in ([record(), later], [later, record()]):
        assert enforced(order)[0].mode == "Warn"


def test_the_matrix_tells_who_writes_what_under_which_name() -> None:
    both = record(paths=(".metadata.labels.team", ".spec.replicas"), count=2)
    cells = {(cell.user, cell.manager, cell.path): str(cell.writes) for cell in matrix([both, record(user=FLUX)])}
    assert cells == {
        (DEVELOPER, "kubectl-edit", ".metadata.labels.team"): "≤2",
        (DEVELOPER, "kubectl-edit", ".spec.replicas"): "≤2",
        (FLUX, "kubectl-edit", ".metadata.labels.team"): "1",
    }


def test_in_the_matrix_a_write_of_which_several_rules_speak_counts_once() -> None:
    (cell,) = matrix([record(count=5), record(policy="other", count=5, would="record"), record(event="share", count=2)])
    assert (str(cell.writes), cell.worst, cell.policies) == ("5", "fails", {"labels", "other"})


def test_in_the_matrix_what_two_policies_say_of_different_objects_is_added_up() -> None:
    (cell,) = matrix([record(count=5), record(policy="other", name="db", count=4), record(dry_run=True, count=3)])
    assert (str(cell.writes), str(cell.dry_runs)) == ("9", "3")


def test_in_the_matrix_no_effect_is_told_with_the_number_of_another() -> None:
    team, new = ".metadata.labels.team", ".metadata.labels.new"
    observed = record(policy="observe", paths=(new, team), count=4, would="record")
    report = summary([record(), observed, record(would="restore", dry_run=True)])
    here = next(cell for cell in report.matrix if cell.path == team)
    assert {effect: str(number) for effect, number in here.effects.items()} == {
        "fails": "1",
        "rewritten": "0",
        "recorded": "≤4",
    }
    text = "\n".join(tables(report, color=False)).partition("Who writes what")[2]
    assert [one in text for one in ("would fail (1)", "would be rewritten (dry runs)", "only recorded (≤4)")] == [
        True
    ] * 3
    data = next(cell for cell in as_data(report)["matrix"] if cell["path"] == team)
    assert data["writesByEffect"] == {"fails": 1, "rewritten": 0, "recorded": 4}
    assert (data["writes"], data["dryRuns"], data["atMost"]) == (4, 1, True)


def test_a_number_that_is_known_is_not_called_at_most() -> None:
    once = record(paths=(".metadata.labels.a", ".metadata.labels.b"))
    (cell, _) = as_data(summary([once]))["matrix"]
    assert (cell["writes"], cell["atMost"]) == (1, False)
    (cell,) = matrix([record(count=5), record(policy="other", paths=(".metadata.labels.team", "…"), count=4)])[:1]
    assert str(cell.writes) == "5"


def flap(*records: Record) -> list[tuple[tuple[str, str], tuple[int, int], bool]]:
    return [(one.managers, one.writes, one.inferred) for one in flapping(records)]


def test_two_who_write_a_field_in_turns_flap() -> None:
    week = {"first": MONDAY, "last": MONDAY + 6 * DAY}
    owned = {"owner": "nobody", **week}
    flux = record(manager="kustomize-controller", user=FLUX, count=4, **owned)
    assert flap(record(count=5, **owned), flux) == [(("kubectl-edit", "kustomize-controller"), (5, 4), False)]


def test_a_field_among_others_of_its_record_may_have_been_written_once() -> None:
    """A label was changed once, and others three times; Flux took it back once, and brought an image once."""
    week = {"owner": "nobody", "first": MONDAY, "last": MONDAY + 6 * DAY}
    team, image, new = ".metadata.labels.team", ".spec.template.spec.containers[*].image", ".metadata.labels.new"
    flux = record(manager="kustomize-controller", user=FLUX, count=2, paths=(image, team), **week)
    assert flap(record(count=4, paths=(new, team), **week), flux) == []
    assert flap(record(count=4, paths=(new, team))) == []


def test_a_record_seen_once_proves_each_of_its_paths() -> None:
    both = (".metadata.labels.new", ".metadata.labels.team")
    users = [record(user=user, paths=both, last=MONDAY + day * DAY, owner="nobody") for day, user in enumerate("ac")]
    flux = record(manager="kustomize-controller", count=2, owner="nobody", first=MONDAY, last=MONDAY + 3 * DAY)
    assert flap(*users, flux) == [(("kubectl-edit", "kustomize-controller"), (2, 2), False)]
    days = {"2026-11-10": 8, "2026-11-16": 1}
    long = record(paths=both, first=MONDAY - 6 * DAY, count=9, days=days, owner="nobody")
    cut = Asked(since=MONDAY - DAY).part(long)
    assert cut is not None and cut.count == 1
    assert flap(cut, users[1], flux) == []  # the one write that is left may have been of the other path


def test_an_owner_who_lost_a_field_once_did_not_take_it_back() -> None:
    later = record(user="x", last=MONDAY + DAY, owner="nobody")
    assert flap(record(), later) == []
    assert flap(record(owner="nobody"), record(user="x", last=MONDAY + DAY)) == [
        (("kubectl-edit", "kustomize-controller"), (2, 0), True)
    ]


def test_one_who_takes_a_field_from_its_owner_twice_flaps_with_the_owner() -> None:
    assert flap(record(count=2)) == [(("kubectl-edit", "kustomize-controller"), (2, 0), True)]


@pytest.mark.parametrize(
    "given",
    [
        {"count": 1},
        {"dry_run": True},
        {"outcome": "refused"},
        {"outcome": "rewritten"},
        {"event": "share"},
        {"manager": ""},
        {"name": "*"},
        {"owner": "kustomize-controller"},  # by the rule's names, not by a claim
        {"owner": "a (Apply) or b (Apply)"},
        {"owner": "kubectl-edit (Update)"},
    ],
)
def test_what_does_not_prove_that_a_field_changed_hands_is_no_flapping(given: dict[str, object]) -> None:
    assert flap(record(**{"count": 5, **given})) == []


def test_handing_a_field_over_is_no_flapping() -> None:
    before = record(owner="nobody", count=5, first=MONDAY - 9 * DAY, last=MONDAY - 5 * DAY)
    after = record(owner="nobody", manager="keda", count=5, first=MONDAY, last=MONDAY + DAY)
    at_once = record(owner="nobody", manager="keda", count=5, first=MONDAY - 5 * DAY, last=MONDAY)
    assert flap(before, after) == flap(before, at_once) == []


def test_what_two_policies_say_of_one_write_is_no_second_write() -> None:
    assert flap(record(), record(policy="other")) == []


def test_fields_of_different_objects_do_not_flap() -> None:
    assert flap(record(owner="nobody", count=2), record(owner="nobody", manager="x", count=2, name="db")) == []


def test_the_most_restless_field_comes_first() -> None:
    found: list[Flap] = flapping([record(count=3), record(count=9, name="db")])
    assert [one.field.name for one in found] == ["db", "web"]


def test_a_day_without_events_is_a_day_too() -> None:
    report = summary([record(), record(last=MONDAY + 2 * DAY, count=3, name="db")])
    assert [(day.day, day.total) for day in report.days] == [("2026-11-16", 1), ("2026-11-17", 0), ("2026-11-18", 3)]


def test_json_is_what_the_documentation_says() -> None:
    data = as_data(summary([record(count=2), record(dry_run=True)]))
    assert list(data) == [
        *("version", "made", "sources", "notes", "asked", "first", "last", "writes", "dryRuns"),
        *("policies", "matrix", "flapping", "days"),
    ]
    (policy,), (cell,), (flapped,) = data["policies"], data["matrix"], data["flapping"]
    assert policy.pop("writers") == [
        {
            "user": DEVELOPER,
            "manager": "kubectl-edit",
            "operation": "Update",
            "effect": "fails",
            "writes": 2,
            "dryRuns": 1,
            "first": "2026-11-16T09:30:00Z",
            "last": "2026-11-16T09:30:00Z",
            "already": 0,
            "wants": ["deny"],
            "rules": ["team"],
            "events": ["change"],
            "owners": ["kustomize-controller (Apply)"],
            "paths": [".metadata.labels.team"],
            "resources": ["deployments.apps"],
            "namespaces": ["team-a"],
            "objects": 1,
            "examples": ["deployments.apps team-a/web"],
        }
    ]
    assert list(policy) == ["policy", "mode", "writes", "dryRuns", "first", "last"]
    assert list(cell) == [
        *("user", "manager", "operation", "path", "effects", "policies"),
        *("writes", "dryRuns", "first", "last", "writesByEffect", "atMost"),
    ]
    assert list(flapped) == [
        *("resource", "namespace", "name", "path", "managers", "inferred"),
        *("users", "policies", "days", "first", "last"),
    ]
    assert data["days"] == [{"day": "2026-11-16", "writes": {"fails": 2, "rewritten": 0, "recorded": 0}}]


def test_tables_spell_out_what_a_terminal_would_obey() -> None:
    text = "\n".join(
        tables(summary([record(user="\x1b]0;gone\x07", manager="\u202eevil", policy="[red]")]), color=False)
    )
    assert "\\u001b]0;gone\\u0007" in text
    assert "\\u202eevil" in text
    assert "[red]" in text
    assert all(line.isprintable() for line in text.splitlines())


def test_folded_names_read_as_such() -> None:
    folded = record(name="*", manager="*", operation="*", user="*")
    assert "(several)" in "\n".join(tables(summary([folded]), color=False))
