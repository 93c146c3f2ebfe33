"""Compares a survey with an earlier survey of the same database.

A violation is identified by its level and its kinds of anomalies, but not by its workload, because
it is a matter of chance which workload reveals it. Therefore a violation is new if no workload in
the earlier survey revealed it at that level.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from isolang.run.survey.survey import Cell, Survey
from isolang.run.target import TargetError


class News(Struct, frozen=True, kw_only=True):
    """One difference between a survey and an earlier survey.

    Attributes:
        kind: ``violation`` if a level is violated that was not violated before; ``anomaly`` if a
            level shows a new kind of anomaly; ``kept`` if the workloads that violated a level do
            not violate it any more; ``level`` if the earlier survey did not judge the level.
    """

    kind: Literal["violation", "anomaly", "kept", "level"]
    level: str
    text: str


def load_survey(path: str) -> Survey:
    """Read a survey from a file written by ``--survey --output json``.

    Raises:
        TargetError: the file cannot be read, or does not contain a survey.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Survey)
    except OSError as error:
        raise TargetError(f"--against: {path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        what = str(error).splitlines()[0]
        msg = f"--against: {path}: not a survey ({what}); isocheck run TARGET --survey -o json"
        raise TargetError(msg) from None


def compare_surveys(old: Survey, new: Survey) -> tuple[News, ...]:
    """Return the differences between a survey and an earlier survey."""
    return tuple(
        one
        for level in dict.fromkeys(c.level for c in new.cells)
        for one in _level_news(level, old, new)
    )


def _level_news(level: str, old: Survey, new: Survey) -> Iterator[News]:
    before, now = ([c for c in s.cells if c.level == level and _is_judged(c)] for s in (old, new))
    if not now:
        return
    if not before:
        violated = [c for c in now if c.outcome == "invalid"]
        text = f"{level} was not part of the earlier survey" + (
            "; it is violated now" if violated else ""
        )
        yield News(kind="violation" if violated else "level", level=level, text=text)
        return
    bad = [c for c in now if c.outcome == "invalid"]
    if bad and not any(c.outcome == "invalid" for c in before):
        first = bad[0]
        shown = ", ".join(first.anomalies) or "a violation"
        text = f"{level}, which claims {first.claims}, is violated by {first.workload}: {shown}"
        yield News(kind="violation", level=level, text=text)
    seen = {name for c in before for name in c.anomalies}
    for cell in now:
        for name in cell.anomalies:
            if name not in seen:
                seen.add(name)
                text = f"{level} shows {name} in {cell.workload}"
                yield News(kind="anomaly", level=level, text=text)
    showed = {c.workload for c in before if c.outcome == "invalid"}
    satisfied = {c.workload for c in now if c.outcome == "valid" and not c.grave}
    if showed and not bad and showed <= satisfied:
        text = f"{level} was violated by {', '.join(sorted(showed))}, and is no longer violated"
        yield News(kind="kept", level=level, text=text)


def _is_judged(cell: Cell) -> bool:
    return cell.outcome in ("valid", "invalid")
