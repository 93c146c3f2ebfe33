"""Lets Typer print help without rich's Markdown and tracebacks: half of what it imports."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_UNUSED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
"""Modules that ``typer.rich_utils`` imports, and the class that it takes from each."""


def import_rich() -> None:
    """Import ``typer.rich_utils``, with classes in place of those that help does not use.

    If one of these classes is called after all, it imports its module.
    """
    if "typer.rich_utils" in sys.modules:
        return
    missing = [name for name in _UNUSED if name not in sys.modules]
    for name in missing:
        module: Any = ModuleType(name)
        setattr(module, _UNUSED[name], _stand_in(name))
        sys.modules[name] = module
    try:
        import typer.rich_utils  # noqa: F401
    finally:
        for name in missing:
            del sys.modules[name]


def _stand_in(module: str) -> type:
    def create(cls: type, *arguments: Any, **named: Any) -> Any:
        return getattr(import_module(module), _UNUSED[module])(*arguments, **named)

    return type(_UNUSED[module], (), {"__new__": create})
