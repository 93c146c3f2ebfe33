"""Registers the functions that turn a verdict into text or a page.

The module ``verdict`` cannot import these functions, because they depend on verdicts. Instead,
importing the package ``isolang`` registers them, so ``str(verdict)`` and ``verdict.to_html()``
always work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

Form: TypeAlias = Literal["text", "page"]

RENDERERS: Final[dict[Form, Callable[[Any], str]]] = {}
"""The function that renders a verdict, for each output form."""
