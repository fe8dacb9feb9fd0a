"""The linter's problems by field, whatever characters a policy holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.support import Object, invalid, policy
from webhook.cluster.resource import problems_of, text_of
from webhook.policy import load_text
from webhook.policy.source import plain, read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_a_document_says_what_the_resource_says(spec: object) -> None:
    found = read(text_of({**policy(), "spec": spec}), "x")
    assert not found.problems
    assert plain(found.documents[0])["spec"] == spec


def test_status_labels_and_claims_make_no_other_policy() -> None:
    bare = policy()
    more = {**policy(), "status": {"observedGeneration": 1}}
    more["metadata"] |= {"uid": "1", "resourceVersion": "7", "labels": {"a": "b"}, "managedFields": [{}]}
    assert text_of(more) == text_of(bare)
    assert text_of(invalid()) != text_of(bare)


def at(item: Object) -> list[tuple[str, str]]:
    return [(one.path, one.problem.rule) for one in problems_of(item)]


def test_every_problem_has_the_path_of_its_field() -> None:
    item = policy()
    item["spec"] = {
        "mode": "enforce",
        "match": {
            "resources": [{"groups": ["apps/v1"], "resources": ["deployments"]}],
            "objectSelector": {"matchLabels": {"app.example.com/x": "not a value"}},
        },
        "rules": [
            {"name": "a", "ownership": {"fields": [".spec", "spec.x"], "owners": ["flux"], "onChnage": "Deny"}},
            {"name": "b"},
            {"name": "a", "writers": {"bind": [{"manager": "flux", "subjects": [{"user": "a", "group": "b"}]}]}},
        ],
    }
    assert at(item) == [
        ("spec.mode", "wrong-value"),
        ("spec.match.resources[0].groups[0]", "bad-resource"),
        ("spec.match.objectSelector.matchLabels[app.example.com/x]", "bad-selector"),
        ("spec.rules[0].ownership.fields[1]", "bad-path"),
        ("spec.rules[0].ownership.onChnage", "unknown-key"),
        ("spec.rules[1]", "rule-kind"),
        ("spec.rules[2].name", "duplicate-rule"),
        ("spec.rules[2].writers.bind[0].subjects[0]", "bad-subject"),
    ]


def test_a_text_that_cannot_be_read_is_drawn_with_a_caret() -> None:
    item = policy()
    item["spec"]["rules"][0] = {"name": "a", "ownership": {"fields": ['.spec["é\\"].x'], "owners": ["flux"]}}
    (one,) = problems_of(item)
    assert one.path == "spec.rules[0].ownership.fields[0]"
    said, text, caret = one.drawn.split("\n")
    assert (said, text) == (one.words, '  .spec["é\\"].x')
    assert caret.strip() == "^"


def test_labels_of_namespaces_are_known_in_a_cluster() -> None:
    item = policy(namespaceSelector={"matchLabels": {"team": "a"}})
    assert [one.rule for one in load_text(text_of(item), "x").problems] == ["namespace-labels"]
    assert at(item) == []


@pytest.mark.parametrize("metadata", [{}, {"name": 7}, {"name": "Not A Name"}])
def test_a_resource_without_a_good_name_is_a_problem_and_no_fault_of_ours(metadata: object) -> None:
    assert any(path.startswith("metadata") for path, _ in at({**policy(), "metadata": metadata}))
