"""``[tool.isocheck]`` of the nearest ``pyproject.toml``: what is meant where nothing is said."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Final

from isolang.cli.choices import near
from isolang.cli.parameters import Mistake

# Each key, the parameter of the commands that it fills, and what it must be.
_KEYS: Final[dict[str, tuple[str, str]]] = {
    "spec": ("specs", "a level or a file, or a list of these"),
    "timeout": ("timeout", "a number of seconds"),
    "memory": ("memory", "a number of megabytes"),
    "include": ("include", "a folder, or a list of these"),
}
_COMMANDS: Final = {
    "check": ("specs", "timeout", "memory", "include"),
    "levels": ("timeout", "memory"),
}


def defaults(folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """What the configuration says, by command and parameter.

    Args:
        folder: where to begin to look, upwards; by default the current one.

    Raises:
        Mistake: a key is unknown, or its value is not what it must be.
    """
    found = _table(Path.cwd() if folder is None else folder)
    if found is None:
        return {}
    file, table = found
    values: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{file}: [tool.isocheck] {key}"
        if key not in _KEYS:
            meant = near(key, _KEYS)
            hint = f"did you mean {meant}?" if meant else f"the keys are {', '.join(_KEYS)}"
            raise Mistake(f"{where}: no such key", hint)
        name, expected = _KEYS[key]
        if key in ("timeout", "memory"):
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise Mistake(f"{where}: expected {expected} (got {value!r})")
            values[name] = value
            continue
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list) or not all(isinstance(one, str) for one in several):
            raise Mistake(f"{where}: expected {expected} (got {value!r})")
        values[name] = [_located(one, file.parent, key) for one in several]
    return {
        command: {name: values[name] for name in names if name in values}
        for command, names in _COMMANDS.items()
    }


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
        if b"tool.isocheck" not in text:
            return None  # the project has no such section: those around it do not count
        try:
            table = tomllib.loads(text.decode()).get("tool", {}).get("isocheck")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Mistake(f"{file}: cannot be read ({error})") from None
        if table is not None and not isinstance(table, dict):
            raise Mistake(f"{file}: tool.isocheck: expected a table (got {table!r})")
        return None if table is None else (file, table)
    return None
