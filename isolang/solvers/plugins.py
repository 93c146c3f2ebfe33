"""Loads encodings and solvers from other packages and from user files.

Other packages add encodings and solvers through entry points in the groups ``isolang.encodings``
and ``isolang.solvers``, whose objects are rows of the registries. A file adds its rows when it is
run: ``ENCODINGS["mine"] = Encoding(...)``. An environment variable lists these files, because
processes that run a solver must load them too.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from isolang.encodings.registry import ENCODINGS, Encoding
from isolang.errors import SolverError

VARIABLE: Final = "ISOLANG_PLUGINS"
"""The environment variable that lists plugin files, separated like the folders in ``PATH``."""
_HINT = 'hint: `ENCODINGS["mine"] = Encoding(...)`, docs/adding-an-encoding.md'


def add_file(path: str) -> None:
    """Load a file's encodings and solvers in this process and in all processes it starts.

    Raises:
        SolverError: if the file cannot be run, adds nothing, or replaces an existing row.
    """
    whole = str(Path(path).resolve())
    known = os.environ.get(VARIABLE, "").split(os.pathsep)
    _load_file(whole)
    if whole not in known:
        os.environ[VARIABLE] = os.pathsep.join([*filter(None, known), whole])


@cache
def load_plugins() -> None:
    """Load the plugin files listed in ``VARIABLE``, and the entry points of other packages.

    Raises:
        SolverError: if a file or an entry point cannot be loaded.
    """
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _load_file(path)
    from importlib.metadata import entry_points

    for group, (rows, kind) in _registries().items():
        for entry in entry_points(group=f"isolang.{group}"):
            where = f"entry point {entry.name} of isolang.{group}"
            try:
                row = entry.load()
            except Exception as error:
                msg = f"{where}: cannot load the plugin ({type(error).__name__}: {error})"
                raise SolverError(msg) from error
            if not isinstance(row, kind) or row.name != entry.name:
                msg = f"{where}: no {kind.__name__} has this name (got {row!r:.80})"
                raise SolverError(msg)
            if rows.setdefault(row.name, row) is not row:
                raise SolverError(f"{where}: another plugin or built-in has this name")


def _registries() -> dict[str, tuple[MutableMapping[str, Any], type[Any]]]:
    from isolang.solvers.registry import SOLVERS, Solver

    return {"encodings": (ENCODINGS, Encoding), "solvers": (SOLVERS, Solver)}


@cache
def _load_file(path: str) -> None:
    registries = _registries()
    before = {group: dict(rows) for group, (rows, _) in registries.items()}
    name = f"isolang_plugin_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise SolverError(f"{path}: not a plugin (expected a Python file, FILE.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the rows refer to functions by this module name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SolverError(
            f"{path}: cannot load the plugin ({type(error).__name__}: {error})"
        ) from error
    added = 0
    for group, (rows, kind) in registries.items():
        for key, row in rows.items():
            old = before[group].get(key)
            if old is not None and row is not old:
                rows[key] = old
                raise SolverError(f"{path}: another entry of {group} already has the name {key}")
            if old is None and (not isinstance(row, kind) or row.name != key):
                msg = f"{path}: no {kind.__name__} of the name {key} (got {row!r:.80}); {_HINT}"
                raise SolverError(msg)
            added += old is None
    if not added:
        raise SolverError(f"{path}: adds no encoding and no solver; {_HINT}")
