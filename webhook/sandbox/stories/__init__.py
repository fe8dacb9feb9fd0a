"""Stories: what happens on a real API server, told step by step, each step checked against what the story says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from webhook.sandbox.sandbox import Sandbox
from webhook.sandbox.stories import ghost_label
from webhook.sandbox.stories.telling import Act, Label, NotAsTold, Part, Step, Told, Wait

__all__ = ["STORIES", "Act", "Label", "NotAsTold", "Part", "Step", "Story", "Told", "Wait"]


@dataclass(frozen=True, slots=True)
class Story:
    """One story. `tell(sandbox, policies, mode)` plays it on a fresh sandbox with fieldwarden's policies in its second half.

    It yields what is told as it happens, and raises NotAsTold after the first step that went otherwise.
    """

    name: str
    summary: str
    policies: Path
    tell: Callable[[Sandbox, Path, str], Iterator[Told]]


STORIES: Mapping[str, Story] = MappingProxyType(
    {
        story.name: story
        for story in (Story(ghost_label.NAME, ghost_label.SUMMARY, ghost_label.POLICY, ghost_label.tell),)
    }
)
