"""Decides whether a service may run at a weaker level, and which changes make it robust.

The service is given by its templates, or by a recorded run, from which templates are extracted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import OptionError, UnsupportedError
from isolang.foresee.decide import Mend, Standing, decide, lowest, mends
from isolang.foresee.extract import Extracted, extract
from isolang.foresee.mending import ChangeKind, MendSearch, ServiceMend
from isolang.foresee.schedules import MOST_STEPS, Level
from isolang.foresee.service import SQL, RunDecision, conditions, decide_run, why_unknown
from isolang.foresee.split import Counterexample
from isolang.foresee.templates import Templates
from isolang.foresee.templates import templates as templates_of
from isolang.history.history import History
from isolang.programs.syntax import is_program_text, load_templates, parse_templates

if TYPE_CHECKING:
    from isolang.foresee.foreign_keys import ForeignKeys

LEVELS: Final[tuple[Level, ...]] = tuple(level for level in get_args(Level) if level != "ssi")
"""The levels to ask about; at SSI, nothing is left to decide."""


class RobustChange(Struct, frozen=True, kw_only=True):
    """A change to programs or to the database.

    Attributes:
        kind: the kind of the change.
        programs: the programs that change; empty for a change to the database.
        sql: what to write, as SQL. Angle brackets enclose what the recording does not show.
    """

    kind: ChangeKind
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
    level: Level
    sql: str
    at: Level
    standing: Standing
    row: str = ""
    statement: str = ""
    partner: str = ""
    anomaly: str = ""
    mends: tuple[tuple[RobustChange, ...], ...] = ()


class LowestLevel(Struct, frozen=True, kw_only=True):
    """The lowest level of a program, if each other program runs at its own lowest level.

    Attributes:
        program: the program.
        level: the level.
        sql: the name of the level in SQL.
    """

    program: str
    level: Level
    sql: str


class Robustness(Struct, frozen=True, kw_only=True):
    """The answer to whether the programs of a service are robust at a level.

    Attributes:
        source: the name of the run or of the file with the templates, or ``<text>``.
        at: the level.
        against: the level that each execution should satisfy: ``ser``, or ``pl-3`` without
            sessions.
        standing: the answer: ``robust``, ``not robust`` or ``unknown``.
        reason: why the answer is unknown; empty if it is known.
        conditions: the conditions under which the answer ``robust`` is correct.
        counterexample: an execution that the level allows and that is not serializable, with the
            certified verdicts of both; ``None`` unless the programs are not robust.
        programs: the names of the programs.
        mends: for templates, the smallest sets of reads to change, each of which makes them robust.
        table: for a run, each program with its lowest level and its mends.
        lowest: the lowest levels at which all programs together are robust.
        unsafe_together: the programs of a run that are not safe if the first mend of each program
            is applied; ``None`` if this was not decided.
        notes: the results that could not be computed, with reasons.
        templates: the templates about which the answer is.
        run: what was extracted from the run; ``None`` for templates.
    """

    source: str
    at: Level
    against: str
    standing: Standing
    reason: str
    conditions: tuple[str, ...]
    counterexample: Counterexample | None
    programs: tuple[str, ...]
    mends: tuple[tuple[Mend, ...], ...] = ()
    table: tuple[RobustProgram, ...] = ()
    lowest: tuple[LowestLevel, ...]
    unsafe_together: tuple[str, ...] | None = None
    notes: tuple[str, ...]
    templates: Templates
    run: Extracted | None = None


def robust(
    service: History | str | os.PathLike[str],
    at: str | None = None,
    *,
    sessions: bool = True,
    whole_rows: bool = False,
    same_keys: Collection[Collection[str]] = (),
    catalogue: ForeignKeys | None = None,
    work: int = MOST_STEPS,
    progress: Callable[[str], object] = lambda phase: None,
    reached: Callable[[int, int], object] = lambda done, total: None,
) -> Robustness:
    """Decide whether every execution of a service's programs at a level is serializable.

    The answer *not robust* comes with an execution that two independent checkers certify. The
    answer *robust* relies on the theorems in docs/robustness.md, and on the answer's conditions.

    Args:
        service: a recorded run; or templates: their text, or the path of a file.
        at: the level: PostgreSQL's ``mvrc`` (READ COMMITTED) or ``si`` (REPEATABLE READ);
            ``innodb-read-committed``, ``innodb-repeatable-read``, ``innodb-snapshot`` or
            ``innodb-serializable``. The default is the level of the run's transactions, or ``si``.
        sessions: whether any transaction may follow any other one in its session. If false, an
            execution must satisfy ``pl-3``, as in the literature, instead of ``ser``.
        whole_rows: for templates, whether each statement reads or writes whole rows; the statements
            of a run always do.
        same_keys: for a run, groups of tables that share their primary keys.
        catalogue: for a run, the foreign keys of its tables, from
            ``isolang.foresee.foreign_keys.foreign_keys``.
        work: the number of steps after which each search gives up; the answer may then be
            ``unknown``.
        progress: a function called with the name of each phase when it begins.
        reached: a function called with how many of how many programs were treated in a phase.

    Returns:
        The answer, with its reasons and the changes that make the programs robust.

    Raises:
        ProgramError: if the templates cannot be read.
        UnsupportedError: if the run has no templates, or the default for ``at`` is not decided.
        OptionError: if ``at`` is no such level, or an option for runs is given with templates.

    >>> found = robust("program Leave(d, e) where d != e r(on[d]) r(on[e]) w(on[d], 0)", at="si")
    >>> found.standing, found.counterexample.forbidden.violation.anomaly
    ('not robust', 'write skew')
    >>> [[f"{mend.read} becomes {mend.update}" for mend in mends] for mends in found.mends]
    [['r(on[e]) becomes u(on[e])']]
    """
    against = "ser" if sessions else "pl-3"
    if isinstance(service, History):
        level = _level(at or requested_level(service))
        progress("decide")
        decision = decide_run(
            service, level, sessions=sessions, same_keys=same_keys, catalogue=catalogue,
            work=work, reached=reached,
        )  # fmt: skip
        progress("mend")
        search = MendSearch(
            decision.run,
            decision.levels,
            lambda unique: extract(
                service, same_keys=same_keys, catalogue=catalogue, unique=unique
            ),
            sessions=sessions,
            work=work,
        )
        return _of_run(service.name, level, decision, search, against=against, reached=reached)
    if same_keys or catalogue is not None:
        raise OptionError(
            "robust: same_keys and catalogue apply only to a recorded run, because templates name "
            "their parameters"
        )
    level = _level(at or "si")
    text = str(service)
    if is_program_text(service):
        name, programs = "<text>", templates_of(parse_templates(text))
    else:
        name, programs = text, templates_of(load_templates(text))
    if whole_rows:
        programs = programs.with_whole_rows()
    levels = dict.fromkeys(programs.programs, level)
    notes: list[str] = []
    smallest: tuple[tuple[Mend, ...], ...] = ()
    progress("decide")
    decided = decide(programs, levels, sessions=sessions, work=work)
    reached(1, 3)
    if decided.standing == "not robust":
        progress("mend")
        try:
            smallest = mends(programs, levels, sessions=sessions, work=work)
        except UnsupportedError as error:
            notes.append(f"the list of mends may be incomplete: {error}")
    reached(2, 3)
    progress("find the lowest levels")
    try:
        found_lowest = lowest(programs, of=level, sessions=sessions, work=work)
    except UnsupportedError as error:
        notes.append(f"the lowest level of each program is unknown: {error}")
        found_lowest = {}
    return Robustness(
        source=name,
        at=level,
        against=against,
        standing=decided.standing,
        reason=why_unknown(decided),
        conditions=tuple(
            conditions(programs, level, name, sessions=sessions, whole_rows=whole_rows)
        ),
        counterexample=decided.counterexample,
        programs=programs.programs,
        mends=smallest,
        lowest=tuple(
            LowestLevel(program=program, level=own_level, sql=SQL[own_level])
            for program, own_level in found_lowest.items()
        ),
        notes=tuple(notes),
        templates=programs,
    )


def _of_run(
    name: str,
    level: Level,
    decision: RunDecision,
    search: MendSearch,
    *,
    against: str,
    reached: Callable[[int, int], object],
) -> Robustness:
    """Return the answer about a run, with the mends of its programs."""
    notes: list[str] = []
    found, together = _mends_of_run(decision, search, notes, reached)
    titles = decision.run.titles
    return Robustness(
        source=name,
        at=level,
        against=against,
        standing=decision.standing,
        reason=decision.reason,
        conditions=decision.conditions,
        counterexample=_titled(decision.counterexample, titles),
        programs=tuple(titles.values()),
        table=tuple(_table(decision, found)),
        lowest=tuple(_lowest_of_run(decision, found)),
        unsafe_together=together,
        notes=tuple(notes),
        templates=decision.run.templates,
        run=decision.run,
    )


def _level(name: str) -> Level:
    """Return the level with a name.

    Raises:
        OptionError: there is no such level to ask about.
    """
    level = next((level for level in LEVELS if level == name), None)
    if level is None:
        raise OptionError(f"robust: at: no such level (got {name!r}, expected {', '.join(LEVELS)})")
    return level


def requested_level(history: History) -> str:
    """Return the lowest level that the transactions of a run requested; ``si`` if none did.

    Raises:
        UnsupportedError: the run is of MariaDB, and its levels do not tell at which of InnoDB's it
            was.
    """
    requested = {level for txn in range(history.t0) if (level := history.level_of(txn))}
    at_rc = not requested.isdisjoint(("pl-2", "rc"))
    if history.database().get("name") != "MariaDB":
        return "mvrc" if at_rc else "si"
    hint = "hint: --at innodb-read-committed or innodb-repeatable-read"
    if at_rc:
        raise UnsupportedError(
            f"{history.name}: the run is of MariaDB, and does not say whether it was at READ "
            f"COMMITTED or REPEATABLE READ; {hint}"
        )
    if not requested or not requested <= {"si", "ser"}:
        got = ", ".join(sorted(requested)) or "none"
        raise UnsupportedError(
            f"{history.name}: the levels that the run of MariaDB requested are not decided by "
            f"default (got {got}, expected si or ser); {hint}"
        )
    return "innodb-snapshot" if "si" in requested else "innodb-serializable"


def _titled(found: Counterexample | None, titles: Mapping[str, str]) -> Counterexample | None:
    """Return a counterexample of a run with the programs' own names."""
    if found is None:
        return None
    return replace(
        found,
        names=tuple(
            f"{titles[program]}{name.removeprefix(program)}"
            for name, program in zip(found.names, found.programs, strict=True)
        ),
        programs=tuple(titles[program] for program in found.programs),
    )


