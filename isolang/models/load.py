"""Loads a model by its name, or from a Python file."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from isolang.errors import HistoryError, ModelError, message_in_one_line, unknown_name_details
from isolang.history.edn import forms
from isolang.models.model import Model
from isolang.models.read import plain
from isolang.models.ready import READY

_NO_INITIAL = object()


def load_model(text: str, initial: str = "") -> Model:
    """Return a model, given its name or ``FILE.py:NAME``; a file is executed.

    Args:
        initial: the initial state of a model that comes with isolang, in EDN; empty for its own.

    Raises:
        ModelError: there is no such model, or the file or the initial state cannot be read.
    """
    path, separator, name = text.rpartition(":")
    if separator and path.endswith(".py"):
        if initial:
            msg = f"{text}: an initial state (got {initial}); write it into the file"
            raise ModelError(msg)
        return _from_file(path, name)
    if text not in READY:
        details = unknown_name_details(text, list(READY))
        raise ModelError(f"no such model {details}; your own model is FILE.py:NAME")
    state = _initial(initial) if initial else _NO_INITIAL
    try:
        return READY[text]() if state is _NO_INITIAL else READY[text](state)
    except (TypeError, ValueError, HistoryError) as error:
        msg = f"model {text}: not an initial state (got {initial}; {message_in_one_line(error)})"
        raise ModelError(msg) from None


def _initial(text: str) -> Any:
    # In a vector, because a text that is one vector stands for the forms inside.
    try:
        (((_, value),),) = [list(forms(f"[{text}\n]", "the initial state"))]
    except (HistoryError, ValueError):
        raise ModelError(f"the initial state is not one value in EDN (got {text})") from None
    return plain(value)


def _from_file(path: str, name: str) -> Model:
    if not Path(path).is_file():
        raise ModelError(f"{path}: no such file (expected a Python file with a model)")
    module = ModuleType(f"isolang_model_{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # as an import does: the file's classes refer to it
    try:
        # Without a file of byte code, which would be used again after a change within a second.
        exec(compile(Path(path).read_bytes(), path, "exec"), vars(module))
    except Exception as error:
        msg = f"{path}: cannot load the model ({type(error).__name__}: {error})"
        raise ModelError(msg) from error
    names = [key for key, value in vars(module).items() if isinstance(value, Model)]
    if not names:
        raise ModelError(f"{path}: has no model; hint: `{name or 'MINE'} = isolang.Model(…)`")
    if name not in names:
        raise ModelError(f"{path}: no such model {unknown_name_details(name, names)}")
    model: Model = getattr(module, name)
    return model
