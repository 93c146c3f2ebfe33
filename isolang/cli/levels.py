"""``isocheck levels``: where a history stands with all levels, as a small lattice."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from isolang.cli.progress import Bar
from isolang.cli.report import EXIT_INPUT, EXIT_UNKNOWN, EXIT_VALID
from isolang.errors import IsolangError
from isolang.options import Options, ReadOptions

if TYPE_CHECKING:
    from isolang.levels import Level, Levels

_MARKS = {"satisfied": "✓", "violated": "✗", "unknown": "?", "no times": "–"}

# The lattice of one family, from the strongest level down.
_ROWS: tuple[tuple[str, ...], ...] = (
    ("sser",), ("strong-si", "ser"), ("si",), ("psi", "pc"), ("cc",), ("ra",), ("rc",),
)  # fmt: skip
_WIDTH = 34
_GUARANTEES = ("ryw", "mr", "mw", "wfr")
_PORTABLE = ("pl-3", "pl-2", "pl-1")


def levels(
    history: str,
    *,
    output: str,
    reading: ReadOptions,
    options: Options,
) -> int:
    """Judge, print, and give the exit code: unknown if some level's standing is."""
    from isolang.api import read
    from isolang.levels import levels_of

    try:
        with Bar(1) as bar:
            bar.phase("read")
            found = levels_of(read(history, reading), options, progress=bar.phase)
    except IsolangError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    if output == "json":
        print(json.dumps(_plain(history, found)))
    else:
        print("\n".join(_text(history, found)))
    unknown = any(level.standing == "unknown" for level in found.levels.values())
    return EXIT_UNKNOWN if unknown else EXIT_VALID


def _plain(history: str, found: Levels) -> dict[str, Any]:
    from isolang.levels import IMPLIES

    return {
        "schema": 1,
        "history": history,
        "strongest": list(found.strongest()),
        "weakest_violated": list(found.weakest_violated()),
        "levels": [
            {
                "name": level.name,
                "standing": level.standing,
                "certified": level.certified,
                "follows_from": level.follows_from or None,
                "anomaly": level.anomaly or None,
                "reason": level.reason,
                "seconds": round(level.seconds, 6),
                "implies": list(IMPLIES[level.name]),
            }
            for level in found.levels.values()
        ],
        "seconds": round(found.seconds, 6),
    }


def _text(history: str, found: Levels) -> Iterator[str]:
    yield history
    yield ""
    yield "  with session order".ljust(_WIDTH + 2) + "without"
    for left, right in zip(_drawn(found, ""), _drawn(found, "-nosession"), strict=True):
        yield f"  {left.ljust(_WIDTH)}{right}".rstrip()
    yield ""
    yield "  session guarantees   " + _marked(found, _GUARANTEES)
    yield "  Adya, no sessions    " + _marked(found, _PORTABLE)
    yield ""
    yield f"  strongest satisfied  {', '.join(found.strongest()) or 'none'}"
    weakest = found.weakest_violated()
    if not weakest:
        yield "  weakest violated     none"
    for name in weakest:
        level = found.levels[name]
        certified = "certified" if level.certified else "not certified"
        yield f"  weakest violated     {name}: {level.anomaly} ({certified}): {level.reason}"
    for level in found.levels.values():
        if level.standing == "unknown":
            yield f"  unknown              {level.name}: {level.reason}"
    if any(level.standing == "no times" for level in found.levels.values()):
        yield "  –                    needs real time, which the history has not"
    checked = sum(not level.follows_from for level in _judged(found))
    yield (
        f"  checked              {checked} levels; the others follow from them; "
        f"{found.seconds:.2f} s"
    )


def _judged(found: Levels) -> Iterator[Level]:
    return (level for level in found.levels.values() if level.standing != "no times")


def _marked(found: Levels, names: tuple[str, ...]) -> str:
    return "   ".join(f"{_MARKS[found.levels[name].standing]} {name}" for name in names)


def _drawn(found: Levels, family: str) -> Iterator[str]:
    """The lattice of the levels with, or without, session order."""
    for number, row in enumerate(_ROWS):
        cells = [f"{_MARKS[found.levels[name + family].standing]} {name}" for name in row]
        if number:
            before, now = len(_ROWS[number - 1]), len(row)
            yield {(1, 2): "       /       \\", (2, 1): "       \\       /"}.get(
                (before, now), "           |"
            )
        if len(cells) == 1:
            yield " " * 9 + cells[0]
        else:
            yield " " + cells[0].ljust(14) + cells[1]
