"""The checks of label selectors: what they promise and cannot keep."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.fields import FieldPath, FieldSet, Pattern
from webhook.policy.compiled import Match, OwnershipRule, WritersRule
from webhook.policy.drafts import Draft
from webhook.policy.model import LabelSelector
from webhook.policy.problems import Problem
from webhook.policy.shape import Path

NAME_LABEL = "kubernetes.io/metadata.name"
_SCALED = {
    "": {"replicationcontrollers"},
    "apps": {"deployments", "replicasets", "statefulsets"},
    "extensions": {"deployments", "replicasets"},
}
_REPLICAS = ".spec.replicas"


def selector_unguarded(draft: Draft) -> Iterator[Problem]:
    """Who may take a label off an object, or put one on, decides whether the policy is about it."""
    if draft.match is None or not draft.rules_whole:
        return
    for path, key, on_key in _labels(draft.match.written.object_selector, "objectSelector"):
        if not _guarded(draft, key):
            said = f"no rule for everyone guards the label {key}: without it, an object leaves the policy"
            report = draft.key_problem if on_key else draft.problem
            yield report("selector-unguarded", draft.match.node, path, said)


def _labels(selector: LabelSelector | None, name: str) -> Iterator[tuple[Path, str, bool]]:
    """Where each label of a selector is named: path, label, and whether it is a key there."""
    if selector is None:
        return
    for key in selector.match_labels:
        yield (name, "matchLabels", key), key, True
    for index, requirement in enumerate(selector.match_expressions):
        yield (name, "matchExpressions", index, "key"), requirement.key, False


def _guarded(draft: Draft, key: str) -> bool:
    label = FieldPath(("f:metadata", "f:labels", f"f:{key}"))
    for draft_rule in draft.rules:
        rule = draft_rule.rule
        if (
            isinstance(rule, OwnershipRule)
            and rule.for_subjects is None
            and any(_holds(pattern, label) for pattern in rule.fields)
            and not any(_holds(pattern, label) for pattern in rule.except_)
        ):
            return True
    return False


def _holds(pattern: Pattern, path: FieldPath) -> bool:
    return bool(pattern.select(FieldSet.from_paths([path])))


def selector_scale(draft: Draft) -> Iterator[Problem]:
    """A Scale carries none of its parent's labels, so a policy with objectSelector is never about a scale write."""
    if draft.match is None or draft.match.written.object_selector is None:
        return
    replicas = FieldPath.parse(draft.scale_path or _REPLICAS)
    for draft_rule in draft.rules:
        rule = draft_rule.rule
        if isinstance(rule, OwnershipRule):
            minded = any(_holds(pattern, replicas) for pattern in rule.fields)
            minded = minded and not any(_holds(pattern, replicas) for pattern in rule.except_)
        else:
            minded = isinstance(rule, WritersRule)
        if minded and _scaled(draft.match.match, draft.scale_path, named=isinstance(rule, OwnershipRule)):
            said = f"the rule {draft_rule.name} does not see writes of /scale, which carry no labels"
            yield draft.key_problem("selector-scale", draft.match.node, ("objectSelector",), said)
            return


def _scaled(match: Match, scale_path: str | None, *, named: bool) -> bool:
    """Whether a resource has a scale, as far as can be known; `named`: the policy itself speaks of replicas."""
    for one in match.resources:
        for group in one.groups:
            known = _SCALED.get(group)
            if group == "*" or (known is not None and ("*" in one.resources or known & one.resources)):
                return True
            if known is None and "." in group and not group.endswith(".k8s.io") and (named or scale_path is not None):
                return True
    return False


def namespace_labels(draft: Draft) -> Iterator[Problem]:
    """Policies from files know of a namespace its name, and no other label."""
    if draft.match is None:
        return
    for path, key, on_key in _labels(draft.match.written.namespace_selector, "namespaceSelector"):
        if key != NAME_LABEL:
            report = draft.key_problem if on_key else draft.problem
            yield report("namespace-labels", draft.match.node, path, f"only a cluster knows a namespace's label {key}")
