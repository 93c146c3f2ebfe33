"""Loads an adapter from a user's file, such as ``my_adapter.py:MyDatabase``."""

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
"""Methods that every target has; a class with all of them is taken to be an adapter."""


def adapter_in(named: str) -> Any:
    """Import a user's file, and return the adapter class in it.

    Like a program, the file can import modules from its own folder.

    Raises:
        TargetError: the file or the class does not exist, or importing the file fails; in the last
            case, the message names the line.
    """
    file, _, name = named.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise TargetError(f"{file}: no such file (got {named!r}, expected FILE.py:CLASS)")
    module = _module(path.resolve(), file)
    found = getattr(module, name, None)
    if not callable(found):
        there = ", ".join(_adapters(module)) or "none"
        raise TargetError(f"{file}: no such class (got {name!r}, expected {there})")
    return found


def _module(path: Path, shown: str) -> ModuleType:
    """Import a file, unless it has already been imported."""
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
    """Return the line of the file that caused an error, after a colon; empty if unknown."""
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
    """Return the names of the classes in a module that look like adapters."""
    return [
        name
        for name, one in vars(module).items()
        if inspect.isclass(one)
        and one.__module__ == module.__name__
        and all(hasattr(one, method) for method in _METHODS)
    ]
