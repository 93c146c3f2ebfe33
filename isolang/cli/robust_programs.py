"""Reports for each program of a recorded run which level it needs, and what makes it safe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from isolang.output.layout import align_rows

if TYPE_CHECKING:
    from isolang.foresee.mending import ServiceMend
    from isolang.foresee.service import RunDecision
    from isolang.foresee.split import Counterexample, RanStatement

LevelName: TypeAlias = Literal[
    "mvrc",
    "si",
    "ssi",
    "innodb-read-committed",
    "innodb-repeatable-read",
    "innodb-snapshot",
    "innodb-serializable",
]
ChangeName: TypeAlias = Literal[
    "one statement", "lock", "unique index", "lock parent", "advisory lock", "serializable"
]

MOST_OF_STATEMENT: Final = 70
"""The largest number of characters of a statement in a schedule."""

_TITLES: Final[Mapping[ChangeName, str]] = {
    "one statement": "one statement instead of a read and a write",
    "lock": "FOR UPDATE on this read",
    "unique index": "a unique index, and a retry after 23505",
    "lock parent": "before all other statements",
    "advisory lock": "before all other statements",
    "serializable": "SERIALIZABLE",
}


class RobustChange(Struct, frozen=True, kw_only=True):
    """A change to programs or to the database.

    Attributes:
        kind: the kind of the change.
        programs: the programs that change; empty for a change to the database.
        sql: what to write, as SQL. Angle brackets enclose what the recording does not show.
    """

    kind: ChangeName
    programs: tuple[str, ...]
    sql: str


class RobustProgram(Struct, frozen=True, kw_only=True):
    """A program of a recorded run.

    Attributes:
        program: its name: a label, ``file:line``, or the beginning of its first statement.
        level: the lowest level at which the program is safe.
        sql: the name of the level in SQL.
        at: the level at which it runs: that of the report, or the higher one that it requested.
        standing: whether the program is safe at this level.
        row: the row whose write it may overlook, in the form of templates; empty if it is safe.
        statement: the statement that overlooks the write; empty if it is safe or unknown.
        partner: the program that makes the write; empty if it is safe.
        anomaly: the name of the violation; empty if it is safe.
        mends: sets of changes, the smallest first. With each of them, the program is safe at the
            level of the report, as the decision says.
    """

    program: str
    level: LevelName
    sql: str
    at: LevelName
    standing: Literal["robust", "not robust", "unknown"]
    row: str = ""
    statement: str = ""
    partner: str = ""
    anomaly: str = ""
    mends: tuple[tuple[RobustChange, ...], ...] = ()


def program_reports(
    decision: RunDecision, mends: Mapping[str, Sequence[ServiceMend]]
) -> Iterator[RobustProgram]:
    """Yield the report of each program. ``mends`` has the mends of programs that are not safe."""
    from isolang.foresee.service import SQL

    titles = decision.run.titles
    for program in decision.programs:
        execution = decision.execution_of(program)
        yield RobustProgram(
            program=titles[program.program],
            level=program.level,
            sql=SQL[program.level],
            standing=decision.standing_of(program),
            at=decision.levels[program.program],
            row=_row(execution.candidate.overlooking.text) if execution else "",
            statement=execution.candidate.overlooking.source if execution else "",
            partner=titles[execution.programs[1]] if execution else "",
            anomaly=execution.forbidden.violation.anomaly if execution else "",
            mends=tuple(
                tuple(
                    RobustChange(
                        kind=change.kind,
                        programs=tuple(titles[program] for program in change.programs),
                        sql=change.sql,
                    )
                    for change in mend.changes
                )
                for mend in mends.get(program.program, ())
            ),
        )


def _row(text: str) -> str:
    """Return the row in a statement's text."""
    return text.partition("(")[2].removesuffix(")")


def statement_text(ran: RanStatement) -> str:
    """Return a statement of a counterexample as the application has it, if that is known."""
    from isolang.history.statement_text import one_line

    source = ran.statement.source
    if not source:
        return ran.text
    if " " in source:
        return one_line(source, MOST_OF_STATEMENT)
    return f"{ran.text}  {source}"


def transaction_names(execution: Counterexample, titles: Mapping[str, str]) -> list[str]:
    """Return the names of a counterexample's transactions, with the programs' own names."""
    return [
        f"{titles.get(program, program)}{name.removeprefix(program)}"
        for name, program in zip(execution.names, execution.programs, strict=True)
    ]


def table_lines(programs: Sequence[RobustProgram], at: LevelName) -> Iterator[str]:
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
    programs: Sequence[RobustProgram], at: LevelName, together: tuple[str, ...] | None
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
