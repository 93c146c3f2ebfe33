"""The parameters of commands: those that several take, and the records that options fill.

A command is a function. Its parameters are Typer's (``Annotated[str, typer.Option(...)]``), or
records of options (:mod:`isolang.declared`), which are filled from one for each field.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import (
    Annotated,
    Any,
    Final,
    Self,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from msgspec import NODEFAULT, Struct
from msgspec.structs import replace
from typer.core import TyperCommand

from isolang.cli import choices
from isolang.declared import Option, filled, options_of
from isolang.errors import OptionError

OUTPUT: Final = "Output"


class Mistake(typer.TyperException):
    """What was typed makes no sense.

    Attributes:
        hint: what may have been meant; empty for what the help says.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def one_of(*names: str) -> dict[str, Any]:
    """What makes an option one of a few names."""
    return {
        "metavar": "|".join(names),
        "parser": choices.taken_from(lambda: names),
        "autocompletion": choices.completed(lambda: names),
        "show_default": True,
    }


def named(names: Callable[[], Sequence[str]], metavar: str) -> dict[str, Any]:
    """What makes an option one of many names, which are looked up when they are needed."""
    return {
        "metavar": metavar,
        "parser": choices.taken_from(names),
        "autocompletion": choices.completed(names),
    }


_LEVELS: Final[Any] = choices.completed(choices.levels)

HistoryPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="HISTORY", help="A file, a folder of logs, or -.")
]
HistoryPaths: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="HISTORY...", help="Files, folders, or -.")
]
OneSpec: TypeAlias = Annotated[
    str,
    typer.Option(
        "--spec", "-s", metavar="SPEC", help="A level (si, ser, …) or a .iso file.",
        autocompletion=_LEVELS,
    ),
]  # fmt: skip
Specs: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--spec", "-s", metavar="SPEC", autocompletion=_LEVELS,
        help="A level (si, ser, …) or a .iso file; may be repeated.",
    ),
]  # fmt: skip
SpecName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="SPEC", help="A level or a .iso file.", autocompletion=_LEVELS),
]
SpecFiles: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Specifications.")
]
Color: TypeAlias = Annotated[
    str,
    typer.Option(
        "--color", help="Colours; auto: on terminals.", rich_help_panel=OUTPUT,
        **one_of("auto", "always", "never"),
    ),
]  # fmt: skip


def _taken_up(files: list[str]) -> list[str]:
    from isolang.solvers.plugins import add_file

    for file in files:
        add_file(file)
    return files


Plugins: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--plugin", metavar="FILE.py", is_eager=True, callback=_taken_up, show_default=False,
        rich_help_panel="How it is decided",
        help="Run a Python file that adds encodings or solvers; may be repeated.",
    ),
]  # fmt: skip
Include: TypeAlias = Annotated[
    list[str],
    typer.Option("--include", metavar="DIR", help="Where to look for includes; may be repeated."),
]
Output: TypeAlias = Annotated[
    str,
    typer.Option(
        "--output", "-o", help="How to print.", rich_help_panel=OUTPUT, **one_of("text", "json")
    ),
]


class _Converted:
    """What turns the typed value of one option or argument into that of its parameter.

    Typer's own way is an adapter of pydantic for each option: importing pydantic and building them
    took more than a third of a small check. The options here have parsers, or are text or flags.
    """

    def __init__(self, kind: Any, parser: Callable[[Any], Any] | None) -> None:
        (one,) = get_args(kind) or (kind,)
        assert parser is not None or one in (str, bool), f"an option of {one} needs a parser"
        self._convert = parser or (_flag if one is bool else str)

    def __call__(self) -> Self:
        """Itself: Typer asks its options for the object that converts."""
        return self

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        """The value of a parameter; of those that may be repeated, a list."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        return [self._convert(one) for one in value] if several else self._convert(value)


class WithoutPydantic:
    """A command or group of Typer whose options convert their values by themselves."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, and the option ``--help``."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in found:
            how = getattr(param, "type_descriptor", None)  # before 0.29, Typer converts without it
            if how is not None and not isinstance(param.get_runtime_param, _Converted):
                param.get_runtime_param = _Converted(how.annotation, how.parameter_info.parser)
        return found


class Command(WithoutPydantic, TyperCommand):
    """A command."""


def _flag(value: object) -> bool:
    """A flag of a configuration file."""
    if not isinstance(value, bool):
        raise typer.BadParameter(f"expected true or false (got {value!r})")
    return value


class Only:
    """Of a record, the options that a command takes, and defaults of its own for them."""

    def __init__(self, *names: str, **defaults: Any) -> None:
        """Name the options; those with a default of their own by keyword."""
        self.names = (*names, *defaults)
        self.defaults = defaults


def as_command(function: Callable[..., int]) -> Callable[..., int]:
    """The function with its records replaced by an option for each of their fields.

    What the records refuse is a mistake on the command line.
    """
    hints = get_type_hints(function, include_extras=True)
    records = records_of(function)
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in records:
            parameters += map(_parameter, records[name][1])
        else:
            parameters.append(
                parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )

    def command(**given: Any) -> int:
        for name, (record, options) in records.items():
            values = {}
            for option in options:
                if (value := given.pop(option.name)) is not None:
                    _check(option, value)
                    values[option.name] = value
            given[name] = filled(record, values)
        return function(**given)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__module__ = function.__module__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _check(option: Option, value: object) -> None:
    try:
        option.check(value, option.flag)
    except OptionError as error:
        raise Mistake(str(error)) from None


def records_of(function: Callable[..., int]) -> dict[str, tuple[type[Struct], list[Option]]]:
    """Of a command, by the names of its parameters: the records, and their options that it has."""
    found = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        record, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if isinstance(record, type) and issubclass(record, Struct):
            options = list(options_of(record).values())
            for only in (one for one in more if isinstance(one, Only)):
                options = [
                    replace(option, default=only.defaults.get(option.name, option.default))
                    for option in options
                    if option.name in only.names
                ]
            found[name] = (record, options)
    return found


def _parameter(option: Option) -> inspect.Parameter:
    """The parameter of Typer for an option."""
    about, more, default = option.about, dict[str, Any](), option.default
    if option.name in choices.OF_OPTION:
        more = named(choices.OF_OPTION[option.name], about.metavar)
    elif option.words:
        more = one_of(*option.words)
    elif option.kind in (int, float):
        more = {"parser": choices.number(option.kind)}
    if about.metavar:
        more["metavar"] = about.metavar
    taken: Any = list[str] if option.several else option.kind
    if default is None:
        taken |= None
    if default is NODEFAULT:
        shown = typer.Argument(help=about.text, **more)
        default = inspect.Parameter.empty
    else:
        flag = option.flag
        if option.kind is bool and default is True:
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        flags = [flag, about.short] if about.short else [flag]
        more["show_default"] = bool(default) or option.kind in (bool, int)
        shown = typer.Option(*flags, help=about.text, rich_help_panel=about.panel or None, **more)
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default,
        annotation=Annotated[taken, shown],
    )  # fmt: skip
