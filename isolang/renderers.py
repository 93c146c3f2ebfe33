"""Registers the functions that turn a verdict into a text or a page.

The module ``verdict`` cannot import these functions, because they depend on verdicts. Instead the
package ``isolang`` registers them when it is imported, so ``str(verdict)`` and
``verdict.to_html()`` always work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

Form: TypeAlias = Literal["text", "page"]

RENDERERS: Final[dict[Form, Callable[[Any], str]]] = {}
"""For each form of output, the function that renders a verdict."""
