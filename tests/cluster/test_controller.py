"""The controller on a real API server: from an empty release to one that serves, and what may happen to it later."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.release import AUTHORITY, FIELDPOLICIES, LEAF, SHORT, Installed, later, settled
from tests.cluster.support import invalid, owned, policy
from webhook.certificates import certificates_in, is_issued_by, new_authority
from webhook.cluster.controller import Controller
from webhook.cluster.informer import Lost
from webhook.policy import Mode
from webhook.sandbox import Sandbox

DAY = dt.timedelta(days=1)


@pytest.fixture
def release(clean: Sandbox, namespace: str, tmp_path: Path) -> Iterator[Installed]:
    installed = Installed(clean, namespace, tmp_path)
    installed.install()
    yield installed
    installed.uninstall()


@pytest.fixture
def create(clean: Sandbox) -> Callable[..., None]:
    def made(*policies: dict[str, object]) -> None:
        for one in policies:
            reply = clean.request("POST", FIELDPOLICIES, one)
            assert reply.status == 201, reply.body

    return made


def running(release: Installed) -> Controller:
    """A release whose pods serve, kept by one controller."""
    return started(release, release.controller())


def started(release: Installed, controller: Controller) -> Controller:
    """Pods begin to serve once there is a certificate."""
    for _ in range(3):
        controller.turn()
    release.start_pod()
    return settled(controller)


def test_nothing_is_sent_before_a_pod_can_answer(release: Installed, create: Callable[..., None]) -> None:
    create(policy())
    controller = release.controller()
    for _ in range(3):
        controller.turn()
    assert release.secret(LEAF).keys() >= {"tls.crt", "tls.key", "ca.crt"}
    assert certificates_in(release.bundle())
    assert [release.resources(number) for number in range(3)] == [[], [], []]
    assert any("no pod is ready" in fault for fault in controller.state.faults)
    release.start_pod(ready=False)
    controller.turn()
    assert release.resources() == []
    release.start_pod()
    release.pods.shown = None
    controller.turn()
    assert release.resources() == []
    assert any("does not show a certificate" in fault for fault in controller.state.faults)
    release.refresh_pod()
    settled(controller)
    assert release.resources() == ["*", "*/*"]
    assert release.resources(1) == ["*/scale"]
    assert release.resources(2) == ["fieldpolicies"]
    assert controller.state.faults == ()


def test_rules_follow_policies(release: Installed, create: Callable[..., None], clean: Sandbox) -> None:
    controller = running(release)
    assert [release.resources(number) for number in range(3)] == [[], [], ["fieldpolicies"]]
    create(owned("images", "flux"))
    release.tell(controller)
    settled(controller)
    assert release.resources() == ["deployments", "deployments/*"]
    assert {condition["name"] for condition in release.webhook(0)["matchConditions"]} >= {"not-the-control-plane"}
    assert "matchConditions" not in release.webhook(2)
    assert clean.request("DELETE", f"{FIELDPOLICIES}/images").status == 200
    release.tell(controller)
    settled(controller)
    assert release.resources() == []


def test_rules_stay_while_no_pod_is_ready(release: Installed, create: Callable[..., None]) -> None:
    """With failurePolicy Fail nothing may then escape."""
    create(policy())
    controller = running(release)
    release.start_pod(ready=False)
    create(owned("images", "flux"))
    release.tell(controller)
    settled(controller)
    assert release.resources() == ["*", "*/*"]


def test_it_repeats_nothing(release: Installed, create: Callable[..., None]) -> None:
    create(policy(), owned("images", "flux"))
    controller = running(release)
    release.tell(controller)
    settled(controller)
    before = [release.webhook(number) for number in range(3)], release.secret(LEAF), release.secret(AUTHORITY)
    resources = controller.api.list(FIELDPOLICIES)
    release.tell(controller)
    settled(controller)
    settled(release.controller(identity="one"))  # one that remembers nothing
    assert ([release.webhook(number) for number in range(3)], release.secret(LEAF), release.secret(AUTHORITY)) == before
    assert controller.api.list(FIELDPOLICIES).items == resources.items


def test_a_status_says_what_is_in_force(release: Installed, create: Callable[..., None], clean: Sandbox) -> None:
    controller = running(release)
    missing = owned("gadgets", "flux")
    missing["spec"]["match"]["resources"] = [{"groups": ["gone.example.com"], "resources": ["gadgets"]}]
    create(owned("images", "flux"), invalid("broken"), missing)

    def of(name: str) -> tuple[str, str, dict[str, object]]:
        release.tell(controller)
        settled(controller)
        status = clean.request("GET", f"{FIELDPOLICIES}/{name}").body["status"]
        ready = status["conditions"][0]
        return ready["status"], ready["reason"], status

    state, reason, status = of("images")
    assert (state, reason) == ("True", "InForce")
    assert (status["matchedResources"], status["problems"]) == (["deployments.apps"], [])
    assert status["observedGeneration"] == 1
    loaded = status["lastLoadTime"]
    state, reason, status = of("broken")
    assert (state, reason) == ("False", "NotInForce")
    assert [(one["severity"], one["field"]) for one in status["problems"]] == [
        ("error", "spec.rules[0].writers.deny[0]")
    ]
    assert "lastLoadTime" not in status
    state, reason, status = of("gadgets")
    assert (state, reason) == ("True", "NotServed")
    assert "gadgets.gone.example.com" in status["conditions"][0]["message"]
    merge = "application/merge-patch+json"
    worse = {"spec": invalid()["spec"]}
    assert clean.request("PATCH", f"{FIELDPOLICIES}/images", worse, content_type=merge).status == 200
    state, reason, status = of("images")
    assert (state, reason) == ("False", "EarlierVersionInForce")
    assert (status["observedGeneration"], status["lastLoadTime"]) == (2, loaded)
    assert release.resources() == ["deployments", "deployments/*", "gadgets", "gadgets/*"]


@pytest.mark.parametrize(
    ("mode", "said"), [(Mode.AUDIT, "it acts as Audit: the release's mode is Audit"), (Mode.ENFORCE, "")]
)
def test_a_status_says_what_the_releases_mode_makes_of_it(
    mode: Mode, said: str, release: Installed, create: Callable[..., None], clean: Sandbox
) -> None:
    create(owned("images", "flux"), owned("others", "flux", mode="Audit"))
    started(release, release.controller(mode=mode))
    for name, wanted in (("images", said), ("others", "")):
        status = clean.request("GET", f"{FIELDPOLICIES}/{name}").body["status"]
        ready = status["conditions"][0]
        assert (ready["reason"], ready["message"]) == ("InForce", wanted)
        assert status["mode"] == (str(mode) if name == "images" else "Audit")


def test_a_policy_whose_writes_are_not_sent_is_not_ready(
    release: Installed, create: Callable[..., None], clean: Sandbox
) -> None:
    create(owned("images", "flux"))
    controller = release.controller()

    def ready() -> tuple[str, str]:
        status = clean.request("GET", f"{FIELDPOLICIES}/images").body["status"]
        assert "pod is ready" in status["conditions"][0]["message"] or status["conditions"][0]["status"] == "True"
        return status["conditions"][0]["status"], status["conditions"][0]["reason"]

    for _ in range(3):
        controller.turn()
    assert ready() == ("False", "NotRegistered")
    release.start_pod()
    settled(controller)
    assert ready() == ("True", "InForce")


def test_policies_that_cannot_be_followed_are_said(release: Installed) -> None:
    controller = running(release)
    controller.known.take(Lost("list: 403 forbidden"))
    controller.turn()
    assert controller.state.faults == ("the policies of the cluster cannot be followed: list: 403 forbidden",)
    release.tell(controller)
    settled(controller)
    assert controller.state.faults == ()


def test_two_that_contradict_each_other_say_so(release: Installed, create: Callable[..., None], clean: Sandbox) -> None:
    controller = running(release)
    create(owned("first", "flux"), owned("second", "argo"))
    release.tell(controller)
    settled(controller)
    statuses = [clean.request("GET", f"{FIELDPOLICIES}/{name}").body["status"] for name in ("first", "second")]
    assert sorted(one["conditions"][0]["status"] for one in statuses) == ["False", "True"]
    assert [one["problems"][0]["field"] for one in statuses if one["problems"]] == [""]


def test_policies_in_files_are_registered_too(release: Installed, tmp_path: Path) -> None:
    import json

    (tmp_path / "policy.yaml").write_text(json.dumps(owned("images", "flux")))
    started(release, release.controller((tmp_path / "policy.yaml",), from_cluster=False))
    assert (release.resources(), release.resources(2)) == (["deployments", "deployments/*"], [])


def test_files_that_do_not_load_change_nothing(release: Installed, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("kind: [")
    controller = release.controller((tmp_path / "policy.yaml",), from_cluster=False)
    for _ in range(3):
        controller.turn()
    release.start_pod()
    controller.turn()
    assert release.resources() == []
    assert certificates_in(release.bundle())
    assert any("policy.yaml" in fault for fault in controller.state.faults)


def test_years_of_renewals_leave_pods_trusted(release: Installed, create: Callable[..., None]) -> None:
    """A turn every few hours for two lives of the authority; pods take a new certificate when they look next."""
    create(policy())
    controller = running(release)
    time, leaves, authorities = dt.datetime.now(dt.UTC), set(), set()
    end = time + 2 * SHORT.authority
    while time < end:
        later(controller, time)
        settled(controller)
        for number in range(3):
            bundle = certificates_in(release.bundle(number))
            shown = certificates_in(release.pods.shown or b"")[0]
            assert any(is_issued_by(shown, each) for each in bundle), time
            authorities |= set(bundle)
        leaves.add(release.pods.shown)
        release.refresh_pod()
        time += DAY / 2
    assert len(leaves) >= 6
    assert len(authorities) >= 3


def test_a_damaged_secret_is_said_and_healed(release: Installed) -> None:
    controller = running(release)
    shown, bundle = release.pods.shown, release.bundle()
    release.write_secret(LEAF, {"tls.key": b"-----BEGIN"})
    controller.turn()
    assert any(f"{LEAF}: " in fault for fault in controller.state.faults)
    settled(controller)
    release.refresh_pod()
    assert release.pods.shown != shown
    assert controller.pods.trusts(None, bundle, "")  # type: ignore[arg-type]
    settled(controller)
    release.write_secret(AUTHORITY, {"ca.key": None})
    controller.turn()
    assert any("authority: ca.key is missing" in fault for fault in controller.state.faults)
    later(controller, dt.datetime.now(dt.UTC) + DAY)
    settled(controller)
    assert controller.pods.trusts(None, release.bundle(), "")  # type: ignore[arg-type]
    assert controller.state.faults == ()


def test_what_was_taken_away_is_not_made_again(release: Installed, clean: Sandbox) -> None:
    """In an emergency somebody deletes the configurations; that must hold."""
    controller = running(release)
    release.uninstall()
    for _ in range(3):
        controller.turn()
    assert [fault for fault in controller.state.faults if "helm upgrade" in fault] == list(controller.state.faults)
    assert len(controller.state.faults) == 3
    name = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{release.name}"
    assert clean.request("GET", name).status == 404
    secret = f"/api/v1/namespaces/{release.namespace}/secrets/{AUTHORITY}"
    assert clean.request("DELETE", secret).status == 200
    controller.turn()
    assert any(AUTHORITY in fault for fault in controller.state.faults)


def test_rules_that_somebody_else_set_are_told_and_left(release: Installed, create: Callable[..., None]) -> None:
    controller = running(release)
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    theirs(release, 0, {"rules": rules})
    create(owned("images", "flux"))
    release.tell(controller)
    controller.turn()
    assert any("somebody" in fault and "conflict" in fault for fault in controller.state.faults), controller.state
    assert release.resources() == ["pods"]


def theirs(release: Installed, number: int, webhook: dict[str, object]) -> None:
    """Somebody takes a part of our webhook, by force."""
    kind, name, hook = release._configurations()[number]
    item = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [{"name": hook, **webhook}],
    }
    path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s/{name}"
    params = {"fieldManager": "somebody", "force": "true"}
    applied = release.sandbox.request("PATCH", path, item, content_type="application/apply-patch+yaml", params=params)
    assert applied.status == 200, applied.body


def test_a_bundle_that_somebody_took_holds_up_nothing_else(
    release: Installed, create: Callable[..., None], clean: Sandbox
) -> None:
    """Policies are registered, certificates renewed and statuses written as ever; what is wrong is said there too."""
    controller = running(release)
    foreign = new_authority("somebody", dt.datetime.now(dt.UTC), 99 * DAY).certificate_pem
    theirs(release, 2, {"clientConfig": {"caBundle": base64.b64encode(foreign).decode()}})
    create(owned("images", "flux"))
    release.tell(controller)
    release.write_secret(LEAF, dict.fromkeys(release.secret(LEAF)))
    for _ in range(3):
        controller.turn()
    assert any("does not trust our authority" in fault and "somebody" in fault for fault in controller.state.faults)
    assert release.resources() != []
    assert release.secret(LEAF).get("tls.crt")
    ready = clean.request("GET", f"{FIELDPOLICIES}/images").body["status"]["conditions"][0]
    assert (ready["reason"], "does not trust" in ready["message"]) == ("NotRegistered", True)
    assert release.bundle(2) == foreign
    assert controller.turn() > 1, "and is not written again and again"


def test_what_somebody_adds_to_our_configurations_is_said(release: Installed, create: Callable[..., None]) -> None:
    create(policy())
    controller = running(release)
    never = {"name": "never", "expression": "false"}
    theirs(release, 0, {"matchConditions": [never]})
    settled(controller)
    [fault] = controller.state.faults
    assert "the condition never, which is not ours" in fault


def test_one_of_two_acts(release: Installed, create: Callable[..., None]) -> None:
    first, second = release.controller(), release.controller(identity="two")
    assert (first.leader.leads, second.leader.leads) == (True, False)
    assert second.leader.why == "one leads"
    second.turn()
    assert release.secret(AUTHORITY) == {}
    first.turn()
    assert release.secret(AUTHORITY) != {}
    first.leader.release()
    second.leader.turn()
    assert (first.leader.leads, second.leader.leads) == (False, True)
    first.leader.turn()
    assert first.leader.leads is False


def test_who_falls_silent_is_replaced(release: Installed) -> None:
    first = release.controller()
    clock = [0.0]
    second = release.controller(identity="two")
    second.leader._clock = first.leader._clock = lambda: clock[0]
    first.leader.turn()
    for clock[0] in (1.0, 9.0):
        second.leader.turn()
        assert (first.leader.leads, second.leader.leads) == (True, False)
    clock[0] = 10.5
    assert first.leader.leads is False  # stops before another may begin
    clock[0] = 14.0
    second.leader.turn()
    assert second.leader.leads is False
    clock[0] = 16.5
    second.leader.turn()
    assert second.leader.leads is True
    first.leader.turn()
    assert (first.leader.leads, first.leader.why) == (False, "two leads")


def test_one_secret_is_never_overwritten_by_another_controller(release: Installed) -> None:
    """Two that both believe that they lead: one has its write refused."""
    one, other = release.controller(), release.controller(identity="two")
    other.leader = one.leader
    real = other.api.patch

    def slow(path: str, change: dict[str, object]) -> dict[str, object]:
        one.turn()
        return real(path, change)

    other.api.patch = slow  # type: ignore[method-assign]
    other.turn()
    assert any("409" in fault for fault in other.state.faults), other.state
    made = release.secret(AUTHORITY)
    other.api.patch = real  # type: ignore[method-assign]
    started(release, other)
    assert release.secret(AUTHORITY)["ca.crt"] == made["ca.crt"]


def test_an_unreachable_api_server_is_said(release: Installed, create: Callable[..., None]) -> None:
    from webhook.cluster.errors import Unreachable

    controller = running(release)

    def away(*_: object, **__: object) -> None:
        raise Unreachable("get /: Connection refused")

    real, controller.api.request = controller.api.request, away  # type: ignore[method-assign,assignment]
    assert controller.turn() <= 1
    assert controller.state.faults == ("get /: Connection refused",)
    controller.api.request = real  # type: ignore[method-assign]
    settled(controller)
    assert controller.state.faults == ()


@pytest.mark.parametrize("source", ["cert-manager", "files"])
def test_certificates_of_others_are_published(release: Installed, source: str) -> None:
    from webhook.certificates import new_authority, new_leaf
    from webhook.cluster.authority import service_names

    now = dt.datetime.now(dt.UTC)
    names = service_names("fieldwarden-webhook", release.namespace)

    def give() -> bytes:
        theirs = new_authority("theirs", now, 30 * DAY)
        leaf = new_leaf(theirs, names, now, 20 * DAY)
        pair = {"tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem, "ca.crt": theirs.certificate_pem}
        release.write_secret(LEAF, dict(pair))
        return theirs.certificate_pem

    controller = release.controller(source=source)  # type: ignore[arg-type]
    controller.turn()
    assert release.bundle() == b""
    first = give()
    release.start_pod()
    settled(controller)
    assert release.bundle() == release.bundle(1) == release.bundle(2) == first
    assert release.resources(2) == ["fieldpolicies"]
    second = give()  # the pod still shows the leaf of before
    settled(controller)
    assert set(certificates_in(release.bundle())) == set(certificates_in(first + second))
    release.refresh_pod()
    settled(controller)
    assert release.bundle() == second
