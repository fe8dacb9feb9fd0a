"""Decision, in process: from a parsed review to a Decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.material import interleaved, policy_set, review, shipped
from webhook.admission import decide, read_review
from webhook.policy import Policy, PolicySet, load_text
from webhook.policy.compiled import Glob
from webhook.policy.evaluate import Phase

ROUNDS = 1500


def run() -> None:
    shipped_set = policy_set(shipped())
    names = ("cap-eviction", "large-flux-apply", "ghost-1-co-ownership", "flux-reapply-noop")
    figures = {name: interleaved({name: _decision(name, shipped_set)}, ROUNDS)[name] for name in names}
    print(f"Decision with the {len(shipped_set.policies)} shipped policies in Enforce (median):")
    print(f"  cap-eviction (7 KB, ten managers)       {figures['cap-eviction']:8.1f} µs   (to reach: 150)")
    print(f"  large-flux-apply (76 KB, co-owned)      {figures['large-flux-apply']:8.1f} µs   (to reach: 600)")
    print(f"  ghost-1-co-ownership                    {figures['ghost-1-co-ownership']:8.1f} µs")
    print(f"  flux-reapply-noop                       {figures['flux-reapply-noop']:8.1f} µs")
    _mutating()
    _many(shipped())
    _matching(shipped())


def _decision(name: str, policies: PolicySet, phase: Phase = "validate") -> Callable[[], Callable[[], object]]:
    body = review(name)

    def prepare() -> Callable[[], object]:
        parsed = read_review(body)
        return lambda: decide(policies, parsed, phase)

    return prepare


REWRITES = """
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {{name: rewrites}}
spec:
  mode: Enforce
  match: {{resources: [{{groups: [apps], resources: [deployments]}}]}}
  rules:
  - name: {name}
    ownership: {{fields: [".*"], owners: [{{manager: {owner}, operation: Apply}}], {action}}}
"""


def _mutating() -> None:
    """The mutating call, patch included, and beside it the validating call of the same policy and review."""
    release = REWRITES.format(name="release", owner="kustomize-controller", action="onShare: Release, onGhost: Prune")
    restore = REWRITES.format(name="restore", owner="ci-tool", action="onChange: Restore")
    everything = release.replace("onGhost", 'leftovers: ["*"], onGhost')
    cases = (
        ("ghost-1-co-ownership", "Release of 7 paths", release, 400),
        ("large-flux-apply", "Restore of an image", restore, 1500),
        ("large-flux-apply", "Release of 273 paths", everything, 0),
    )
    print("Mutating decision with its patch, and the validating one beside it (median):")
    for review_name, what, text, wanted in cases:
        loaded = load_text(text, "bench.yaml").policies
        if loaded is None or not decide(loaded, read_review(review(review_name)), "mutate").patch:
            raise SystemExit(f"{review_name}: nothing is rewritten")
        figures = interleaved(
            {phase: _decision(review_name, loaded, phase) for phase in ("mutate", "validate")}, ROUNDS // 3
        )
        told = f"   (to reach: {wanted})" if wanted else ""
        print(f"  {review_name:22} {what:22} {figures['mutate']:8.1f} µs, {figures['validate']:8.1f} µs{told}")


def _many(policies: tuple[Policy, ...]) -> None:
    """1,000 policies of which 10 match, beside those 10: the others are for other namespaces."""
    ten = [_renamed(policies[n % len(policies)], f"matching-{n}") for n in range(10)]
    others = [
        replace(policy, match=replace(policy.match, namespaces=(Glob.compile(f"tenant-{n}-*"),)))
        for n in range(990)
        for policy in [_renamed(policies[n % len(policies)], f"elsewhere-{n}")]
    ]
    figures = interleaved(
        {
            "10": _decision("cap-eviction", policy_set(ten)),
            "1000": _decision("cap-eviction", policy_set([*ten, *others])),
        },
        ROUNDS,
    )
    print("1,000 policies of which 10 match, beside those 10 alone (cap-eviction):")
    print(
        f"  {figures['10']:8.1f} µs, {figures['1000']:8.1f} µs: {figures['1000'] / figures['10']:5.2f} times   (to reach: 1.3)"
    )


def _matching(policies: tuple[Policy, ...]) -> None:
    """50 policies that all match, beside one: each shipped policy with rules, by turns with one, then fifty."""
    print("50 policies that all match, beside one (to reach: 6 times):")
    for name in ("cap-eviction", "csa-on-flux-changes-label"):
        for policy in policies:
            fifty = [_renamed(policy, f"{policy.name}-{n:02}") for n in range(50)]
            figures = interleaved(
                {"1": _decision(name, policy_set([policy])), "50": _decision(name, policy_set(fifty))}, ROUNDS // 5
            )
            ratio = figures["50"] / figures["1"]
            print(f"  {name:26} {policy.name:36} {figures['1']:8.1f} µs, {figures['50']:8.1f} µs: {ratio:5.2f} times")


def _renamed(policy: Policy, name: str) -> Policy:
    return replace(policy, name=name)
