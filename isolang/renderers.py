"""The functions that turn a verdict into text or into a page.

Verdicts do not import them, since reports are built on verdicts. The package's root registers them,
so that ``str(verdict)`` and ``verdict.to_html()`` always work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

Form: TypeAlias = Literal["text", "page"]

RENDERERS: Final[dict[Form, Callable[[Any], str]]] = {}
"""The function that renders a verdict, for each form."""
