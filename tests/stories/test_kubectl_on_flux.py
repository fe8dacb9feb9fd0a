"""kubectl, command by command, on a Deployment that Flux applies."""

from __future__ import annotations

import json

import pytest

from tests.stories.support import Story, without

APPLIED = "change flux-owns/applied"
LABEL = ".metadata.labels.team"
IMAGE = '.spec.template.spec.containers[name="c"].image'
VARIABLE = '.spec.template.spec.containers[name="c"].env[name="A"].value'
FLUX = ["kustomize-controller (Apply)"]

REFUSED = {
    "label overwritten": ("label deployment web team=mine --overwrite", f"{APPLIED} {LABEL}"),
    "label removed": ("label deployment web team-", f"{APPLIED} {LABEL}"),
    "all labels removed": (
        """patch deployment web --type=merge -p '{"metadata":{"labels":null}}'""",
        f"{APPLIED} .metadata.labels.app {LABEL}",
    ),
    "image set": ("set image deployment web c=nginx:2", f"{APPLIED} {IMAGE}"),
    "variable set": ("set env deployment web -c c A=2", f"{APPLIED} {VARIABLE}"),
    "strategic patch": (
        """patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}}}'""",
        f"{APPLIED} {IMAGE}",
    ),
    "merge patch": (
        """patch deployment web --type=merge -p '{"metadata":{"labels":{"team":"mine"}}}'""",
        f"{APPLIED} {LABEL}",
    ),
    "json patch": (
        """patch deployment web --type=json -p '[{"op":"remove","path":"/metadata/labels/team"}]'""",
        f"{APPLIED} {LABEL}",
    ),
}


@pytest.mark.parametrize("told", REFUSED)
def test_what_flux_owns_is_refused(web: Story, told: str) -> None:
    command, event = REFUSED[told]
    web.kubectl(command).denied(event)
    assert [web.owners(LABEL), web.owners(IMAGE), web.owners(VARIABLE)] == [FLUX, FLUX, FLUX]


PASSED = {
    "label added": ("label deployment web tier=front", ".metadata.labels.tier", "kubectl-label"),
    "annotated": ("annotate deployment web note=hello", ".metadata.annotations.note", "kubectl-annotate"),
    "restarted": (
        "rollout restart deployment web",
        '.spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]',
        "kubectl-rollout",
    ),
    "paused": ("rollout pause deployment web", ".spec.paused", "kubectl-rollout"),
    "variable added": (
        "set env deployment web -c c B=2",
        '.spec.template.spec.containers[name="c"].env[name="B"].value',
        "kubectl-set",
    ),
    "patched": (
        """patch deployment web -p '{"spec":{"minReadySeconds":5}}'""",
        ".spec.minReadySeconds",
        "kubectl-patch",
    ),
}


@pytest.mark.parametrize("told", PASSED)
def test_what_nobody_owns_passes_and_is_the_writers(web: Story, told: str) -> None:
    command, path, manager = PASSED[told]
    web.kubectl(command).allowed()
    assert web.value(path) is not None
    assert web.owners(path) == [f"{manager} (Update)"]
    web.flux().allowed()
    assert web.owners(path) == [f"{manager} (Update)"]


def test_edit(web: Story) -> None:
    web.kubectl("edit deployment web", editor="sed -i s/nginx:1/nginx:2/").denied(f"{APPLIED} {IMAGE}")
    web.kubectl("edit deployment web", editor="sed -i 's/revisionHistoryLimit: 10/revisionHistoryLimit: 3/'").allowed()
    assert (web.value(".spec.revisionHistoryLimit"), web.owners(".spec.revisionHistoryLimit")) == (
        3,
        ["kubectl-edit (Update)"],
    )


def test_replace(web: Story) -> None:
    stored = web.get()
    stored["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    web.kubectl("replace -f -", stdin=json.dumps(stored)).denied(f"{APPLIED} {IMAGE}")

    stored = web.get()
    stored["spec"]["paused"] = True
    web.kubectl("replace -f -", stdin=json.dumps(stored)).allowed()
    assert web.owners(".spec.paused") == ["kubectl-replace (Update)"]


def test_replace_with_what_is_there_changes_nothing(web: Story) -> None:
    answer = web.kubectl("replace -f -", stdin=json.dumps(web.get())).allowed()
    assert not answer.stored


def test_replace_with_a_manifest_from_a_file_loses_the_label_in_vain(web: Story) -> None:
    """Such a manifest has no managedFields: the server keeps those that it has."""
    web.kubectl("replace -f -", stdin=json.dumps(without(web.git, "metadata", "labels", "team"))).denied(
        f"{APPLIED} {LABEL}"
    )


def test_client_side_apply(web: Story) -> None:
    web.git["spec"]["minReadySeconds"] = 7  # a field that Flux has not brought yet
    web.kubectl("apply -f -", stdin=json.dumps(web.git)).denied("writer flux-owns/writers")
    web.git["metadata"]["labels"]["team"] = "mine"
    answer = web.kubectl("apply -f -", stdin=json.dumps(web.git))
    answer.denied(f"{APPLIED} {LABEL}", "writer flux-owns/writers")
    assert "kubectl-client-side-apply (Update) by developer@example.com" in answer.told


def test_the_way_out_is_said(web: Story) -> None:
    told = web.kubectl("label deployment web team=mine --overwrite").told
    assert (
        "[flux-owns/applied] kubectl-label (Update) by developer@example.com may not change .metadata.labels.team: "
        "it is owned by kustomize-controller (Apply). Change it in Git and let it be applied." in told
    )


def test_swapped_init_containers_are_seen_though_no_claim_moves(web: Story) -> None:
    path = ".spec.template.spec.initContainers"
    first, second = web.get()["spec"]["template"]["spec"]["initContainers"]
    swapped = [{"op": "replace", "path": path.replace(".", "/"), "value": [second, first]}]
    web.kubectl(f"patch deployment web --type=json -p '{json.dumps(swapped)}'").denied(
        f"change init-order/from-git {path}"
    )
    web.git["spec"]["template"]["spec"]["initContainers"].reverse()
    web.flux().allowed()
    assert [item["name"] for item in web.value(path)] == ["two", "one"]


def test_a_dry_run_is_answered_as_the_write_is(web: Story) -> None:
    web.kubectl("label deployment web team=mine --overwrite --dry-run=server").denied(f"{APPLIED} {LABEL}")
    assert not web.kubectl("label deployment web tier=front --dry-run=server").allowed().stored
    assert [line["dry_run"] for line in web.server.reviews()[-2:]] == [True, True]
    assert not web.flux(dry_run=True).allowed().stored


def test_platform_admins_are_exempt(web: Story) -> None:
    web.kubectl("label deployment web team=mine --overwrite", user="platform").allowed()
    assert (web.value(LABEL), web.owners(LABEL)) == ("mine", ["kubectl-label (Update)"])
    web.flux().allowed()
    assert (web.value(LABEL), web.owners(LABEL)) == ("payments", FLUX)


def test_broken_glass_is_mended_by_the_owners_next_apply(web: Story) -> None:
    answer = web.kubectl("set image deployment web c=nginx:2", user="oncall")
    answer.rewrote(f"change flux-owns/break-glass {IMAGE}")
    assert (web.value(IMAGE), web.owners(IMAGE)) == ("nginx:2", ["kustomize-controller (Apply)"])
    web.apply(web.git, "kustomize-controller", "flux").allowed()
    assert web.value(IMAGE) == "nginx:1"
