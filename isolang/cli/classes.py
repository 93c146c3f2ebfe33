"""Defines the Typer classes of the commands, and the error for a mistake on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, get_args

import typer
from typer.core import TyperCommand


class Mistake(typer.TyperException):
    """Raised for a mistake on the command line.

    Attributes:
        hint: a way to correct the mistake; if empty, the message refers to the help.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class _TextConverter:
    """Converts the text of an option or argument to its parameter's value, without pydantic.

    Typer itself builds a pydantic adapter for each option, but importing pydantic is slow. These
    commands do not need it, because each of their options has a parser, or is a string or a flag.
    """

    def __init__(self, kind: Any, parser: Callable[[Any], Any] | None) -> None:
        (one,) = get_args(kind) or (kind,)
        assert parser is not None or one in (str, bool), f"an option of {one} needs a parser"
        self._convert = parser or (_flag if one is bool else str)

    def __call__(self) -> Self:
        """Return the converter itself, because Typer calls this object to get one."""
        return self

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        """Convert the text of a parameter to its value, or to a list if it may be repeated."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        return [self._convert(one) for one in value] if several else self._convert(value)


class WithoutPydantic:
    """A Typer command or group without pydantic, and with few modules of rich."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from isolang.cli.help import import_rich

        import_rich()
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's parameters, including the option ``--help``."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in found:
            # Typer before version 0.29 has no such attribute and needs no change.
            how = getattr(param, "type_descriptor", None)
            if how is not None and not isinstance(param.get_runtime_param, _TextConverter):
                param.get_runtime_param = _TextConverter(how.annotation, how.parameter_info.parser)
        return found


class Command(WithoutPydantic, TyperCommand):
    """A Typer command without pydantic."""


def _flag(value: object) -> bool:
    """Check that a configured value is true or false, and return it."""
    if not isinstance(value, bool):
        raise typer.BadParameter(f"expected true or false (got {value!r})")
    return value
