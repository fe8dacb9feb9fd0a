"""A real API server on loopback, for tests, stories and for trying policies: see `Sandbox`."""

from webhook.sandbox.apiserver import Options
from webhook.sandbox.binaries import binaries, cache_dir
from webhook.sandbox.capture import Capture, Captured
from webhook.sandbox.client import Reply
from webhook.sandbox.errors import SandboxError
from webhook.sandbox.registration import Registration
from webhook.sandbox.sandbox import Completed, Sandbox

__all__ = [
    "Capture",
    "Captured",
    "Completed",
    "Options",
    "Registration",
    "Reply",
    "Sandbox",
    "SandboxError",
    "binaries",
    "cache_dir",
]
