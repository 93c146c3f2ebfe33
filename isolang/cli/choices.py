"""Provides parsers and shell completion for options whose values are names or numbers.

Names are looked up only to parse or complete a value, because importing their registries is slow.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import typer

COMPLETE: Final = "_ISOCHECK_COMPLETE"
"""The environment variable that a shell sets to ask for completions."""


def levels() -> list[str]:
    """Return the names of all library levels."""
    from isolang.language.library import list_library

    return [entry.name for entry in list_library()]


def formats() -> list[str]:
    """Return ``auto`` and the names and aliases of all readable history formats."""
    from isolang.history.formats import ALIASES, FORMATS

    return ["auto", *FORMATS, *ALIASES]


def written_formats() -> list[str]:
    """Return the names and aliases of all formats, without ``auto``."""
    return formats()[1:]


def solvers() -> list[str]:
    """Return ``auto`` and the names of all solvers, installed or not."""
    from isolang.solvers.plugins import load_plugins
    from isolang.solvers.registry import SOLVERS

    load_plugins()
    return ["auto", *SOLVERS]


def encodings() -> list[str]:
    """Return ``auto``, the name of the event-graph theory, and the names of all encodings."""
    from isolang.encodings.registry import ENCODINGS
    from isolang.solvers.plugins import load_plugins
    from isolang.solvers.registry import EVENT_GRAPH

    load_plugins()
    return ["auto", EVENT_GRAPH, *ENCODINGS]


def pruning_stages() -> list[str]:
    """Return ``auto`` and the names of the pruning stages."""
    from isolang.problem.prune import PRUNE

    return ["auto", *PRUNE]


NAMES_OF_OPTION: Final[dict[str, Callable[[], list[str]]]] = {
    "format": formats,
    "solver": solvers,
    "encoding": encodings,
    "prune": pruning_stages,
}


def nearest_name(typed: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the name most similar to what the user typed; empty if none is similar enough.

    Args:
        cutoff: the minimum similarity, from 0 to 1.
    """
    found = difflib.get_close_matches(typed, list(names), 1, cutoff)
    return found[0] if found else ""


def parser_of_names(names: Callable[[], Sequence[str]]) -> Callable[[str], str]:
    """Return a parser that accepts only the given names.

    If ``sat`` is one of the names, the parser also accepts ``sat:NAME``.
    """

    def parse(text: str) -> str:
        if text == "auto":
            return text
        known = names()
        if text in known or text.lower() in known:
            return text
        if ":" in text and text.split(":", 1)[0] in known:
            return text
        nearest = nearest_name(text, known)
        hint = f" (did you mean {nearest}?)" if nearest else ""
        raise typer.BadParameter(f"got {text!r}, expected {_or_list(known)}{hint}")

    return parse


def number(
    kind: type[int] | type[float], low: float | None = None, high: float | None = None
) -> Callable[[str], float]:
    """Return a parser that accepts numbers from ``low`` to ``high``; ``None`` means no bound."""

    def parse(text: str | float) -> float:
        word = "a whole number" if kind is int else "a number"
        try:
            value = kind(text)
        except ValueError:
            raise typer.BadParameter(f"expected {word} (got {text!r})") from None
        if low is not None and not value >= low:
            raise typer.BadParameter(f"expected {word} of at least {low:g} (got {text})")
        if high is not None and not value <= high:
            raise typer.BadParameter(f"expected {word} of at most {high:g} (got {text})")
        return value

    return parse


def duration(text: str | float) -> float:
    """Return the seconds in a duration such as ``90``, ``90s``, ``30m`` or ``2h``."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(str(text)[-1:], 0)
    try:
        value = float(str(text)[:-1] if unit else text) * (unit or 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e8:
        raise typer.BadParameter(f"expected a time such as 90s, 30m or 2h (got {text!r})")
    return value


def _or_list(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def completer_of_names(names: Callable[[], Sequence[str]]) -> Callable[[str], list[str]] | None:
    """Return a function that Typer uses to complete an option's value from the given names.

    Return ``None`` if the shell does not ask for completions, because Typer would examine the
    function's signature at each start.
    """
    if COMPLETE not in os.environ:
        return None

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete
