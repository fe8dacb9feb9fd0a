"""The policies that a controller knows: those of the files and those of the cluster, as the webhook's pods settle them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from webhook.cluster.api import Object
from webhook.cluster.informer import Listed, Lost, News, Reached
from webhook.cluster.mirror import differ, known_after
from webhook.cluster.mirrored import KnownLabels, Mirrored, load_files, load_mirrored, united
from webhook.cluster.resource import FieldProblem
from webhook.cluster.settling import LeftOut, Settling, Together
from webhook.policy import PolicySet


class KnownPolicies:
    """Knows no network and no clock. `policies` is None until all have been read once, and never becomes so again."""

    def __init__(
        self, files: Sequence[Path], version: Callable[[], object], folder: Path, *, cluster: bool, strict: bool
    ) -> None:
        """`version` changes when the files do; `folder` is for drafts; `cluster`: whether there are any but files."""
        self.policies: PolicySet | None = None
        self.left_out: tuple[LeftOut, ...] = ()
        self.faults: tuple[str, ...] = ()
        self.resources: dict[str, Object] = {}
        self.lost = ""  # why those of the cluster cannot be followed; empty while they are
        self._files, self._version, self._strict = files, version, strict
        self._mirrored = Mirrored(folder)
        self._settling = Settling(Together(files, folder, strict))
        self._read = not cluster
        self._cluster = cluster
        self._settled: object = KnownPolicies  # as no version is
        self._changed = True
        self._of_files: PolicySet | None = PolicySet() if not files else None

    def take(self, news: News) -> None:
        """Learn of resources; `settle` makes something of it."""
        self.lost = news.why if isinstance(news, Lost) else ""
        match news:
            case Lost() | Reached():
                return
            case Listed():
                self._changed, self._read = self._changed or not self._read, True
        changed = known_after(self.resources, news, lambda item: item)
        self._changed = self._changed or differ(self.resources, changed)
        self.resources = changed

    def problems(self, resource: Object) -> tuple[FieldProblem, ...]:
        """What the linter says of one of the resources."""
        return self._settling.problems(resource)

    def settle(self) -> None:
        """Bring `policies`, `left_out` and `faults` up to date. Raises OSError where drafts cannot be written."""
        version = self._version()
        if version != self._settled:
            self._load_files()
            self._settled, self._changed = version, True
        if not (self._changed and self._read) or self._of_files is None:
            return
        found = self._of_cluster() if self._cluster else PolicySet()
        if found is not None:
            self.policies = united(self._of_files, found, KnownLabels(self._mirrored.namespaces))
            self._changed = False

    def _load_files(self) -> None:
        if not self._files:
            return
        loaded = load_files(self._files, strict=self._strict)
        if loaded.policies is not None:
            self._of_files, self.faults = loaded.policies, ()
        else:
            self.faults = tuple(str(one) for one in loaded.problems if one.severity == "error")

    def _of_cluster(self) -> PolicySet | None:
        good = self._mirrored.texts()
        settled = self._settling.settle(self.resources.values(), good)
        self.left_out = settled.left_out
        if settled.texts != good or not self._mirrored.is_read:
            self._mirrored.write_policies(settled.texts)
        return load_mirrored([self._mirrored.policies], strict=self._strict).policies
