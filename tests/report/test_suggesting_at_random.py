"""Whatever was recorded, no suggestion would have refused it: by a reading of the policies that knows nothing of claims.

Guards by claim are read as guards by pattern here, which refuse more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.report.made import DEVELOPER, FLUX, record
from webhook.fields import FieldPath, Pattern
from webhook.policy import load_text
from webhook.report.evidence import place_of, subject_of
from webhook.report.records import Record
from webhook.report.suggest import Proposal, propose

ARGO = "system:serviceaccount:argocd:argocd-application-controller"
KEDA = "system:serviceaccount:keda:keda-operator"
WRITERS = [
    ("kustomize-controller", "Apply", FLUX),
    ("kustomize-controller", "Apply", FLUX),
    ("argocd-controller", "Apply", ARGO),
    ("keda", "Update", KEDA),
    ("helm", "Apply", "ci@example.com"),
    ("kubectl-edit", "Update", DEVELOPER),
    ("kubectl-edit", "Update", FLUX),
    ("kustomize-controller", "Update", DEVELOPER),
    ("", "", DEVELOPER),
    ("", "", FLUX),
    ("*", "*", "*"),
    ("kubectl-edit", "Update", "user-24e4f7ddb1f9cd88"),
]
PATHS = [
    *(f".metadata.labels.l{number}" for number in range(4)),
    *(f".spec.template.spec.a{number}.b" for number in range(24)),
    ".metadata.labels",
    '.metadata.annotations["example.com/a"]',
    '.spec.template.spec.containers[name="c"].image',
    '.spec.template.spec.containers[name="d"].image',
    '.spec.template.spec.containers[name="d"]',
    '.metadata.finalizers[="example.com/keep"]',
    ".spec.replicas",
    ".spec",
    ".data.a",
    ".status.phase",
    "…",
]
OWNERS = ["", "nobody", "kustomize-controller (Apply)", "argocd-controller (Apply)", "keda (Update)", "a or b (Apply)"]


def some(seed: int) -> list[Record]:
    choose = random.Random(seed)
    writers = choose.sample(WRITERS, choose.randint(1, 5))
    paths = choose.sample(PATHS, choose.randint(1, len(PATHS)))
    return [one(choose, writers, paths) for _ in range(choose.randint(1, 30))]


def one(choose: random.Random, writers: list[tuple[str, str, str]], paths: list[str]) -> Record:
    manager, operation, user = choose.choice(writers)
    return record(
        manager=manager,
        operation=operation,
        user=user,
        event=choose.choice(["change", "change", "share", "ghost", "tamper", "writer"]),
        paths=tuple(sorted(choose.sample(paths, choose.randint(0, min(8, len(paths)))))),
        owner=choose.choice(OWNERS),
        resource=choose.choice(["deployments.apps", "deployments.apps/scale", "services", "services/status"]),
        namespace=choose.choice(["team-a", "team-b", ""]),
        name=choose.choice(["web", "db", "*"] if manager == "*" else ["web", "db"]),
        count=choose.choice([1, 2, 30]),
        dry_run=choose.random() < 0.2,
    )


def refusals(specs: list[dict[str, Any]], recorded: Record) -> Iterator[str]:
    place = place_of(recorded.resource)
    for spec in specs:
        matched = [
            (group, name) for one in spec["match"]["resources"] for group in one["groups"] for name in one["resources"]
        ]
        if place not in matched or recorded.namespace not in spec["match"].get("namespaces", [recorded.namespace]):
            continue
        for rule in spec["rules"]:
            for binding in rule.get("writers", {}).get("bind", ()):
                if binding["manager"] == recorded.manager and subject_of(recorded.user) not in binding["subjects"]:
                    yield f"{recorded.manager} by {recorded.user}"
        for path in PATHS[:-1] if "…" in recorded.paths else recorded.paths:
            yield from _changed(spec["rules"], recorded, FieldPath.parse(path))


def _changed(rules: list[dict[str, Any]], recorded: Record, path: FieldPath) -> Iterator[str]:
    """Each refusal on its own, whatever other rules would have decided: an exception is one from its owners' refusal."""
    excepted = []
    for rule in rules:
        wanted = rule.get("ownership")
        if wanted is None or not any(Pattern.parse(text).touches(path) for text in wanted["fields"]):
            continue
        if "onChange" not in wanted:
            excepted += [wanted["owners"]] if subject_of(recorded.user) in rule["for"]["subjects"] else []
        elif wanted["owners"] not in excepted and not any(owns(owner, recorded) for owner in wanted["owners"]):
            yield f"{path} by {recorded.manager} {recorded.user}"


def owns(owner: dict[str, Any], recorded: Record) -> bool:
    named = owner["manager"] == recorded.manager and owner.get("operation", recorded.operation) == recorded.operation
    return subject_of(recorded.user) in owner["subjects"] and (named or not recorded.manager)


@pytest.mark.parametrize("part", range(4))
def test_nothing_recorded_would_be_refused(part: int) -> None:
    proposed = 0
    for seed in range(part * 25, part * 25 + 25):
        records = some(seed)
        text = propose(records, Proposal())
        for switched in (text, re.sub(r"^  mode: Audit$", "  mode: Enforce", text, flags=re.MULTILINE)):
            problems = load_text(switched, "x", strict=True).problems
            assert [problem.rule for problem in problems if problem.rule != "no-policies"] == []
        specs = [one["spec"] for one in yaml.safe_load_all(text) if one]
        proposed += len(specs)
        telling = [one for one in records if one.user != "*"]
        assert [(seed, said) for one in telling for said in refusals(specs, one)] == []
    assert proposed > 5


@pytest.mark.parametrize("seed", range(5))
def test_the_same_records_in_any_order_propose_the_same(seed: int) -> None:
    records = some(seed)
    shuffled = random.Random(seed).sample(records, len(records))
    assert propose(records, Proposal()) == propose(shuffled, Proposal())


@pytest.mark.parametrize("seed", range(20))
def test_with_deny_seen_too_it_lints_clean(seed: int) -> None:
    text = propose(some(seed), Proposal(deny_seen=True))
    assert load_text(text, "x", strict=True).errors == ()
