"""A report as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.report.enforced import EFFECTS, Effect, Writer
from webhook.report.flapping import Flap
from webhook.report.matrix import Cell as MatrixCell
from webhook.report.summary import Report
from webhook.report.tables import Cell, table
from webhook.report.texts import EFFECT_WORDS, events, moment, namespace, shortened, visible, writer

MAX_ROWS = 40
MAX_WRITERS = 12  # of each policy
MAX_PATHS = 6
_STYLES: dict[Effect, str] = {"fails": "bold red", "rewritten": "cyan", "recorded": "yellow"}


def tables(report: Report, *, color: bool) -> Iterator[str]:
    """Section by section."""
    yield _opening(report)
    if not report.policies:
        return
    yield "If enforced\n" + _policies(report, color=color)
    yield "Who would meet it\n" + _writers(report, color=color)
    yield "Who writes what\n" + _matrix(report, color=color)
    if report.flapping:
        yield "Fields that flap between two managers\n" + _flapping(report, color=color)
    if report.days:
        yield "Day by day\n" + _days(report, color=color)
    yield _closing(report)


def _opening(report: Report) -> str:
    where = ", ".join(map(visible, report.sources))
    if not report.policies:
        return f"Nothing that was asked for is recorded in {where}."
    runs = f" and {report.dry_runs:,} in dry runs" if report.dry_runs else ""
    span = f"{moment(report.first)} to {moment(report.last)} UTC"
    return f"{events(report.writes)} in writes{runs}, {span}, from {where}."


def _closing(report: Report) -> str:
    if not report.would_act:
        return "In Enforce nothing of this would fail or be rewritten."
    fails, changed = (
        len({(one.user, one.manager, one.operation) for one in report.writers if one.effect == effect})
        for effect in ("fails", "rewritten")
    )
    return f"In Enforce {_writers_word(fails)} would fail, and {_writers_word(changed)} would find the write rewritten."


def _writers_word(number: int) -> str:
    return "one writer" if number == 1 else f"{number:,} writers"


def _policies(report: Report, *, color: bool) -> str:
    headers = ("Policy", "Mode", "Would fail", "Rewritten", "Only recorded", "Dry runs", "Writers", "Last seen")
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(visible(view.policy), "bold"),
            visible(view.mode),
            *(Cell(f"{view.effects[effect]:,}", _STYLES[effect] if view.effects[effect] else "") for effect in EFFECTS),
            f"{view.seen.dry_runs:,}",
            f"{len(view.who):,}",
            moment(view.seen.last),
        )
        for view in report.policies
    ]
    return table(headers, rows, color=color)


def _writers(report: Report, *, color: bool) -> str:
    headers = ("Policy", "Writer", "In Enforce", "Paths", "Events", "Dry runs", "Last seen")
    rows = [
        (
            visible(one.policy),
            writer(one.user, one.manager, one.operation),
            Cell(_effect(one), _STYLES[one.effect]),
            "\n".join(shortened(one.paths, MAX_PATHS)),
            f"{one.seen.writes:,}",
            f"{one.seen.dry_runs:,}",
            moment(one.seen.last),
        )
        for view in report.policies
        for one in view.writers[:MAX_WRITERS]
    ]
    return table(headers, rows, color=color) + _more(len(report.writers), len(rows))


def _effect(one: Writer) -> str:
    wants = ", ".join(sorted(map(visible, one.wants - {"deny", "record"})))
    already = " (does already)" if one.already else ""
    return EFFECT_WORDS[one.effect] + (f" ({wants})" if wants else "") + already


def _matrix(report: Report, *, color: bool) -> str:
    def row(cell: MatrixCell) -> tuple[Cell | str, ...]:
        who = writer(cell.user, cell.manager, cell.operation)
        path = visible(cell.path) or "(the name itself)"
        effects = Cell("\n".join(effects_of(cell)), _STYLES[cell.worst])
        return who, path, effects, str(cell.writes), str(cell.dry_runs), moment(cell.last)

    headers = ("Writer", "Path", "In Enforce", "Events", "Dry runs", "Last seen")
    rows = [row(cell) for cell in report.matrix[:MAX_ROWS]]
    return table(headers, rows, color=color) + _more(len(report.matrix))


def effects_of(cell: MatrixCell) -> list[str]:
    """What Enforce would make of it: each with its own number, where there are several."""
    if len(cell.effects) == 1:
        return [EFFECT_WORDS[cell.worst]]
    return [
        f"{EFFECT_WORDS[effect]} ({number if number.most else 'dry runs'})" for effect, number in cell.effects.items()
    ]


def _flapping(report: Report, *, color: bool) -> str:
    rows = [
        (
            f"{visible(flap.field.resource)} {namespace(flap.field.namespace)}/{visible(flap.field.name)}",
            visible(flap.field.path),
            turns(flap),
            str(flap.days),
            moment(flap.last),
        )
        for flap in report.flapping[:MAX_ROWS]
    ]
    return table(("Object", "Path", "Between", "Days", "Last seen"), rows, color=color) + _more(len(report.flapping))


def turns(flap: Flap) -> str:
    """`kubectl-edit (5 writes) and kustomize-controller (4 writes)`."""
    (one, other), (often, less) = map(visible, flap.managers), flap.writes
    told = f"{less:,} writes" if not flap.inferred else "takes it back"  # of neither fewer than two
    return f"{one} ({often:,} writes) and {other} ({told})"


def _days(report: Report, *, color: bool) -> str:
    rows = [(day.day, *(f"{day.effects[effect]:,}" for effect in EFFECTS)) for day in report.days[-MAX_ROWS:]]
    return table(("Day", "Would fail", "Rewritten", "Only recorded"), rows, color=color)


def _more(number: int, shown: int = MAX_ROWS) -> str:
    return f"\n… and {number - shown:,} more; -o json has all" if number > shown else ""
