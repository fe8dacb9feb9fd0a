"""A write, both calls that are made about it, and what can be asked of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonpatch

from tests.histories.kinds import KINDS
from tests.histories.shapes import Kind
from tests.histories.truth import plain_value
from webhook.admission import Decision, Result, decide
from webhook.admission.review import review_of
from webhook.admission.understand import understand
from webhook.fields import ABSENT, Change, FieldPath, ManagedFields, value_at
from webhook.policy import PolicySet
from webhook.policy.compiled import Action, Mode
from webhook.policy.evaluate import Phase

Object = dict[str, Any]
Path = tuple[str, ...]


@dataclass(frozen=True)
class Rewriting:
    """A write, what the mutating call made of it, and what both calls then say of that."""

    policies: PolicySet
    review: Object
    change: Change
    decision: Decision  # of the mutating call
    result: Object  # with its patch
    again: Decision  # of the mutating call, asked about the result
    final: Decision  # of the validating call on the result
    unrewritten: Decision  # of the validating call, had there been no mutating one

    @property
    def came(self) -> Object:
        obj: Object = self.review["request"]["object"]
        return obj

    @property
    def old(self) -> Object:
        obj: Object = self.review["request"]["oldObject"]
        return obj

    @property
    def kind(self) -> Kind:
        return next(kind for kind in KINDS if kind.plural == self.change.request.resource.resource)

    @property
    def is_scale(self) -> bool:
        return self.change.request.is_scale

    @property
    def rewritten(self) -> tuple[Result, ...]:
        return tuple(result for result in self.decision.results if result.outcome == "rewritten")

    @property
    def actions(self) -> frozenset[str]:
        """What was rewritten; the Restore of claims under a name of its own."""
        return frozenset(_action(result) for result in self.rewritten)

    @property
    def paths(self) -> list[FieldPath]:
        """All that results name."""
        return [FieldPath.parse(path) for result in self.rewritten for path in result.paths]


def _action(result: Result) -> str:
    return "Restore claims" if result.kind == "tamper" else str(result.action)


def rewriting(policies: PolicySet, review: Object) -> Rewriting:
    """Both calls, as the API server makes them."""
    decision = answer(policies, review, "mutate")
    result = patched(review["request"]["object"], decision)
    after = with_object(review, result)
    return Rewriting(
        policies,
        review,
        understand(review_of(review).request),  # type: ignore[arg-type]  # every write here is judged
        decision,
        result,
        answer(policies, after, "mutate"),
        answer(policies, after, "validate"),
        answer(policies, review, "validate"),
    )


def answer(policies: PolicySet, review: Object, phase: Phase, cap: Mode = Mode.ENFORCE) -> Decision:
    """Asked with a copy, as nothing but bytes ever come; a Scale shows no claims to the validating call."""
    asked = copy.deepcopy(review)
    if phase == "validate" and asked["request"].get("subResource") == "scale":
        for key in ("object", "oldObject"):
            asked["request"][key]["metadata"].pop("managedFields", None)
    return decide(policies, review_of(asked), phase, cap)


def patched(obj: Object, decision: Decision) -> Object:
    sent = json.loads(json.dumps(decision.patch))
    done: Object = jsonpatch.apply_patch(copy.deepcopy(obj), sent)
    return done


def with_object(review: Object, obj: Object) -> Object:
    return {**review, "request": {**review["request"], "object": obj}}


def rewrites(result: Result) -> bool:
    return result.action is not None and result.action.rewrites


def enforces(result: Result, action: Action) -> bool:
    return result.mode is Mode.ENFORCE and result.action is action


def claims(obj: Object) -> ManagedFields:
    return ManagedFields.parse(obj["metadata"].get("managedFields"))


def holders(obj: Object, path: FieldPath) -> set[str]:
    return set(map(str, claims(obj).holders(path)))


def holders_of_the_whole(obj: Object, path: FieldPath) -> set[str]:
    """Whose claims hold something above a path as one value, if it is one: no claim alone tells."""
    lengths = range(2, len(path))
    return {
        str(identity) for identity, claim in claims(obj).items() if any(claim.holds_leaf(path[:n]) for n in lengths)
    }


def every_path(managed: ManagedFields) -> set[Path]:
    return {tuple(path) for claim in managed.claims() for path in claim.fields}


def with_value(obj: Object, path: FieldPath, value: Any) -> Object:
    """A copy with a value put into the map above it."""
    changed = copy.deepcopy(obj)
    above = value_at(changed, path[:-1])
    above[path[-1][2:]] = copy.deepcopy(value)
    return changed


def without_claims(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def plain(value: Any) -> Any:
    return value if value is ABSENT else plain_value(value)


def differences(one: Any, other: Any, path: Path = ()) -> Iterator[Path]:
    """Where two values differ: names of fields, and `[]` at the first list, whatever is in it."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one.keys() | other.keys():
            yield from differences(one.get(name, ABSENT), other.get(name, ABSENT), (*path, f"f:{name}"))
    elif plain(one) != plain(other):
        yield path


def meet(where: Path, named: Path) -> bool:
    """Whether one of two paths leads to the other. Lists differ as wholes: what is in them, other laws tell."""
    length = min(len(where), len(named))
    return where[:length] == named[:length]


def shown(decision: Decision) -> str:
    return json.dumps(
        {
            "allowed": decision.allowed,
            "message": decision.message,
            "results": [result.as_dict() for result in decision.results],
            "patch": decision.patch,
        },
        indent=1,
    )
