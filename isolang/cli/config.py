"""``[tool.isocheck]`` of the nearest ``pyproject.toml``: what is meant where nothing is said.

The section itself speaks of ``check`` and ``levels``; ``[tool.isocheck.run]`` and its like of one
command. The keys are the options of the records that a command takes, without their dashes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from typer import Typer

from isolang.cli.choices import near
from isolang.cli.commands import ISOCHECK
from isolang.cli.parameters import Mistake, records_of
from isolang.declared import Option
from isolang.errors import OptionError
from isolang.options import OutputOptions

# The keys that are no options of a record, the parameter of each, and what it must be.
_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "spec": ("specs", "a level or a file, or a list of these"),
    "include": ("include", "a folder, or a list of these"),
}
_OF_SECTION: Final = ("check", "levels")


def defaults(command: str, folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """What the configuration says, by command and parameter.

    Args:
        command: that is run.
        folder: where to begin to look, upwards; by default the current one.

    Raises:
        Mistake: a key is unknown, or its value is not what it must be.
    """
    options = _options(command)
    found = _table(Path.cwd() if folder is None else folder) if options else None
    if found is None:
        return {}
    file, table = found
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
        raise Mistake(f"{file}: tool.isocheck.{command}: expected a table (got {own!r})")
    values |= _values(own, options, f".{command}", file)
    return {command: values}


def _options(command: str) -> dict[str, Option]:
    """Return the options of the records that a command takes, by key; none for a group."""
    module, name = ISOCHECK[command].where.split(":")
    function = getattr(import_module(module), name)
    if isinstance(function, Typer):
        return {}
    records = records_of(function).values()
    return {
        option.key: option
        for record, options in records
        for option in options
        if record is not OutputOptions
    }


def _values(
    table: Mapping[str, Any], known: Mapping[str, Option | tuple[str, str]], of: str, file: Path
) -> Iterator[tuple[str, Any]]:
    """The parameters that a table fills, and their values."""
    for key, value in table.items():
        where = f"{file}: [tool.isocheck{of}] {key}"
        option = known.get(key)
        if option is None:
            meant = near(key, known)
            hint = f"did you mean {meant}?" if meant else f"the keys are {', '.join(known)}"
            raise Mistake(f"{where}: no such key", hint)
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
        yield name, [_located(one, file.parent, key) for one in several]


def _located(text: str, folder: Path, key: str) -> str:
    """A path of the file, which is about its own folder; a level's name stays one."""
    is_path = key == "include" or text.endswith(".iso") or "/" in text
    return os.path.relpath(folder / text) if is_path else text


def _table(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The nearest file that has the section, and the section."""
    for one in (folder, *folder.parents):
        file = one / "pyproject.toml"
        try:
            text = file.read_bytes()
        except OSError:
            continue
        if b"tool.isocheck" not in text:  # TOML takes long to import, and most have none
            return None  # the project has no such section: those around it do not count
        import tomllib

        try:
            table = tomllib.loads(text.decode()).get("tool", {}).get("isocheck")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Mistake(f"{file}: cannot be read ({error})") from None
        if table is not None and not isinstance(table, dict):
            raise Mistake(f"{file}: tool.isocheck: expected a table (got {table!r})")
        return None if table is None else (file, table)
    return None
