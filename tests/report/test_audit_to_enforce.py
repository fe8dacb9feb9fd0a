"""From audit to enforce on a real API server: observe, suggest from the server's own log, switch it on, live on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.made import OBSERVING
from tests.stories import manifests
from tests.stories.server import serving
from tests.stories.support import Answer, Story
from webhook.report.asking import Asked
from webhook.report.sources import KINDS, open_source
from webhook.report.suggest import Proposal, propose
from webhook.report.summary import gather, summarise
from webhook.sandbox import Sandbox


@pytest.fixture
def unregistered(sandbox: Sandbox) -> Iterator[None]:
    yield
    sandbox.unregister_webhooks()


def daily_life(web: Story, settings: Story) -> Iterator[Answer]:
    """What happens here on any day: Flux brings what Git says, people help themselves."""
    for image in ("nginx:1", "nginx:2"):
        web.git["spec"]["template"]["spec"]["containers"][0]["image"] = image
        yield web.flux(dry_run=True)
        yield web.flux()
        yield settings.flux()
        yield web.kubectl(f"label deployment web team=mine-{image[-1]} --overwrite")
        yield web.kubectl(f"set image deployment/web c=nginx:0{image[-1]}")
        yield web.kubectl(f"scale deployment web --replicas={image[-1]}")
        yield web.kubectl(f"annotate deployment web note={image[-1]} --overwrite", user="platform")
        yield settings.kubectl("patch configmap settings -p '" + '{"data":{"mine":"' + image[-1] + '"}}' + "'")


def test_what_was_suggested_lets_daily_life_go_on_and_stops_the_rest(
    sandbox: Sandbox, namespace: str, tmp_path: Path, unregistered: None
) -> None:
    observing, suggesting = tmp_path / "observing", tmp_path / "suggested"
    for folder in (observing, suggesting):
        folder.mkdir()
    (observing / "observe.yaml").write_text(OBSERVING.read_text())
    with serving(sandbox, observing) as server:
        server.register()
        web, settings = (
            Story(sandbox, server, make(namespace)) for make in (manifests.deployment, manifests.config_map)
        )
        assert [answer.told for answer in daily_life(web, settings) if not answer.ok] == []
        log = server.log

    source = open_source(str(log), KINDS)
    records = [one for one in gather([source], Asked()) if one.namespace == namespace]
    report = summarise(records, [source], Asked(), max(one.last for one in records))
    assert [note for note in report.notes if "left out" in note] == []
    assert {(cell.user, cell.manager) for cell in report.matrix} >= {
        ("developer@example.com", "kubectl-label"),
        ("platform@example.com", "kubectl-annotate"),
        ("system:serviceaccount:flux-system:kustomize-controller", "kustomize-controller"),
    }
    text = propose(records, Proposal())
    (suggesting / "suggested.yaml").write_text(re.sub(r"^  mode: Audit$", "  mode: Enforce", text, flags=re.MULTILINE))

    with serving(sandbox, suggesting) as server:
        server.register()
        web, settings = (
            Story(sandbox, server, make(namespace)) for make in (manifests.deployment, manifests.config_map)
        )
        assert [answer.told for answer in daily_life(web, settings) if not answer.ok] == []
        web.flux()
        for stranger in (
            web.kubectl("label deployment web team=ours --overwrite", user="oncall"),
            web.kubectl("set image deployment/web c=evil:1", user="oncall"),
            web.kubectl("label deployment web more=1 --field-manager=kustomize-controller", user="oncall"),
        ):
            assert not stranger.ok
            assert "denied the request" in stranger.told
