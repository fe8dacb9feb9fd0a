"""`fieldwarden sandbox`, as typed into a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from webhook.sandbox import binaries
from webhook.sandbox.beside import COMMAND

pytestmark = pytest.mark.server

POLICY = """
apiVersion: fieldwarden.dev/v1alpha1
kind: FieldPolicy
metadata: {name: data-comes-from-git}
spec:
  mode: Enforce
  match:
    resources: [{groups: [""], resources: [configmaps]}]
  rules:
  - name: data
    ownership:
      fields: [.data]
      owners: [{manager: kustomize-controller, operation: Apply, subjects: [{serviceAccount: flux-system/kustomize-controller}]}]
      onChange: Deny
"""

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": "blue"}}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def environment(place: Path) -> dict[str, str]:
    """A cache of this test's own for the note of what is up, but the programs that are already built."""
    programs = place / "programs"
    programs.mkdir()
    for name, program in binaries().items():
        (programs / name).symlink_to(program)
    (place / "tmp").mkdir()
    own = {"KUBEBUILDER_ASSETS": programs, "XDG_CACHE_HOME": place / "cache", "TMPDIR": place / "tmp"}
    return {**os.environ, **{name: str(path) for name, path in own.items()}}


@pytest.fixture
def fieldwarden(environment: dict[str, str], place: Path) -> Iterator[Run]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND, "sandbox", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    yield run
    assert run("down").returncode == 0
    assert list((place / "tmp").iterdir()) == []


@pytest.fixture
def policies(place: Path) -> Path:
    folder = place / "policies"
    folder.mkdir()
    (folder / "policy.yaml").write_text(POLICY)
    return folder


def _exported(said: str) -> dict[str, str]:
    names = ("KUBECONFIG", "KUBECACHEDIR")  # without the second kubectl keeps its cache where it stands
    script = "\n".join([said, *(f'printf "%s\\n" "${name}"' for name in names)])
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    return dict(zip(names, done.stdout.splitlines(), strict=True))


def test_run_gives_the_command_a_server_and_ends_as_it_ends(fieldwarden: Run) -> None:
    done = fieldwarden("run", "--user", "developer", "kubectl", "auth", "whoami", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"]["userInfo"]["username"] == "developer@example.com"
    assert fieldwarden("run", "sh", "-c", "exit 7").returncode == 7


def test_run_with_policies_puts_fieldwarden_before_the_server(fieldwarden: Run, policies: Path, place: Path) -> None:
    (place / "object.json").write_text(json.dumps(OBJECT))
    script = f"""
        set -e
        apply() {{ kubectl --kubeconfig "$(dirname "$KUBECONFIG")/$1.yaml" apply --server-side -f {place}/object.json "$2" ; }}
        apply flux --field-manager=kustomize-controller
        sed -i s/blue/red/ {place}/object.json
        ! apply developer --force-conflicts
        apply flux --field-manager=kustomize-controller
    """
    done = fieldwarden("run", f"--policies={policies}", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "[data-comes-from-git/data]" in done.stderr
    assert done.stdout.count("serverside-applied") == 2


def test_audit_mode_only_records(fieldwarden: Run, policies: Path, place: Path) -> None:
    (place / "object.json").write_text(json.dumps(OBJECT))
    script = f"""
        set -e
        kubectl apply --server-side --field-manager=other -f {place}/object.json
        kubectl --as=developer@example.com patch configmap settings -p '{{"data":{{"colour":"red"}}}}'
    """
    journal = place / "journal.db"
    script = script.replace("manager=other", "manager=kustomize-controller")
    done = fieldwarden("run", f"--policies={policies}", "--mode=Audit", f"--journal={journal}", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    told = subprocess.run([*COMMAND, "report", str(journal)], capture_output=True, text=True, check=False, timeout=60)
    assert told.returncode == 1, "what Enforce would have refused"
    assert "data-comes-from-git" in told.stdout
    assert "developer@example.com" in told.stdout


def test_a_journal_needs_policies_and_a_folder(fieldwarden: Run, policies: Path, place: Path) -> None:
    for arguments in ((f"--journal={place}/j.db",), (f"--policies={policies}", f"--journal={place}/none/j.db")):
        done = fieldwarden("run", *arguments, "true")
        assert done.returncode == 2
        assert "--policies" in done.stderr or "no such folder" in done.stderr


def test_policies_that_do_not_load_are_reported_with_exit_code_4(fieldwarden: Run, policies: Path) -> None:
    (policies / "policy.yaml").write_text(POLICY.replace("onChange: Deny", "onChange: Dney"))
    done = fieldwarden("run", f"--policies={policies}", "true")
    assert done.returncode == 4
    assert "policy.yaml:14:" in done.stderr


def test_up_detached_status_and_down(fieldwarden: Run, policies: Path) -> None:
    assert fieldwarden("status").returncode == 1
    up = fieldwarden("up", "--detach", f"--policies={policies}")
    assert up.returncode == 0, up.stderr
    kubectl = [binaries()["kubectl"], "get", "validatingwebhookconfigurations", "-o", "name"]
    said = subprocess.run(kubectl, env=_exported(up.stdout), capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["validatingwebhookconfiguration.admissionregistration.k8s.io/fieldwarden"]
    status = fieldwarden("status")
    assert (status.returncode, status.stdout) == (0, up.stdout)
    assert "with fieldwarden at https://127.0.0.1:" in status.stderr
    again = fieldwarden("up", "--detach")
    assert (again.returncode, "down" in again.stderr) == (3, True)
    assert fieldwarden("down").stderr == "The sandbox is down.\n"
    assert fieldwarden("status").returncode == 1
    assert fieldwarden("down").stderr == "No sandbox is up.\n"


def test_up_in_the_foreground_ends_with_ctrl_c(fieldwarden: Run, environment: dict[str, str], place: Path) -> None:
    command = [*COMMAND, "sandbox", "up"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    assert [line.split("=")[0] for line in lines[:3]] == ["export KUBECONFIG", "export KUBECACHEDIR", "export PATH"]
    assert lines[3].startswith("# of other users (developer, ")
    assert fieldwarden("status").returncode == 0
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    assert list((place / "tmp").iterdir()) == []


def test_a_note_left_by_a_crash_does_not_count(fieldwarden: Run, environment: dict[str, str], place: Path) -> None:
    command = [*COMMAND, "sandbox", "up"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("export KUBECONFIG")
    process.kill()
    process.wait()
    assert (place / "cache" / "fieldwarden" / "sandbox.json").read_text() != ""
    assert fieldwarden("status").returncode == 1
    assert fieldwarden("up", "--detach").returncode == 0
