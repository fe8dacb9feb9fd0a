"""Random histories on a real API server, with policies that rewrite: what was decided is what is stored.

REWRITING_CHANGES and REWRITING_SEED in the environment ask for more histories, and for others, under other policies.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.histories.kinds import KINDS
from tests.histories.play import Fault, serve_widgets
from tests.histories.shapes import Kind
from tests.histories.steps import Step
from tests.rewriting_histories.conftest import PROPERTY
from tests.rewriting_histories.stage import RewritingStage, listening
from tests.rewriting_histories.steps import history
from tests.rewriting_laws.policies import (
    ACTIONS,
    ON_CHANGE,
    ON_GHOST,
    ON_SHARE,
    ON_TAMPER,
    RENAME,
    Document,
    loads,
    policy,
)
from tests.stories.server import serving

if TYPE_CHECKING:
    from webhook.sandbox import Sandbox

CHANGES = int(os.environ.get("REWRITING_CHANGES", "600"))
SEED = os.environ.get("REWRITING_SEED", "fieldwarden")
LENGTH = 12  # steps in a history
GROUPS: dict[str, tuple[str, ...]] = {
    "rewriting-values": ON_CHANGE,
    "rewriting-leftovers": (*ON_SHARE, *ON_GHOST),
    "rewriting-claims": (*ON_TAMPER, *RENAME),
    "rewriting-all": ACTIONS,
    "rewriting-more": ACTIONS,
}
"""What the policies of a namespace want rewritten."""


@pytest.fixture
def documents() -> list[Document]:
    """A policy or two for each kind in each namespace, as the seed has it."""
    found: list[Document] = []
    for (namespace, actions), kind in itertools.product(GROUPS.items(), KINDS):
        for number in range(3):
            name = f"{namespace}-{kind.plural}-{number}"
            document = policy(Random(f"{SEED}/{name}"), name, kind, actions, namespace)
            if loads([*found, document]) is not None:
                found.append(document)
    return found


@pytest.fixture
def stage(sandbox: Sandbox, documents: list[Document], tmp_path: Path) -> Iterator[RewritingStage]:
    serve_widgets(sandbox)
    for namespace in GROUPS:
        reply = sandbox.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert reply.status in (201, 409), reply.body
    for document in documents:
        (tmp_path / f"{document['metadata']['name']}.yaml").write_text(json.dumps(document))
    policies = loads(documents)
    assert policies is not None
    with serving(sandbox, tmp_path) as server, listening(sandbox, server, policies) as capture:
        yield RewritingStage(sandbox, capture, "", Counter(), policies)


def test_what_is_decided_is_what_is_stored(
    stage: RewritingStage, documents: list[Document], record_property: Callable[[str, object], None]
) -> None:
    try:
        _play(stage, documents)
    finally:
        record_property(PROPERTY, dict(stage.tally))
    assert stage.tally["patched"] * 20 > stage.tally["writes"], "hardly anything was rewritten"


def _play(stage: RewritingStage, documents: list[Document]) -> None:
    for namespace, kind, steps in histories():
        stage.namespace = namespace
        try:
            stage.play(kind, steps)
        except Fault as fault:
            shorter, fault = stage.shrunk(kind, steps, fault)
            pytest.fail(_story(namespace, kind, shorter, fault, documents), pytrace=False)
        stage.tally["histories"] += 1
        if stage.tally["writes"] >= CHANGES:
            return


def histories() -> Iterator[tuple[str, Kind, list[Step]]]:
    """Endless: every kind in turn, in a namespace of its own choice, each history from the seed and its number."""
    for number in itertools.count():
        for kind in KINDS:
            rng = Random(f"{SEED}/{number}/{kind.name}")
            yield rng.choice(list(GROUPS)), kind, history(rng, LENGTH)


def _story(namespace: str, kind: Kind, steps: list[Step], fault: Fault, documents: list[Document]) -> str:
    """All that it takes to play it again, or to pin it with the laws of rewriting."""
    here = [item for item in documents if item["metadata"]["name"].startswith(f"{namespace}-{kind.plural}-")]
    lines = [f"seed {SEED!r}, {kind.name} in {namespace}, {len(steps)} steps:", *fault.log, ""]
    lines += [*map(str, fault.findings), "", "the policies and the review as it came:"]
    return "\n".join([*lines, json.dumps({"policies": here, "review": fault.seen.review})])
