"""The parameters of commands: those that several take, and the records that options fill.

A command is a function. Its parameters are Typer's (``Annotated[str, typer.Option(...)]``), or
records of :mod:`isolang.options`, which are filled from one command-line option for each field.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Self,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields
from typer.core import TyperCommand

from isolang.cli import choices
from isolang.errors import OptionError
from isolang.options import described

OUTPUT, DATABASE = "Output", "The database"


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
Level: TypeAlias = Annotated[
    str,
    typer.Option(
        "--level", metavar="LEVEL", rich_help_panel=DATABASE, show_default=False,
        help="Of the database; by default its first.",
    ),
]  # fmt: skip
Levels: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--level", metavar="LEVEL", rich_help_panel=DATABASE, show_default=False,
        help="Of the database; may be repeated. By default its first, of a suite all.",
    ),
]  # fmt: skip
TablePrefix: TypeAlias = Annotated[
    str,
    typer.Option(
        "--table-prefix", metavar="NAME", help="Names of tables begin so.", rich_help_panel=DATABASE
    ),
]
Seed: TypeAlias = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", parser=choices.number(int, 0, (1 << 63) - 1),
        help="Of all random choices.",
    ),
]  # fmt: skip
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
    records: dict[str, tuple[type[Struct], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        record, only = _record(hints[name])
        if record is None:
            parameters.append(
                parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )
            continue
        options = _options(record, only)
        records[name] = (record, [option.name for option in options])
        parameters += options

    def command(**given: Any) -> int:
        for name, (record, own) in records.items():
            values = {field: given.pop(field) for field in own}
            try:
                given[name] = record(**{k: v for k, v in values.items() if v is not None})
            except OptionError as error:
                raise Mistake(f"--{error}") from None  # it begins with the option's name
        return function(**given)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__module__ = function.__module__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _record(hint: Any) -> tuple[type[Struct] | None, Only | None]:
    only = None
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        only = next((m for m in more if isinstance(m, Only)), None)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint, only
    return None, None


def _options(record: type[Struct], only: Only | None) -> list[inspect.Parameter]:
    """A parameter of Typer for each field."""
    hints = get_type_hints(record, include_extras=True)
    about = described(record)
    found = []
    for field in fields(record):
        if only is not None and field.name not in only.names:
            continue
        default = field.default
        if only is not None:
            default = only.defaults.get(field.name, default)
        assert default is not NODEFAULT, f"{record.__name__}.{field.name} has no default"
        kind = _plain(hints[field.name])
        shown = about[field.name]
        how = dict(shown.extra or {})
        flag = how.get("flag") or f"--{field.name.replace('_', '-')}"
        if kind is bool and default is True:
            flag = f"{flag}/--no-{field.name.replace('_', '-')}"
        more: dict[str, Any] = {}
        if field.name in choices.OF_OPTION:
            more = named(choices.OF_OPTION[field.name], how.get("metavar", "NAME"))
        elif kind is not bool:
            more = {"metavar": how.get("metavar") or None}
            if kind in (int, float):
                more["parser"] = choices.number(kind)
        option = typer.Option(
            flag, help=shown.description, rich_help_panel=how.get("panel") or None, **more
        )
        taken: Any = kind if default is not None else kind | None
        annotation = Annotated[taken, option]
        found.append(
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
        )
    return found


def _plain(hint: Any) -> type:
    """The type of an option without what is said about it: ``float`` of ``float | None``."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return str
    if isinstance(hint, type):
        return hint
    return _plain(next(part for part in get_args(hint) if part is not type(None)))
