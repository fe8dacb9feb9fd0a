"""Writes for the tests of evaluation: an object, who claims what before and after, and who asks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from webhook.admission import Decision, Review, decide, understand
from webhook.fields import Change, FieldPath, FieldSet, Identity, Request, Resource, User
from webhook.policy import Mode, PolicySet, evaluate, load_text
from webhook.policy.evaluate import Phase

FLUX = Identity("kustomize-controller", "Apply")
FLUX_USER = User("system:serviceaccount:flux-system:kustomize-controller")
DEVELOPER = User("developer@example.com", frozenset({"developers"}))
ONCALL = User("oncall@example.com", frozenset({"oncall"}))

DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "team-a", "labels": {"app": "web", "team": "a"}},
    "spec": {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "c", "image": "web:1"}, {"name": "side", "image": "side:1"}]}},
    },
}
TEAM = ".metadata.labels.team"
IMAGE = '.spec.template.spec.containers[name="c"].image'
SIDE = '.spec.template.spec.containers[name="side"]'
NAMES = ['.spec.template.spec.containers[name="c"]', '.spec.template.spec.containers[name="c"].name']


def updater(manager: str, subresource: str = "") -> Identity:
    return Identity(manager, "Update", subresource, "autoscaling/v1" if subresource == "scale" else "apps/v1")


def changed(obj: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """A copy of the Deployment with another team, image or replicas; None takes a value away."""
    new: dict[str, Any] = copy.deepcopy(dict(obj))
    if "team" in values:
        _set(new["metadata"]["labels"], "team", values["team"])
    if "app" in values:
        _set(new["metadata"]["labels"], "app", values["app"])
    if "replicas" in values:
        _set(new["spec"], "replicas", values["replicas"])
    if "image" in values:
        _set(new["spec"]["template"]["spec"]["containers"][0], "image", values["image"])
    if values.get("deleting"):
        new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return new


def _set(where: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        where.pop(name, None)
    else:
        where[name] = value


def write(
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    before: Mapping[Identity, list[str]],
    after: Mapping[Identity, list[str]],
    *,
    user: User = DEVELOPER,
    manager: str | None = None,
    subresource: str = "",
) -> Change:
    """What a write did that left these claims."""
    version = "autoscaling/v1" if subresource == "scale" else "apps/v1"
    return understand(
        Request(
            operation="CREATE" if old is None else "UPDATE",
            resource=Resource("apps", "v1", "deployments"),
            kind="Deployment",
            subresource=subresource,
            namespace="team-a",
            name="web",
            user=user,
            field_manager=manager,
            dry_run=False,
            new=_claimed(new, after, version),
            old=None if old is None else _claimed(old, before, version),
            api_version=version,
            requested_version=version,
        )
    )


def _claimed(obj: Mapping[str, Any], claims: Mapping[Identity, list[str]], version: str) -> dict[str, Any]:
    entries = [
        {
            "manager": identity.manager,
            "operation": identity.operation,
            "apiVersion": identity.api_version or version,
            "fieldsType": "FieldsV1",
            "fieldsV1": FieldSet.from_paths(map(FieldPath.parse, paths)).to_fields_v1(),
            **({"subresource": identity.subresource} if identity.subresource else {}),
        }
        for identity, paths in claims.items()
    ]
    made = copy.deepcopy(dict(obj))
    made.setdefault("metadata", {})["managedFields"] = entries
    return made


POLICY = """
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {{name: {name}}}
spec:
  mode: {mode}
  match: {{resources: [{{groups: [apps], resources: [deployments]}}]{match}}}
  {extra}
  rules:
{rules}
"""


def judge(
    change: Change,
    rules: str,
    *,
    mode: str = "Enforce",
    match: str = "",
    extra: str = "",
    phase: Phase = "validate",
    cap: Mode = Mode.ENFORCE,
) -> Decision:
    """The decision of one policy with these rules (YAML of the list under `rules:`)."""
    policies = loaded(rules, mode=mode, match=match, extra=extra)
    return decide(policies, reviewed(change.request), phase, cap)


def loaded(rules: str, *, mode: str = "Enforce", match: str = "", extra: str = "") -> PolicySet:
    """One policy with these rules."""
    lines = "\n".join(f"  {line}" for line in rules.strip("\n").splitlines())
    found = load_text(POLICY.format(name="p", mode=mode, match=match, extra=extra, rules=lines), "test.yaml")
    assert found.policies is not None, [str(problem) for problem in found.problems]
    return found.policies


def found_by(change: Change, rules: str) -> list[tuple[str, str | None]]:
    """The events of a change that no request needs to have made: kind, and what Enforce is to do."""
    return [
        (event.kind, event.action.value if event.action is not None else None)
        for event in evaluate(loaded(rules), change).events
    ]


def reviewed(request: Request) -> Review:
    """A review of a request."""
    return Review(
        uid="1",
        operation=request.operation,
        resource=request.resource,
        kind=request.kind,
        subresource=request.subresource,
        namespace=request.namespace,
        name=request.name,
        user=request.user,
        dry_run=request.dry_run,
        request=request,
    )


def events(decision: Decision) -> list[tuple[str, str, list[str]]]:
    """What was found, in short: kind, rule, paths."""
    return [(result.kind, result.rule, list(result.paths)) for result in decision.results]
