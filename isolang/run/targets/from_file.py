"""Loads adapters from users' files: ``my_adapter.py:MyDatabase``."""

from __future__ import annotations

import inspect
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from isolang.errors import IsolangError, TargetError

_METHODS: Final = ("setup", "connect", "classify")
"""The methods of every target, by which a class is recognised as a target."""


def adapter_in(named: str) -> Any:
    """Load an adapter from a file.

    The file can import modules from its folder, as a program can.

    Args:
        named: the file and the class, with ``:`` between.

    Raises:
        TargetError: the file or the class does not exist, or the file cannot be imported; the
            message then names the line.
    """
    file, _, name = named.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise TargetError(f"{file}: no such file (got {named!r}, expected FILE.py:CLASS)")
    module = _module(path.resolve(), file)
    found = getattr(module, name, None)
    if not callable(found):
        there = ", ".join(_adapters(module)) or "none"
        raise TargetError(f"{file}: no such class (got {name!r}; the adapters there: {there})")
    return found


def _module(path: Path, shown: str) -> ModuleType:
    """Import a file, unless it has been imported already."""
    name = f"isolang_adapter_{path.stem}_{hash(path) & 0xFFFFFFFF:x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        if isinstance(error, IsolangError):
            raise
        raise TargetError(f"{shown}{_line(error, path)}: {_message(error)}") from None
    return module


def _line(error: Exception, path: Path) -> str:
    """Return the line of the file that caused an error, after a colon; empty if it is unknown."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f":{lines[-1]}" if lines else ""


def _message(error: Exception) -> str:
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {what}".rstrip(": ").splitlines()[0]


def _adapters(module: ModuleType) -> list[str]:
    """Return the names of a module's classes that look like targets."""
    return [
        name
        for name, one in vars(module).items()
        if inspect.isclass(one)
        and one.__module__ == module.__name__
        and all(hasattr(one, method) for method in _METHODS)
    ]
