"""Policies proposed from records: text that lints clean, in Audit, and that says what it was made from.

print(propose(records, Proposal(sources=("journal.db",))))
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import yaml

from webhook.policy import load_text
from webhook.policy.model import API_VERSION, KIND
from webhook.report.evidence import Evidence, Place, weigh
from webhook.report.records import Record
from webhook.report.suggest_fields import Refused, Rules, field_rules, slug
from webhook.report.suggest_names import bindings
from webhook.report.texts import events, moment, visible, writer

_WIDTH = 118
_MAX_LISTED = 30


@dataclass(frozen=True, slots=True)
class Proposal:
    """How to propose."""

    sources: tuple[str, ...] = ()
    deny_seen: bool = False


@dataclass(slots=True)
class _Document:
    """One policy before it is text."""

    name: str
    description: str
    match: dict[str, Any]
    rules: list[dict[str, Any]]
    told: list[str]
    refused: list[Refused]

    def text(self) -> str:
        spec = {"description": self.description, "mode": "Audit", "match": self.match, "rules": self.rules}
        data = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": self.name}, "spec": spec}
        comments = _comments([f"{line}." for line in self.told])
        return (
            f"---\n{comments}{yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=_WIDTH, default_flow_style=None)}"
        )


class _Dumper(yaml.SafeDumper):
    """Nothing is written as a reference to something above: people edit this."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def propose(records: Sequence[Record], how: Proposal) -> str:
    """YAML of policies; comments alone where nothing can be proposed."""
    evidence = weigh(records)
    documents, left_out = _documents(evidence, how)
    texts: list[str] = []
    refused: list[Refused] = []
    for document in documents:
        text = document.text()
        if problems := _problems(text):
            left_out.append(f"{document.name}: a name in it cannot stand in a policy ({', '.join(problems)})")
            continue
        texts.append(text)
        refused += document.refused
    return _heading(records, evidence, how, bool(texts)) + _losses(refused, left_out) + "".join(texts)


def _documents(evidence: Evidence, how: Proposal) -> tuple[list[_Document], list[str]]:
    bound = bindings(evidence, deny_seen=how.deny_seen)
    every = list(field_rules(evidence, deny_seen=how.deny_seen))
    documents = []
    if bound.bind:
        description = "Names of programs are written under only by the users seen behind them."
        rules = [{"name": "bound", "writers": {"bind": bound.bind}}]
        match = {"resources": _resources(bound.places)}
        documents.append(_Document("suggested-names", description, match, rules, bound.told, bound.refused))
    for document in _of_fields(one for one in every if one.rules):
        taken = {one.name for one in documents}
        if document.name in taken:
            numbered = (f"{document.name}-{number}" for number in count(2))
            document.name = next(name for name in numbered if name not in taken)
        documents.append(document)
    return documents, bound.left_out + [line for one in every for line in one.left_out]


def _of_fields(every: Iterable[Rules]) -> Iterator[_Document]:
    """Resources with the same rules in the same namespaces share a policy."""
    same: dict[str, list[Rules]] = {}
    for one in every:
        same.setdefault(repr((one.rules, one.namespaces)), []).append(one)
    for group in same.values():
        first = group[0]
        match: dict[str, Any] = {"resources": _resources(one.place for one in group)}
        if first.namespaces is not None:
            match["namespaces"] = first.namespaces
        told = list(dict.fromkeys(line for one in group for line in one.told))
        name = f"suggested-{slug(str(first.place), 200)}"
        description = f"Fields of {', '.join(one.place.resource for one in group)} are changed by whoever was seen to."
        refused = [item for one in group for item in one.refused]
        yield _Document(name, description, match, first.rules, told, refused)


def _resources(places: Iterable[Place]) -> list[dict[str, Any]]:
    groups: dict[str, list[str]] = {}
    for place in sorted(places):
        groups.setdefault(place.group, []).append(place.resource)
    return [{"groups": [group], "resources": resources} for group, resources in groups.items()]


def _problems(text: str) -> list[str]:
    """The ids of what lint finds, also were it in Enforce."""
    enforced = re.sub(r"^  mode: Audit$", "  mode: Enforce", text, flags=re.MULTILINE)
    found = (
        *load_text(text, "suggested", strict=True).problems,
        *load_text(enforced, "suggested", strict=True).problems,
    )
    return sorted({problem.rule for problem in found})


def _heading(records: Sequence[Record], evidence: Evidence, how: Proposal, any_policy: bool) -> str:
    if not records:
        return "# Nothing is recorded, so nothing can be proposed.\n"
    first, last = min(record.first for record in records), max(record.last for record in records)
    lines = [
        f"Proposed by fieldwarden from {events(evidence.every.events)}, {moment(first)} to {moment(last)} UTC, read from "
        f"{', '.join(how.sources) or 'records'}."
    ]
    if not any_policy:
        lines.append("None of it proves who owns a field, or whose a name is. See docs/reports.md on what to observe.")
    elif how.deny_seen:
        lines.append(
            "Mode is Audit: these record, and refuse nothing. In Enforce they would have refused what is listed."
        )
    else:
        lines.append("Mode is Audit: these record, and refuse nothing. In Enforce they would have refused none of it.")
    if folded := evidence.folded.events:
        lines.append(
            f"{folded:,} of the events {'is' if folded == 1 else 'are'} folded until they no longer tell who: they prove nothing."
        )
    return _comments(lines)


def _losses(refused: Iterable[Refused], left_out: Sequence[str]) -> str:
    text = ""
    listed = [
        f"- {writer(one.user, one.manager, '')}: {events(one.events)}, {f'fields of {one.what}' if one.what else 'the name'}"
        for one in refused
    ]
    if listed:
        text += _comments(["In Enforce these would have been refused:", *_first(listed)])
    if left_out:
        text += _comments(["Left out:", *_first([f"- {line}" for line in left_out])])
    return text


def _first(lines: list[str]) -> list[str]:
    return lines[:_MAX_LISTED] + ([f"- and {len(lines) - _MAX_LISTED} more"] if len(lines) > _MAX_LISTED else [])


def _comments(lines: Iterable[str]) -> str:
    """Lines that no name can end: what does not print is spelt out."""
    wrapped = (part for line in lines for part in textwrap.wrap(visible(line), _WIDTH, subsequent_indent="  "))
    return "".join(f"# {part}\n" for part in wrapped)
