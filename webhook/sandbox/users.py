"""The people and machines of the stories: who they are to the API server, and how they log in."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType


def _token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class SandboxUser:
    """Someone who may log in, with the name and groups that reviews show (`system:authenticated` is added there)."""

    name: str
    groups: tuple[str, ...] = ()
    cluster_admin: bool = True
    token: str = field(default_factory=_token, repr=False)


def _service_account(namespace: str, name: str) -> SandboxUser:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return SandboxUser(f"system:serviceaccount:{namespace}:{name}", groups)


CONTROLLER_MANAGER = "controller-manager"


def users() -> Mapping[str, SandboxUser]:
    """The sandbox's users by their short names, each with a fresh token."""
    return MappingProxyType(
        {
            "admin": SandboxUser("admin", ("system:masters",)),
            "developer": SandboxUser("developer@example.com", ("developers",)),
            "platform": SandboxUser("platform@example.com", ("platform-admins",)),
            "oncall": SandboxUser("oncall@example.com", ("oncall",)),
            "helm": SandboxUser("helm-ci@example.com", ("deployers",)),
            "flux": _service_account("flux-system", "kustomize-controller"),
            "argocd": _service_account("argocd", "argocd-application-controller"),
            "autoscaler": _service_account("kube-system", "horizontal-pod-autoscaler"),
            "outsider": SandboxUser("outsider@example.com", cluster_admin=False),
            CONTROLLER_MANAGER: SandboxUser("system:kube-controller-manager", cluster_admin=False),
        }
    )


def token_file(everybody: Mapping[str, SandboxUser]) -> str:
    """What `--token-auth-file` reads: token, name, uid and groups of one user a line."""
    lines = []
    for uid, user in enumerate(everybody.values(), 1):
        groups = f',"{",".join(user.groups)}"' if user.groups else ""  # an empty column would be a group named ""
        lines.append(f"{user.token},{user.name},{uid}{groups}\n")
    return "".join(lines)


def admin_binding(everybody: Mapping[str, SandboxUser]) -> dict[str, object]:
    """The binding that lets everybody but the outsider do everything."""
    api_group = "rbac.authorization.k8s.io"
    names = [user.name for user in everybody.values() if user.cluster_admin]
    return {
        "apiVersion": f"{api_group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "fieldwarden-sandbox"},
        "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": api_group, "name": name} for name in names],
    }


def write_kubeconfig(path: Path, url: str, ca_file: Path, user: SandboxUser) -> None:
    """A kubeconfig of one user (JSON, which is YAML too), readable by its owner alone."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": {"server": url, "certificate-authority": str(ca_file)}}],
        "users": [{"name": user.name, "user": {"token": user.token}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user.name}}],
        "current-context": "sandbox",
    }
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
    path.chmod(0o600)
