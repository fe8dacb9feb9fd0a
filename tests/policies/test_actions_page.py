"""docs/actions.md, "Which action when": its examples load, in Enforce and strictly, and show what stands above them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from webhook.admission.suite_read import read_suites
from webhook.policy import load_text
from webhook.policy.compiled import Action, IntegrityRule, OwnershipRule, RenameRule, Rule

ROOT = Path(__file__).parents[2]
POLICIES = ROOT / "policies"
TEXT = (ROOT / "docs" / "actions.md").read_text()
POLICY = """\
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: example}
spec:
  mode: Enforce
  match: {resources: [{groups: [apps], resources: [deployments, replicasets]}]}
  rules:
"""
SHOWN: dict[str, set[Action]] = {
    "Record only": set(),
    "Deny": {Action.DENY},
    "Restore": {Action.RESTORE},
    "Reassign": {Action.REASSIGN},
    "Release": {Action.RELEASE, Action.PRUNE},
    "Rename": {Action.RENAME},
    "onTamper: Restore": {Action.RESTORE},
}
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
EXAMPLES = {name: re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) for name, text in SECTIONS.items()}


def actions(rule: Rule) -> set[Action]:
    match rule:
        case OwnershipRule():
            found = {rule.on_change, rule.on_share, rule.on_ghost}
        case IntegrityRule():
            found = {rule.on_tamper}
        case RenameRule():
            found = {Action.RENAME}
        case _:
            found = set()
    return {action for action in found if action is not None}


def test_there_is_an_example_in_each_section_that_should_have_one_and_in_no_other() -> None:
    assert {name: len(found) for name, found in EXAMPLES.items() if found} == dict.fromkeys(SHOWN, 1)


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_loads_in_enforce_without_a_word_and_shows_its_action(name: str) -> None:
    loaded = load_text(POLICY + textwrap.indent(EXAMPLES[name][0], "  "), name, strict=True)
    assert loaded.problems == ()
    assert loaded.policies is not None
    (rule,) = loaded.policies.policies[0].rules
    assert actions(rule) == SHOWN[name]


def test_every_action_has_a_section_and_a_row() -> None:
    for action in Action:
        assert action.value in SECTIONS
        assert re.search(rf"^\| .+ \| `(?:\w+: )?{action.value}` \|", TEXT, re.MULTILINE), action


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (ROOT / "docs" / target).exists(), target


def test_every_warning_that_is_quoted_is_expected_by_a_shipped_suite() -> None:
    expected = set()
    for path in POLICIES.glob("*/suite.yaml"):
        (suite,), problems = read_suites(path)
        assert not problems
        expected |= {text for case in suite.cases for text in case.expect.warnings}
    quoted = {" ".join(text.split()) for text in re.findall(r"`(\[[^\]`]+/[^\]`]+\] [^`]+)`", TEXT)}
    assert len(quoted) == 6
    assert quoted <= expected
