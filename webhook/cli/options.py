"""Options of the programs that run: each is an environment variable too."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from webhook.server import Address, SettingsError


def address(_context: click.Context, _option: click.Parameter, text: str) -> Address:
    try:
        return Address.parse(text)
    except SettingsError as error:
        raise click.BadParameter(str(error)) from None


F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
ANY = click.Path(path_type=Path)
SECONDS = click.FloatRange(min=0, max=3600)


def option(name: str, **settings: Any) -> Callable[[F], F]:
    """An option that can also be given as FIELDWARDEN_<NAME>."""
    variable = "FIELDWARDEN_" + name.removeprefix("--").replace("-", "_").upper()
    return click.option(name, envvar=variable, show_envvar=True, **settings)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"(\d+)([smhd])")


class Duration(click.ParamType[dt.timedelta]):
    """A time such as 90s, 12h or 1h30m."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dt.timedelta:
        if isinstance(value, dt.timedelta):
            return value
        if not re.fullmatch(f"({_PART.pattern})+", value):
            self.fail(f"{value!r} is no duration, such as 90s, 12h or 90d", param, ctx)
        return dt.timedelta(seconds=sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(value)))
