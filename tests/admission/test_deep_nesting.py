"""An object may nest deeper than the fast JSON library reads; it is judged all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REVIEW = Path(__file__).parent.parent / "reviews" / "custom-resource-update.json"

JUDGE = """
import sys, threading
from pathlib import Path
from webhook.admission import Engine
from webhook.policy import load_text

def judge():
    loaded = load_text(Path(sys.argv[1]).read_text(), "p.yaml")
    answer = Engine(loaded.policies).answer(sys.stdin.buffer.read(), "validate")
    print(answer.decision.allowed, len(answer.decision.warnings), *[path for result in answer.decision.results for path in result.paths][:1])

sys.setrecursionlimit(12_000)
threading.stack_size(64 << 20)
thread = threading.Thread(target=judge)
thread.start()
thread.join()
"""

POLICY = """
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: p}
spec:
  mode: Enforce
  match: {resources: [{groups: [example.com], resources: [gadgets]}]}
  rules:
  - name: size
    ownership:
      fields: [.spec.size]
      owners: [{manager: kustomize-controller, operation: Apply, subjects: [{user: flux@example.com}]}]
      onChange: Deny
"""


def judge(depth: int, folder: Path, mode: str = "Enforce") -> list[str]:
    """Whether it is allowed, how many warnings there are, and the first path that was found."""
    review = json.loads(REVIEW.read_text())
    deep = "[" * depth + "]" * depth
    body = json.dumps(review).replace('"size"', f'"deep": {deep}, "size"')
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.replace("mode: Enforce", f"mode: {mode}"))
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(policy)], input=body.encode(), capture_output=True, check=False, timeout=60
    )
    assert done.stdout, done.stderr.decode()[-2000:]
    return done.stdout.decode().split()


def test_a_write_beside_a_deep_value_is_judged(tmp_path: Path) -> None:
    assert judge(1_500, tmp_path) == ["False", "0", ".spec.size"]


def test_a_write_that_nests_too_deeply_to_be_followed_is_denied_where_a_policy_is_enforced(tmp_path: Path) -> None:
    assert judge(5_000, tmp_path) == ["False", "0"]


def test_elsewhere_it_passes_and_only_warn_tells(tmp_path: Path) -> None:
    assert judge(5_000, tmp_path, "Warn") == ["True", "1"]
    assert judge(5_000, tmp_path, "Audit") == ["True", "0"]
