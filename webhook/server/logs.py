"""JSON lines on standard output. No line holds a value out of an object: names, paths and numbers only."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterable, MutableMapping
from typing import Any

import orjson
import structlog

from webhook.server.state import OwnershipLike, ResultLike

MAX_TEXT = 256
MAX_PATHS = 20
MAX_OWNED = 4  # paths whose owners are told, and owners of each
MAX_NAME = 150
MAX_RESULTS = 20


class _StandardOutput:
    """Writes each line with one call, so that lines of several processes do not mix; takes no lock that a fork could
    leave locked; and never fails a request because nobody reads the log."""

    def msg(self, line: bytes) -> None:
        rest = memoryview(line + b"\n")
        try:
            while rest:
                rest = rest[os.write(1, rest) :]
        except OSError:
            return

    debug = info = warning = error = critical = log = msg


def make_logger(level: str) -> Any:
    """A structlog logger that prints from `level` upwards."""
    return structlog.wrap_logger(
        _StandardOutput(),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _frames,
            _in_order,
            structlog.processors.JSONRenderer(serializer=_dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        cache_logger_on_first_use=True,
    )


def _dumps(event: Any, **_: Any) -> bytes:
    try:
        return orjson.dumps(event, default=str)
    except TypeError:  # a lone surrogate in a name
        return json.dumps(event, default=str).encode("ascii")


def _in_order(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    head = {key: event.pop(key) for key in ("time", "level", "event") if key in event}
    return {**head, **event}


def _frames(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An exception as its type and where it came from. Its text may quote what was being read, so it stays out."""
    error = event.pop("exc_info", None)
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)[-30:]
        event["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return event


def results(found: Iterable[ResultLike]) -> list[dict[str, Any]]:
    """Events as a log line shows them, cut to a bounded size."""
    listed = list(found)
    shown = [
        {
            "event": result.kind,
            "policy": result.policy,
            "rule": result.rule,
            "mode": str(result.mode),
            "action": str(result.action) if result.action is not None else None,
            "outcome": result.outcome,
            **({"operation": result.operation} if result.operation else {}),  # the claim's: Apply, Update
            **({"owner": result.owner} if result.owner else {}),
            "paths": [str(path)[:MAX_TEXT] for path in result.paths[:MAX_PATHS]],
            **({"ownership": list(map(_ownership, result.ownership[:MAX_OWNED]))} if result.ownership else {}),
            **({"more_paths": len(result.paths) - MAX_PATHS} if len(result.paths) > MAX_PATHS else {}),
        }
        for result in listed[:MAX_RESULTS]
    ]
    if len(listed) > MAX_RESULTS:
        shown.append({"more_results": len(listed) - MAX_RESULTS})
    return shown


def _ownership(item: OwnershipLike) -> dict[str, Any]:
    return {
        "path": item.path[:MAX_TEXT],
        "before": [name[:MAX_NAME] for name in item.before[:MAX_OWNED]],
        "after": [name[:MAX_NAME] for name in item.after[:MAX_OWNED]],
    }


class GunicornLog:
    """What gunicorn calls for its own messages; its access log is left to the routes."""

    def __init__(self, cfg: Any) -> None:
        self._log = make_logger(cfg.settings["loglevel"].get())

    def debug(self, message: Any, *args: Any, **_: Any) -> None:
        self._log.debug(_text(message, args), by="gunicorn")

    def info(self, message: Any, *args: Any, **_: Any) -> None:
        self._log.debug(_text(message, args), by="gunicorn")

    def warning(self, message: Any, *args: Any, **_: Any) -> None:
        self._log.warning(_text(message, args), by="gunicorn")

    def error(self, message: Any, *args: Any, **_: Any) -> None:
        self._log.error(_text(message, args), by="gunicorn")

    critical = error

    def exception(self, message: Any, *args: Any, **_: Any) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, TimeoutError):  # a client that stopped talking is no fault of ours
            self._log.debug("connection timed out", by="gunicorn")
            return
        self._log.error(_text(message, args), by="gunicorn", exc_info=error)

    def log(self, _level: Any, message: Any, *args: Any, **_: Any) -> None:
        self._log.debug(_text(message, args), by="gunicorn")

    def access(self, *_: Any) -> None: ...
    def reopen_files(self) -> None: ...
    def close_on_exec(self) -> None: ...


def _text(message: Any, args: tuple[Any, ...]) -> str:
    text = str(message)
    if args:
        try:
            text = text % args
        except (TypeError, ValueError):
            text = f"{text} {args}"
    return text[:MAX_TEXT]
