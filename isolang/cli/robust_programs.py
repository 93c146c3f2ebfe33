"""Shows for each program of a recorded run which level it needs, and what makes it safe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from isolang.output.layout import align_rows

if TYPE_CHECKING:
    from isolang.foresee.mending import ChangeKind
    from isolang.foresee.robustness import RobustProgram
    from isolang.foresee.schedules import Level
    from isolang.foresee.split import RanStatement

MOST_OF_STATEMENT: Final = 70
"""The largest number of characters of a statement in a schedule."""

_TITLES: Final[Mapping[ChangeKind, str]] = {
    "one statement": "one statement instead of a read and a write",
    "lock": "FOR UPDATE on this read",
    "unique index": "a unique index, and a retry after 23505",
    "lock parent": "before all other statements",
    "advisory lock": "before all other statements",
    "serializable": "SERIALIZABLE",
}


def statement_text(ran: RanStatement) -> str:
    """Return a statement of a counterexample as the application has it, if that is known."""
    from isolang.history.statement_text import one_line

    source = ran.statement.source
    if not source:
        return ran.text
    if " " in source:
        return one_line(source, MOST_OF_STATEMENT)
    return f"{ran.text}  {source}"


def table_lines(programs: Sequence[RobustProgram], at: Level) -> Iterator[str]:
    """Yield a table of the programs. ``at`` is the level of the report."""
    from isolang.foresee.service import SQL

    sql = SQL[at]
    rows = [["program", "lowest level", f"at {sql}, it overlooks", "by", ""]]
    for program in programs:
        unsafe = program.standing == "not robust"
        overlooked = f"a write of {program.row}" if unsafe else ""
        if program.standing == "unknown":
            overlooked = "unknown"
        own = "" if SQL[program.at] == sql else f", which runs at {SQL[program.at]}"
        rows.append(
            [f"{program.program}{own}", program.sql, overlooked, program.partner, program.anomaly]
        )
    if all(program.standing == "robust" for program in programs):
        rows = [row[:2] for row in rows]
    yield from align_rows(rows, indent=2)


def mend_lines(
    programs: Sequence[RobustProgram], at: Level, together: tuple[str, ...] | None
) -> Iterator[str]:
    """Yield the mends of the programs that are not safe.

    Args:
        at: the level of the report.
        together: the programs that are not safe if the first mend of each program is applied;
            ``None`` if this is not known.
    """
    from isolang.foresee.schedules import is_innodb
    from isolang.foresee.service import SQL

    sql, code = SQL[at], "1062" if is_innodb(at) else "23505"
    unsafe = [program for program in programs if program.standing == "not robust"]
    yield f"Mends, each decided again: with it, the program is safe at {sql}"
    for program in unsafe:
        if not program.mends:
            yield f"  {program.program}: none found"
            continue
        yield f"  {program.program}"
        for number, changes in enumerate(program.mends, 1):
            for index, change in enumerate(changes):
                lead = f"{number}." if index == 0 else "  "
                others = [name for name in change.programs if name != program.program]
                of = f", in {', '.join((program.program, *others))}" if others else ""
                yield f"    {lead} {_TITLES[change.kind].replace('23505', code)}{of}"
                yield f"         {change.sql}"
    if together == () and all(program.mends for program in unsafe):
        yield ""
        yield f"With the first mend of each, all {len(programs):,} programs are safe at {sql}."
    elif together:
        yield ""
        yield f"With the first mend of each, these are still not safe: {', '.join(together)}."
