"""A report as JSON. These keys are documented in docs/reports.md, and stay."""

from __future__ import annotations

from typing import Any

from webhook.report.enforced import PolicyView, Seen, Writer
from webhook.report.flapping import Flap
from webhook.report.matrix import Cell
from webhook.report.summary import Report
from webhook.report.texts import stamp

VERSION = 1


def as_data(report: Report) -> dict[str, Any]:
    """Plain data, names as they are."""
    return {
        "version": VERSION,
        "made": stamp(report.made),
        "sources": list(report.sources),
        "notes": list(report.notes),
        "asked": {
            "since": stamp(report.asked.since),
            "namespaces": [glob.text for glob in report.asked.namespaces],
            "policies": [glob.text for glob in report.asked.policies],
            "without": [glob.text for glob in report.asked.without],
        },
        "first": stamp(report.first),
        "last": stamp(report.last),
        "writes": dict(report.effects),
        "dryRuns": report.dry_runs,
        "policies": [_policy(view) for view in report.policies],
        "matrix": [_cell(cell) for cell in report.matrix],
        "flapping": [_flap(flap) for flap in report.flapping],
        "days": [{"day": day.day, "writes": dict(day.effects)} for day in report.days],
    }


def _seen(seen: Seen) -> dict[str, Any]:
    return {"writes": seen.writes, "dryRuns": seen.dry_runs, "first": stamp(seen.first), "last": stamp(seen.last)}


def _policy(view: PolicyView) -> dict[str, Any]:
    seen = _seen(view.seen) | {"writes": dict(view.effects)}
    return {"policy": view.policy, "mode": view.mode, **seen, "writers": [_writer(one) for one in view.writers]}


def _writer(writer: Writer) -> dict[str, Any]:
    return {
        "user": writer.user,
        "manager": writer.manager,
        "operation": writer.operation,
        "effect": writer.effect,
        **_seen(writer.seen),
        "already": writer.already,
        "wants": sorted(writer.wants),
        "rules": sorted(writer.rules),
        "events": sorted(writer.events),
        "owners": sorted(writer.owners),
        "paths": sorted(writer.paths),
        "resources": sorted(writer.resources),
        "namespaces": sorted(writer.namespaces),
        "objects": len(writer.objects),
        "examples": writer.examples(),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "user": cell.user,
        "manager": cell.manager,
        "operation": cell.operation,
        "path": cell.path,
        "effects": sorted(cell.effects),
        "policies": sorted(cell.policies),
        "writes": cell.writes.most,
        "dryRuns": cell.dry_runs.most,
        "first": stamp(cell.first),
        "last": stamp(cell.last),
        "writesByEffect": {effect: number.most for effect, number in cell.effects.items()},
        "atMost": not all(number.is_exact for number in (cell.writes, cell.dry_runs, *cell.effects.values())),
    }


def _flap(flap: Flap) -> dict[str, Any]:
    return {
        **flap.field._asdict(),
        "managers": [
            {"manager": manager, "writes": writes} for manager, writes in zip(flap.managers, flap.writes, strict=True)
        ],
        "inferred": flap.inferred,
        "users": list(flap.users),
        "policies": list(flap.policies),
        "days": flap.days,
        "first": stamp(flap.first),
        "last": stamp(flap.last),
    }
