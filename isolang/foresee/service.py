"""Decides for each program of a service which level it needs.

In a split schedule, T1 is the transaction that overlooks a write. At MVRC and SI, whether T1 may do
so depends only on its own level: the others run alone. So the lowest level of each program is found
by itself, and the templates are robust at a level if every program is safe there. At SSI, a program
is safe if the programs in its split schedules run at SSI, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import UnsupportedError
from isolang.explain.words import quantity
from isolang.foresee.decide import Decision, Standing, decide
from isolang.foresee.extract import Extracted, extract
from isolang.foresee.robust import reduced_at
from isolang.foresee.schedules import (
    KEEPS_LOCKED,
    LEVELS,
    MOST_STEPS,
    Level,
    is_innodb,
    levels_of,
)
from isolang.foresee.templates import Templates

if TYPE_CHECKING:
    from isolang.foresee.foreign_keys import ForeignKeys
    from isolang.foresee.split import Counterexample
    from isolang.history.history import History

SQL: Final[Mapping[Level, str]] = {
    "mvrc": "READ COMMITTED",
    "si": "REPEATABLE READ",
    "ssi": "SERIALIZABLE",
    "innodb-read-committed": "READ COMMITTED",
    "innodb-repeatable-read": "REPEATABLE READ",
    "innodb-snapshot": "REPEATABLE READ with snapshot isolation",
    "innodb-serializable": "SERIALIZABLE",
}
"""The name of each level in SQL."""

_DEFECT: Final = "docs/findings/mariadb-index-scan-misses-a-conflict.md"

_NAMED: Final[Mapping[str, Level]] = {
    **{level: level for level in SQL},
    **{SQL[level].lower(): level for level in LEVELS},
    **{f"postgresql-{SQL[level].lower().replace(' ', '-')}": level for level in LEVELS},
}


class ProgramLevel(Struct, frozen=True, kw_only=True):
    """The lowest level at which a program is safe.

    Attributes:
        program: the name of the program in the templates.
        level: the lowest level at which none of its transactions overlooks a write in an execution
            that is not serializable. At ``ssi``, its partners must run at this level, too. In
            InnoDB, a program that is safe at READ COMMITTED may not be so at REPEATABLE READ.
        counterexamples: such an execution for each level at which there is one: each lower level,
            and perhaps SI, where locks may not suffice that do so at MVRC.
        unknown: for each other level at which the answer is not known, the reason.
    """

    program: str
    level: Level
    counterexamples: Mapping[Level, Counterexample] = {}
    unknown: Mapping[Level, str] = {}

    def standing(self, level: Level) -> Standing:
        """Return whether the program is safe at a level, if all programs run there."""
        if level in self.counterexamples:
            return "not robust"
        return "unknown" if level in self.unknown else "robust"


class RunDecision(Struct, frozen=True, kw_only=True):
    """The answer to whether the programs of a recorded run are robust at a level.

    Attributes:
        reason: why the answer is unknown; empty if it is known.
        counterexample: an execution that is not serializable; ``None`` unless the programs are not
            robust.
        conditions: the conditions under which the answer ``robust`` is correct.
        programs: the lowest level of each program.
        levels: the level at which each program runs. A program that requested a higher level than
            others in the run keeps it.
        run: the templates of the run.
    """

    standing: Standing
    reason: str
    counterexample: Counterexample | None
    conditions: tuple[str, ...]
    programs: tuple[ProgramLevel, ...]
    levels: Mapping[str, Level]
    run: Extracted

    def standing_of(self, program: ProgramLevel) -> Standing:
        """Return whether a program is safe at the level at which it runs."""
        return program.standing(self.levels[program.program])

    def execution_of(self, program: ProgramLevel) -> Counterexample | None:
        """Return a counterexample of a program at the level at which it runs."""
        return program.counterexamples.get(self.levels[program.program])


def level_named(name: str) -> Level:
    """Return the level with a name: ``si``, ``read committed``, ``postgresql-serializable``.

    Raises:
        UnsupportedError: robustness is not defined for this level.
    """
    level = _NAMED.get(name.lower())
    if level is None:
        raise UnsupportedError(
            f"robustness is not decided at this level (got {name!r}, expected one of "
            f"{', '.join(_NAMED)})"
        )
    return level


def decide_run(
    history: History,
    level: Level,
    *,
    sessions: bool = True,
    same_keys: Collection[Collection[str]] = (),
    catalogue: ForeignKeys | None = None,
    work: int = MOST_STEPS,
    reached: Callable[[int, int], object] = lambda done, total: None,
) -> RunDecision:
    """Decide whether the programs of a recorded run are robust if all of them run at a level.

    Args:
        reached: called with how many of how many programs were decided.

    Raises:
        UnsupportedError: the run has no templates.

    >>> from isolang import History, Transaction
    >>> row = ("r", "acc/1", None), ("w", "acc/1", 1)
    >>> found = decide_run(History.from_transactions([Transaction(row, label="P")]), "mvrc")
    >>> found.standing, found.programs[0].level, found.counterexample.names
    ('not robust', 'si', ('P(acc1)', 'P(acc1)'))
    """
    return decide_runs(
        [history],
        level,
        sessions=sessions,
        same_keys=same_keys,
        catalogue=catalogue,
        work=work,
        reached=reached,
    )


def decide_runs(
    histories: Sequence[History],
    level: Level,
    *,
    sessions: bool = True,
    same_keys: Collection[Collection[str]] = (),
    catalogue: ForeignKeys | None = None,
    work: int = MOST_STEPS,
    reached: Callable[[int, int], object] = lambda done, total: None,
) -> RunDecision:
    """Decide as :func:`decide_run` about all programs of several runs together.

    Each run began with a database of its own, so that equal keys need not be the same row.

    Raises:
        UnsupportedError: the runs have no templates.
    """
    run = extract(*histories, same_keys=same_keys, catalogue=catalogue)
    name = ", ".join(dict.fromkeys(history.name for history in histories))
    levels = levels_in_run(run, level)
    programs = []
    for program in program_levels(run.templates, of=level, sessions=sessions, work=work):
        programs.append(_in_mixture(program, run.templates, levels, sessions=sessions, work=work))
        reached(len(programs), len(run.templates.programs))
    at_levels = [(program, levels[program.program]) for program in programs]
    counterexamples = [program.counterexamples.get(own_level) for program, own_level in at_levels]
    reasons = [why for program, own_level in at_levels if (why := program.unknown.get(own_level))]
    if run.lacking:
        reasons.append(f"the run does not have everything that its programs do: {run.lacking}")
    if run.reads_unknown and not KEEPS_LOCKED.isdisjoint(levels.values()):
        reasons.append(
            "the run does not say for each read whether its statement locks: at InnoDB's "
            "REPEATABLE READ, locking statements see the newest rows, and plain reads a snapshot"
        )
    shown = next(filter(None, counterexamples), None)
    reason = "" if shown is not None else next(iter(reasons), "")
    others = {
        run.titles[program]: own_level
        for program, own_level in levels.items()
        if own_level != level
    }
    return RunDecision(
        standing="not robust" if shown is not None else "unknown" if reason else "robust",
        reason=reason,
        counterexample=shown,
        conditions=(
            # The statements of a run read and write whole rows.
            *conditions(
                run.templates, level, name, sessions=sessions, whole_rows=True, others=others
            ),
            *conditions_of_run(run),
        ),
        programs=tuple(programs),
        levels=levels,
        run=run,
    )


def levels_in_run(run: Extracted, level: Level) -> dict[str, Level]:
    """Return the level of each program if those with the lowest level of the run run at ``level``.

    A program whose transactions all requested a higher level keeps that level, if it is higher.
    """
    lowest: Level = min(run.requested.values(), key=LEVELS.index, default="mvrc")

    def level_in_run(program: str) -> Level:
        own_level = run.requested.get(program, lowest)
        if own_level == lowest:
            return level
        if is_innodb(level):  # its REPEATABLE READ is not above READ COMMITTED
            return "innodb-serializable" if own_level == "ssi" else level
        return max(level, own_level, key=LEVELS.index)

    return {program: level_in_run(program) for program in run.templates.programs}


def _in_mixture(
    program: ProgramLevel,
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool,
    work: int,
) -> ProgramLevel:
    """Return a program with its counterexample at SSI, if its partners run below."""
    if levels[program.program] != "ssi" or set(levels.values()) == {"ssi"}:
        return program
    decision = decide(templates, levels, sessions=sessions, work=work, split=program.program)
    if decision.counterexample is not None:
        return replace(
            program, counterexamples={**program.counterexamples, "ssi": decision.counterexample}
        )
    if decision.standing == "unknown":
        return replace(program, unknown={**program.unknown, "ssi": why_unknown(decision)})
    return program


def program_levels(
    templates: Templates,
    *,
    of: Level = "si",
    sessions: bool = True,
    work: int = MOST_STEPS,
) -> Iterator[ProgramLevel]:
    """Yield the lowest level of each program.

    A lock may make a program safe at MVRC and not at SI, because it leaves no version. So with
    locks, a program that is safe at MVRC is decided at SI, too. InnoDB's REPEATABLE READ is always
    decided, because there, a plain read may be older than the row that its transaction has locked.

    Args:
        of: the levels are those of this level's database.
        work: the number of steps after which the search for a program and a level gives up.
    """
    every = levels_of(of)
    reduced = reduced_at(templates, dict.fromkeys(every, of))
    has_locks = is_innodb(of) or any(
        statement.lock for branch in templates.branches for statement in branch.statements
    )
    for program in templates.programs:
        counterexamples: dict[Level, Counterexample] = {}
        unknown: dict[Level, str] = {}
        lowest = every[-1]
        for level in every[:-1]:
            levels = dict.fromkeys(templates.programs, level)
            decision = decide(
                templates, levels, sessions=sessions, work=work, split=program, reduced=reduced
            )
            if decision.standing == "robust":
                lowest = level if lowest == every[-1] else lowest
                if not has_locks:
                    break
            elif decision.counterexample is not None:
                counterexamples[level] = decision.counterexample
            else:
                unknown[level] = why_unknown(decision)
        yield ProgramLevel(
            program=program, level=lowest, counterexamples=counterexamples, unknown=unknown
        )


def why_unknown(decision: Decision) -> str:
    """Return why the answer is unknown; empty if it is known."""
    if decision.standing != "unknown":
        return ""
    if decision.gave_up:
        return decision.gave_up
    return (
        "the theorem does not exclude a counterexample, but both checkers certify none "
        f"of the {decision.tried:,} candidates"
    )


def conditions(
    templates: Templates,
    level: Level,
    name: str,
    *,
    sessions: bool = True,
    whole_rows: bool = False,
    others: Mapping[str, Level] = {},
) -> Iterator[str]:
    """Yield sentences with the conditions under which the answer ``robust`` is correct.

    ``others`` has the programs that run at other levels.
    """
    count = len(templates.programs)
    programs = "the program" if count == 1 else f"the {count:,} programs"
    yield f"every transaction that touches these rows is an instance of {programs} of {name}"
    yield "a key is the value of a parameter or a constant; `*` may stand for any row"
    except_for = "".join(f", {title} at {SQL[other]}" for title, other in others.items())
    database = "InnoDB" if is_innodb(level) else "PostgreSQL"
    yield f"all run at {SQL[level]}{except_for}, as {database} has it, on one server"
    if level in KEEPS_LOCKED:
        yield from _conditions_of_locks(templates, level)
    yield (
        "a transaction may follow any other one in its session"
        if sessions
        else "no order of transactions in a session matters"
    )
    if not whole_rows:
        yield "statements on different columns of a row do not conflict"
    changing = {
        statement.relation
        for branch in templates.branches
        for statement in branch.statements
        if statement.kind in ("insert", "delete")
    }
    touched = {
        statement.relation
        for branch in templates.branches
        for statement in branch.statements
        if statement.kind in ("write", "update", "delete") and statement.keyed
    }
    if changing & touched:
        yield (
            "a write, update or delete by key finds its row "
            f"({', '.join(sorted(changing & touched))})"
        )


def _conditions_of_locks(templates: Templates, level: Level) -> Iterator[str]:
    """Yield the conditions of InnoDB's REPEATABLE READ."""
    yield (
        "the first plain read of a transaction takes its snapshot, not START TRANSACTION WITH "
        "CONSISTENT SNAPSHOT"
    )
    yield (
        "a statement that locks keeps the rows that it finds, and the gaps between them, until its "
        "transaction ends (next-key locks)"
    )
    statements = [one for branch in templates.branches for one in branch.statements]
    scans = any(not (one.keyed or one.is_plain) for one in statements)
    if level == "innodb-snapshot" and (scans or templates.deleted):
        yield (
            "a statement that locks by a secondary index gets error 1020 if a row has left the "
            f"index since the snapshot, which MariaDB 10.11 forgets ({_DEFECT})"
        )


def conditions_of_run(run: Extracted) -> Iterator[str]:
    """Yield the additional conditions for the answer ``robust`` if the source is a run."""
    yield (
        f"the {run.transactions:,} recorded transactions include every program, and every "
        "sequence of statements that a program can execute"
    )
    if run.preparing:
        count = quantity(run.preparing, "transaction")
        yield f"what prepared the database ({count}) never runs at the same time as the programs"
    yield "each statement of the programs finds its rows by their primary keys, unless it is a scan"
    yield from run.foreign_keys
    yield from run.assumptions
