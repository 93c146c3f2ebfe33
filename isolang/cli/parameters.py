"""Defines parameters shared by several commands, and turns functions into commands.

A command is a function. Each of its parameters is either a Typer option (``Annotated[str,
typer.Option(...)]``), or a record of options (:mod:`isolang.declared`), which gives the command one
option per field.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Final,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from isolang.cli import choices
from isolang.cli.classes import Mistake as Mistake  # noqa: PLC0414 - commands take it from here
from isolang.declared import About, Option, options_of, record_from
from isolang.errors import OptionError
from isolang.options import DECIDING, LIMITS, OUTPUT


def accept_only(*names: str) -> dict[str, Any]:
    """Return arguments for ``typer.Option`` that restrict an option to these names."""
    return {
        "metavar": "|".join(names),
        "parser": choices.parser_of_names(lambda: names),
        "autocompletion": choices.completer_of_names(lambda: names),
        "show_default": True,
    }


def accept_names(names: Callable[[], Sequence[str]], metavar: str) -> dict[str, Any]:
    """Return arguments for ``typer.Option`` that restrict an option to the given names."""
    return {
        "metavar": metavar,
        "parser": choices.parser_of_names(names),
        "autocompletion": choices.completer_of_names(names),
    }


LEVELS: Final[Any] = choices.completer_of_names(choices.levels)

HistoryPath: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="HISTORY", help="A file, a folder of logs, or - for standard input."),
]
HistoryPaths: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="HISTORY...", help="Files, folders, or - for standard input.")
]
OneSpec: TypeAlias = Annotated[
    str,
    typer.Option(
        "--spec", "-s", metavar="SPEC", help="A level (si, ser, …) or a .iso file.",
        autocompletion=LEVELS,
    ),
]  # fmt: skip
Specs: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--spec", "-s", metavar="SPEC", autocompletion=LEVELS,
        help="A level (si, ser, …) or a .iso file; may be repeated.",
    ),
]  # fmt: skip
SpecName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="SPEC", help="A level or a .iso file.", autocompletion=LEVELS),
]
SpecFiles: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Files with specifications.")
]


def _load_plugins(files: list[str]) -> list[str]:
    from isolang.solvers.plugins import add_file

    for file in files:
        add_file(file)
    return files


Plugins: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--plugin", metavar="FILE.py", is_eager=True, callback=_load_plugins, show_default=False,
        rich_help_panel=DECIDING,
        help="Load encodings or solvers from this Python file; may be repeated.",
    ),
]  # fmt: skip
Include: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--include",
        metavar="DIR",
        help="Also look for included specifications in this folder; may be repeated.",
    ),
]
WorkersURL: TypeAlias = Annotated[
    str,
    typer.Option(
        "--workers", metavar="URL", show_default=False, rich_help_panel=LIMITS,
        help="Distribute the work over a dask cluster: the address of its scheduler, such "
        "as tcp://HOST:8786.",
    ),
]  # fmt: skip
Output: TypeAlias = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="The output format.",
        rich_help_panel=OUTPUT,
        **accept_only("text", "json"),
    ),
]


class SelectedOptions:
    """Selects a command's options from a record, and changes their defaults and help texts."""

    def __init__(
        self,
        *names: str,
        forms: tuple[str, ...] = (),
        about: Mapping[str, About] | None = None,
        **defaults: Any,
    ) -> None:
        """Select options of a record by name."""
        self.about = about or {}
        self.names = (*names, *self.about, *defaults, *(["form"] if forms else []))
        self._forms, self._defaults = forms, defaults

    def adapted(self, option: Option) -> Option:
        """Return an option with the default, the help and the forms for this command."""
        return replace(
            option,
            default=self._defaults.get(option.name, option.default),
            about=self.about.get(option.name, option.about),
            words=self._forms if option.name == "form" else option.words,
        )


def as_command(function: Callable[..., int]) -> Callable[..., int]:
    """Turn a function into one with a parameter per option, which Typer can call.

    A parameter whose type is a record (a ``Struct``) is replaced by one option per field. If the
    record rejects a value, that is reported as a mistake on the command line.
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

    def command(**arguments: Any) -> int:
        for name, (record, options) in records.items():
            values = {}
            for option in options:
                if (value := arguments.pop(option.name)) is not None:
                    _check(option, value)
                    values[option.name] = value
            arguments[name] = record_from(record, values)
        return function(**arguments)

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
    """Return the type and options of each record parameter, by parameter name."""
    found = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        record, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if isinstance(record, type) and issubclass(record, Struct):
            options = list(options_of(record).values())
            for only in (one for one in more if isinstance(one, SelectedOptions)):
                options = [only.adapted(one) for one in options if one.name in only.names]
            found[name] = (record, options)
    return found


def _parameter(option: Option) -> inspect.Parameter:
    """Return the function parameter that Typer turns into an option."""
    about, more, default = option.about, dict[str, Any](), option.default
    if option.name in choices.NAMES_OF_OPTION:
        more = accept_names(choices.NAMES_OF_OPTION[option.name], about.metavar)
    elif option.words:
        more = accept_only(*option.words)
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
