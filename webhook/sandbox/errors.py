"""What can go wrong with a sandbox, in words for the person who started it."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot do what it was asked to; the text says why and, where there is one, the way out."""
