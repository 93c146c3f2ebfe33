"""The functions that turn a verdict into a text or into a page.

The module of verdicts does not import them, because reports depend on verdicts. Instead the root of
the package registers them, and so ``str(verdict)`` and ``verdict.to_html()`` always work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

Form: TypeAlias = Literal["text", "page"]

RENDERERS: Final[dict[Form, Callable[[Any], str]]] = {}
"""The function that renders a verdict, for each form of output."""
