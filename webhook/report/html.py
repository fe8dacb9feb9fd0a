"""A report as one HTML page: nothing to load, and nothing to run it but a browser. Without scripts it only does not filter.

Every name comes from a stranger. The template escapes all it is given, and the page's own policy runs no script but ours.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from webhook.report.drawn import turns
from webhook.report.enforced import EFFECTS
from webhook.report.summary import Report
from webhook.report.texts import ANY_WORDS, EFFECT_WORDS, moment, namespace, shortened, stamp, visible

MAX_ROWS = 2000
"""Of each table. A page of more is slow on a phone; JSON has all."""
_CHART_DAYS = 92


def page(report: Report) -> str:
    """The whole document."""
    style, script = _asset("report.css"), _asset("report.js")
    environment = Environment(
        loader=PackageLoader("webhook.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    numbers = {view.policy: number for number, view in enumerate(report.policies, 1)}  # names may hold anything
    environment.filters.update(
        number_of=numbers.__getitem__,
        visible=visible,
        moment=moment,
        stamp=stamp,
        namespace=namespace,
        shortened=shortened,
        turns=turns,
        number=_number,
    )
    return environment.get_template("report.html").render(
        report=report,
        style=style,
        script=script,
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'",
        effects=EFFECTS,
        words=EFFECT_WORDS,
        several=ANY_WORDS,
        most=MAX_ROWS,
        chart=_chart(report),
    )


def _asset(name: str) -> str:
    return (files("webhook.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _number(value: int) -> str:
    return f"{value:,}"


def _chart(report: Report) -> dict[str, Any] | None:
    """Bars in a box of 100 to a day's width: where each part stands, and how high."""
    days = report.days[-_CHART_DAYS:]
    if len(days) < 2:
        return None
    most = max(day.total for day in days)
    bars = []
    for index, day in enumerate(days):
        top, parts = 100.0, []
        for effect in EFFECTS:
            height = 100 * day.effects[effect] / most
            top -= height
            parts.append({"effect": effect, "y": round(top, 2), "height": round(height, 2)})
        bars.append({"day": day, "x": index * 10, "parts": parts})
    return {"bars": bars, "width": len(days) * 10, "most": most, "first": days[0].day, "last": days[-1].day}
