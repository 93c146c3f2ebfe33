"""How a verdict is shown: by what is built on verdicts, which they themselves do not import.

The package's root says who does it, so that ``str(verdict)`` and ``verdict.to_html()`` are there
however a verdict was come by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

Form: TypeAlias = Literal["text", "page"]

SHOWN_BY: Final[dict[Form, Callable[[Any], str]]] = {}
"""For each form, the function that makes it of a verdict."""