def _mends_of_run(
    decision: RunDecision,
    search: MendSearch,
    notes: list[str],
    reached: Callable[[int, int], object],
) -> tuple[dict[str, list[ServiceMend]], tuple[str, ...] | None]:
    """Return the mends of each program that is not safe, and who is unsafe if all are applied."""
    if decision.run.lacking:
        notes.append(
            f"the mends and the lowest levels are those of what was seen: {decision.run.lacking}"
        )
    unsafe = [
        program.program
        for program in decision.programs
        if decision.standing_of(program) == "not robust"
    ]
    found: dict[str, list[ServiceMend]] = {}
    for program in unsafe:
        reached(len(found), len(unsafe))
        found[program] = search.of(program)
    if not found:
        return found, None
    try:
        still_unsafe = search.all_together([some[0] for some in found.values() if some])
    except UnsupportedError as error:
        notes.append(f"it is unknown whether the first mends together are enough: {error}")
        return found, None
    return found, tuple(decision.run.titles[program] for program in still_unsafe)


def _lowest_of_run(
    decision: RunDecision, found: Mapping[str, Sequence[ServiceMend]]
) -> Iterator[LowestLevel]:
    """Yield the lowest levels at which all programs of a run together are robust.

    A program that is safe at a lower level runs at SERIALIZABLE if one that needs SERIALIZABLE is
    safe only then.
    """
    needed = {
        partner
        for program in decision.programs
        if program.level == "ssi"
        for mend in found.get(program.program, ())
        for change in mend.changes
        if change.kind == "serializable"
        for partner in change.programs
    }
    for program in decision.programs:
        level: Level = "ssi" if program.program in needed else program.level
        title = decision.run.titles[program.program]
        yield LowestLevel(program=title, level=level, sql=SQL[level])


def _table(
    decision: RunDecision, found: Mapping[str, Sequence[ServiceMend]]
) -> Iterator[RobustProgram]:
    """Yield each program of a run with its mends."""
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
                for mend in found.get(program.program, ())
            ),
        )


def _row(text: str) -> str:
    """Return the row in a statement's text."""
    return text.partition("(")[2].removesuffix(")")
