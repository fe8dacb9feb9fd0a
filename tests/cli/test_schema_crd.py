"""`fieldwarden schema --crd`."""

from __future__ import annotations

import json

import yaml
from click.testing import CliRunner

from webhook.cli.app import app
from webhook.cluster.crd import definition


def test_the_definition_is_printed_in_both_forms() -> None:
    as_json = CliRunner().invoke(app, ["schema", "--crd"])
    as_yaml = CliRunner().invoke(app, ["schema", "--crd", "-o", "yaml"])
    assert (as_json.exit_code, as_yaml.exit_code) == (0, 0)
    assert json.loads(as_json.stdout) == yaml.safe_load(as_yaml.stdout) == definition()


def test_it_fits_into_the_annotation_that_kubectl_apply_keeps() -> None:
    assert len(json.dumps(definition())) < 64 * 1024
