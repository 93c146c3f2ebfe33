"""Makes regular expressions that are compiled when they are first used.

Compiling all patterns of the modules that a check imports would take longer than a small check.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["pattern"]

if TYPE_CHECKING:
    from re import compile as pattern
else:

    class _Pattern:
        def __init__(self, text: str | bytes, flags: int) -> None:
            self._arguments = text, flags

        def __getattr__(self, name: str) -> Any:
            value = getattr(re.compile(*self._arguments), name)
            setattr(self, name, value)
            return value

    def pattern(text: str | bytes, flags: int = 0) -> _Pattern:
        """Return what behaves as ``re.compile(text, flags)``, but compiles it on first use."""
        return _Pattern(text, flags)
