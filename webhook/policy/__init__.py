"""Policies: YAML to PolicySet, every problem with its place, and what policies find in a change."""

from webhook.policy.compiled import Action, Event, Mode, Policy, Verdict
from webhook.policy.evaluate import evaluate
from webhook.policy.load import Loaded, load, load_text
from webhook.policy.policyset import PolicySet
from webhook.policy.problems import Problem
from webhook.policy.schema import schema

__all__ = [
    "Action",
    "Event",
    "Loaded",
    "Mode",
    "Policy",
    "PolicySet",
    "Problem",
    "Verdict",
    "evaluate",
    "load",
    "load_text",
    "schema",
]
