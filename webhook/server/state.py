"""What the server consumes of the other rooms, and the state that one worker's routes read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from webhook.report.folding import ResultLike as RecordableLike
from webhook.server.calls import Refusal

if TYPE_CHECKING:
    from webhook.server.metrics import Metrics
    from webhook.server.recording import Recorder

Phase = Literal["validate", "mutate"]
Call = Literal["validate", "mutate", "policy"]
"""What is asked: the two calls about a write, and the one about a policy itself."""


class OwnershipLike(Protocol):
    """Whose claims hold a path, without a rewrite and with it."""

    @property
    def path(self) -> str: ...
    @property
    def before(self) -> Sequence[str]: ...
    @property
    def after(self) -> Sequence[str]: ...


class ResultLike(RecordableLike, Protocol):
    """One event, as it is recorded and as the log shows it."""

    @property
    def action(self) -> str | None: ...
    @property
    def ownership(self) -> Sequence[OwnershipLike]: ...


class DecisionLike(Protocol):
    """What was decided."""

    @property
    def allowed(self) -> bool: ...
    @property
    def policies(self) -> Sequence[str]: ...
    @property
    def results(self) -> Sequence[ResultLike]: ...
    @property
    def manager(self) -> str | None: ...


class AnswerLike(Protocol):
    """`response` is the AdmissionReview to send, as JSON; `review` is only read for names."""

    @property
    def response(self) -> bytes: ...
    @property
    def decision(self) -> DecisionLike: ...
    @property
    def review(self) -> Any: ...


class EngineLike(Protocol):
    """Body to answer; raises `webhook.admission.BadCall`."""

    def answer(self, body: bytes, phase: Phase) -> AnswerLike: ...


class GateLike(Protocol):
    """A review of a policy to its answer; raises `webhook.admission.BadCall`."""

    def answer(self, body: bytes) -> AnswerLike: ...


class NotRead:
    """Stands for an engine until the policies have been read: no call is answered by half of them."""

    def answer(self, body: bytes, phase: Phase) -> AnswerLike:  # noqa: ARG002 - as an engine's
        raise Refusal(503, "policies-not-read", "the policies have not been read from the cluster yet")


class PolicySetLike(Protocol):
    """An immutable set of policies."""

    @property
    def policies(self) -> Sequence[object]: ...


class ProblemLike(Protocol):
    """Something about a policy file; `str()` is file:line:column and a sentence."""

    @property
    def severity(self) -> str: ...


class LoadedLike(Protocol):
    """`policies` is None when any problem is an error."""

    @property
    def policies(self) -> PolicySetLike | None: ...
    @property
    def problems(self) -> Sequence[ProblemLike]: ...


class Load(Protocol):
    """`webhook.policy.load`."""

    def __call__(self, paths: Sequence[Path], *, strict: bool = False) -> LoadedLike: ...


@dataclass(slots=True)
class ServerState:
    """One worker's. `engine` is swapped whole: a request takes it once and never sees half a set."""

    engine: EngineLike
    gate: GateLike
    metrics: Metrics
    log: Any  # a structlog logger
    recorder: Recorder | None = None  # None: no journal
    shown: Callable[[str], str] = str  # a user's name, as it is written down
    large: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(1))  # bounds memory: see routes


MakeEngine = Callable[[Any], EngineLike]
"""A PolicySet to an Engine."""
