"""Names that an option may have: what they are, which one was meant, and completing them.

The names are looked up when a value is given or completed, as the registries that hold them take
their time to import.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import typer


def levels() -> list[str]:
    """The levels of the library."""
    from isolang.language.library import list_library

    return [entry.name for entry in list_library()]


def formats() -> list[str]:
    """The formats that are read."""
    from isolang.history.formats import ALIASES, FORMATS

    return ["auto", *FORMATS, *ALIASES]


def written_formats() -> list[str]:
    """The formats that are written."""
    return formats()[1:]


def solvers() -> list[str]:
    """The solvers, installed or not."""
    from isolang.solvers.plugins import load_plugins
    from isolang.solvers.registry import SOLVERS

    load_plugins()
    return ["auto", *SOLVERS]


def encodings() -> list[str]:
    """The encodings."""
    from isolang.encodings.registry import ENCODINGS
    from isolang.solvers.plugins import load_plugins
    from isolang.solvers.registry import EVENT_GRAPH

    load_plugins()
    return ["auto", EVENT_GRAPH, *ENCODINGS]


def stages() -> list[str]:
    """The stages of pruning."""
    from isolang.problem.polygraph import PRUNE

    return ["auto", *PRUNE]


OF_OPTION: Final[dict[str, Callable[[], list[str]]]] = {
    "format": formats,
    "solver": solvers,
    "encoding": encodings,
    "prune": stages,
}


def near(typed: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """The name that was probably meant; empty if none is near."""
    found = difflib.get_close_matches(typed, list(names), 1, cutoff)
    return found[0] if found else ""


def taken_from(names: Callable[[], Sequence[str]]) -> Callable[[str], str]:
    """The parser of an option whose values are these; ``sat:NAME`` is one if ``sat`` is."""

    def parse(text: str) -> str:
        if text == "auto":
            return text
        there = names()
        if text in there or text.lower() in there:
            return text
        if ":" in text and text.split(":", 1)[0] in there:
            return text
        meant = near(text, there)
        hint = f" (did you mean {meant}?)" if meant else ""
        raise typer.BadParameter(f"got {text!r}, expected {_listed(there)}{hint}")

    return parse


def number(
    kind: type[int] | type[float], low: float | None = None, high: float | None = None
) -> Callable[[str], float]:
    """The parser of an option whose values are numbers, within bounds where they are given."""

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
    """The parser of an option whose values are times: seconds, or a number with s, m or h."""
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
    """What completes an option whose values are these."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete
