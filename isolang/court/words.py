"""Says in lines what a court has ruled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from isolang.history.statement_text import one_line

if TYPE_CHECKING:
    from isolang.court.case import CourtCase
    from isolang.court.ruling import Evidence, Ruling
    from isolang.court.stage import PlayedCalls

_WIDEST: Final = 100  # the most characters of a line


def ruling_lines(
    case: CourtCase, level: str, ruling: Ruling, evidence: Evidence, files: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines of a ruling.

    Args:
        files: the files that were written.
    """
    at = f" at {level}" if level else ""
    yield from _wrapped("", f"{ruling.standing.upper()}{at}: {ruling.ground}", indent=2)
    conviction = ruling.conviction
    if conviction is not None:
        yield ""
        yield from _wrapped("  ", conviction.verdict.violation.headline(), indent=2)
        yield ""
        yield from (f"  {line}" for line in script_lines(case, conviction.played))
        yield ""
        yield from _named(conviction.harm.details()[1:])
        checked = "an independent checker accepted the violation's proof"
        option = f", read with {conviction.option}" if conviction.option else ""
        yield from _named([("certificate", checked + option)])
    yield from _named(ruling.notes)
    if level and evidence.level != level:
        yield from _named([("level", f"the transactions request {evidence.level} themselves")])
    plays = f"{evidence.played} of {evidence.possible} schedules played"
    predicted = f", {evidence.predicted} of them predicted" if evidence.predicted else ""
    searched = f"{evidence.recorded} serial orders recorded, {plays}{predicted}"
    yield from _named([("searched", searched), *(("written", file) for file in files)])


def _named(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield texts behind their names, in lines of equal width."""
    for name, text in notes:
        yield from _wrapped(f"  {name:13} ", text, indent=16)


def _wrapped(first: str, text: str, *, indent: int) -> list[str]:
    return wrap(
        text, _WIDEST, initial_indent=first, subsequent_indent=" " * indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def script_lines(case: CourtCase, played: PlayedCalls) -> Iterator[str]:
    """Yield the statements of a schedule in the order in which they were sent."""
    names = [call.name for call in case.calls]
    width = min(max(map(len, names)), 40)
    stranger, stop = played.schedule.stranger, played.schedule.stop
    number = 0
    for turn in played.turns:
        call = turn.call - 1
        for statement in turn.statements:
            yield f"{names[call][:width]:{width}}  {one_line(statement.text, _WIDEST - width - 4)}"
        if call == stranger:
            number += 1
            if number == stop:
                others = " and ".join(names[call] for call in played.schedule.between)
                waits = ", or wait for a lock" if played.waited else ""
                yield f"{'':{width}}  -- held until {others} ended{waits}"
