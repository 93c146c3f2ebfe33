"""The names and numbers that an option accepts, with parsers, corrections and completions.

Names are looked up only when a value is parsed or completed, since importing their registries is
slow.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import typer


def levels() -> list[str]:
    """Return the names of the levels of the library."""
    from isolang.language.library import list_library

    return [entry.name for entry in list_library()]


def formats() -> list[str]:
    """Return the formats that can be read."""
    from isolang.history.formats import ALIASES, FORMATS

    return ["auto", *FORMATS, *ALIASES]


def written_formats() -> list[str]:
    """Return the formats that can be written."""
    return formats()[1:]


def solvers() -> list[str]:
    """Return the names of the solvers, installed or not."""
    from isolang.solvers.plugins import load_plugins
    from isolang.solvers.registry import SOLVERS

    load_plugins()
    return ["auto", *SOLVERS]


def encodings() -> list[str]:
    """Return the names of the encodings."""
    from isolang.encodings.registry import ENCODINGS
    from isolang.solvers.plugins import load_plugins
    from isolang.solvers.registry import EVENT_GRAPH

    load_plugins()
    return ["auto", EVENT_GRAPH, *ENCODINGS]


def stages() -> list[str]:
    """Return the stages of pruning."""
    from isolang.problem.polygraph import PRUNE

    return ["auto", *PRUNE]


OF_OPTION: Final[dict[str, Callable[[], list[str]]]] = {
    "format": formats,
    "solver": solvers,
    "encoding": encodings,
    "prune": stages,
}


def near(typed: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the name nearest to the typed text, or an empty text if no name is near."""
    found = difflib.get_close_matches(typed, list(names), 1, cutoff)
    return found[0] if found else ""


def taken_from(names: Callable[[], Sequence[str]]) -> Callable[[str], str]:
    """Return a parser that accepts these names, and ``sat:NAME`` if ``sat`` is one of them."""

    def parse(text: str) -> str:
        if text == "auto":
            return text
        known = names()
        if text in known or text.lower() in known:
            return text
        if ":" in text and text.split(":", 1)[0] in known:
            return text
        nearest = near(text, known)
        hint = f" (did you mean {nearest}?)" if nearest else ""
        raise typer.BadParameter(f"got {text!r}, expected {_listed(known)}{hint}")

    return parse


def number(
    kind: type[int] | type[float], low: float | None = None, high: float | None = None
) -> Callable[[str], float]:
    """Return a parser that accepts numbers between the bounds."""

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
    """Parse a time: seconds, or a number with the unit s, m or h; return seconds."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(str(text)[-1:], 0)
    try:
        value = float(str(text)[:-1] if unit else text) * (unit or 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e8:
        raise typer.BadParameter(f"expected a time such as 90s, 30m or 2h (got {text!r})")
    return value


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def completed(names: Callable[[], Sequence[str]]) -> Callable[[str], list[str]]:
    """Return the function that completes the value of an option from these names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete
