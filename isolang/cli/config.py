"""Reads option defaults from the section ``[tool.isocheck]`` of ``pyproject.toml``.

The nearest such file in the current folder or its parents is used. The section itself applies to
``check`` and ``levels``. A section for one command, such as ``[tool.isocheck.run]``, applies only
to that command. The keys are option names without the leading dashes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from typer import Typer

from isolang.cli.choices import nearest_name
from isolang.cli.commands import ISOCHECK
from isolang.cli.parameters import Mistake, records_of
from isolang.declared import Option
from isolang.errors import OptionError
from isolang.options import OutputOptions

# The keys for parameters of the function itself: the parameter, and a description of its values.
_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "spec": ("specs", "a level or a file, or a list of these"),
    "include": ("include", "a folder, or a list of these"),
}
_OF_SECTION: Final = ("check", "levels")


def defaults(command: str) -> dict[str, dict[str, Any]]:
    """Return a command's configured defaults, in the form of Click's ``default_map``.

    Raises:
        Mistake: if a key is unknown or its value is wrong.
    """
    function = _function(command)
    found = None if isinstance(function, Typer) else _table(Path.cwd())
    if found is None:
        return {}
    file, table = found
    options = _options(command)
    known: dict[str, Option | tuple[str, str]] = {**_options("check"), **_NAMES}
    section = {key: table[key] for key in table if key in known or key not in ISOCHECK}
    values = dict(_values(section, known, "", file))
    taken = {option.name for option in options.values()}
    if command not in _OF_SECTION:
        values = {}
    elif command != "check":
        values = {name: value for name, value in values.items() if name in taken}
    own = table.get(command, {})
    if not isinstance(own, dict):
        raise Mistake(
            f"{file}: tool.isocheck.{command}: not a table (got {own!r}, expected a table)"
        )
    values |= _values(own, options, f".{command}", file)
    return {command: values}


def _function(command: str) -> Any:
    """Return a command's function, or its Typer group."""
    module, name = ISOCHECK[command].where.split(":")
    return getattr(import_module(module), name)


def _options(command: str) -> dict[str, Option]:
    """Return a command's configurable options by key."""
    records = records_of(_function(command)).values()
    return {
        option.key: option
        for record, options in records
        for option in options
        if record is not OutputOptions
    }


def _values(
    table: Mapping[str, Any], known: Mapping[str, Option | tuple[str, str]], of: str, file: Path
) -> Iterator[tuple[str, Any]]:
    """Check a table of the file, and yield the name and value of each parameter that it sets."""
    for key, value in table.items():
        where = f"{file}: [tool.isocheck{of}] {key}"
        option = known.get(key)
        if option is None:
            nearest = nearest_name(key, known)
            hint = f"did you mean {nearest}?" if nearest else f"the keys are {', '.join(known)}"
            raise Mistake(f"{where}: unknown key", hint)
        if isinstance(option, Option):
            try:
                option.check(value, where)
            except OptionError as error:
                raise Mistake(str(error)) from None
            yield option.name, value
            continue
        name, expected = option
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list) or not all(isinstance(one, str) for one in several):
            raise Mistake(f"{where}: expected {expected} (got {value!r})")
        yield name, [_relative_path(one, file.parent, key) for one in several]


def _relative_path(text: str, folder: Path, key: str) -> str:
    """Make a path from the file relative to the current folder; return a level name unchanged."""
    is_path = key == "include" or text.endswith(".iso") or "/" in text
    return os.path.relpath(folder / text) if is_path else text


def _table(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the nearest ``pyproject.toml`` and its section; ``None`` if it has no section."""
    for one in (folder, *folder.parents):
        file = one / "pyproject.toml"
        try:
            text = file.read_bytes()
        except OSError:
            continue
        if b"tool.isocheck" not in text:  # importing TOML is slow, and few projects need it
            return None  # files of outer projects are ignored
        import tomllib

        try:
            table = tomllib.loads(text.decode()).get("tool", {}).get("isocheck")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Mistake(f"{file}: cannot be read ({error})") from None
        if table is not None and not isinstance(table, dict):
            raise Mistake(f"{file}: tool.isocheck: expected a table (got {table!r})")
        return None if table is None else (file, table)
    return None
