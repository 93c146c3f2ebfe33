"""Implements ``isocheck robust``, which decides whether programs are robust at a weaker level."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import number
from isolang.cli.parameters import Mistake, Output, accept_names
from isolang.cli.progress import Bar
from isolang.cli.robust_programs import (
    LevelName,
    RobustProgram,
    mend_lines,
    program_reports,
    statement_text,
    table_lines,
    transaction_names,
)
from isolang.errors import UnsupportedError
from isolang.options import OUTPUT, ReadOptions
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines

if TYPE_CHECKING:
    from isolang.foresee.decide import Mend
    from isolang.foresee.extract import Extracted
    from isolang.foresee.mending import MendSearch, ServiceMend
    from isolang.foresee.service import RunDecision
    from isolang.foresee.split import Counterexample
    from isolang.foresee.templates import Templates
    from isolang.history.history import History

_SHORT: Final[Mapping[LevelName, str]] = {
    "mvrc": "RC",
    "si": "SI",
    "ssi": "SER",
    "innodb-read-committed": "RC",
    "innodb-repeatable-read": "RR",
    "innodb-snapshot": "SI",
    "innodb-serializable": "SER",
}
_LEVELS: Final = tuple(name for name in _SHORT if name != "ssi")  # there, nothing is left to decide


class RobustTransaction(Struct, frozen=True, kw_only=True):
    """A transaction of a counterexample.

    Attributes:
        name: the name of the program, with the values of its parameters.
        program: the name of the program.
        session: the number of the session, from 1.
    """

    name: str
    program: str
    session: int


class RobustStatement(Struct, frozen=True, kw_only=True):
    """A statement of a counterexample.

    Attributes:
        transaction: the number of the statement's transaction, from 1.
        text: the text of the statement.
    """

    transaction: int
    text: str


class RobustCounterexample(Struct, frozen=True, kw_only=True):
    """An execution that the level allows, and that is not serializable.

    Attributes:
        transactions: the transactions; all except the first run alone.
        statements: the statements in the order in which they run.
        allowed_by: the specification that the execution satisfies.
        forbidden_by: the specification that the execution violates.
        anomaly: the name of the violation.
        certified: whether both independent checkers accepted the proofs of both verdicts.
        accepted: how much of the two proofs each checker accepted.
        locks_of_rows_refuse: whether two concurrent transactions write different columns of one
            row, which databases with row locks prevent.
        history: the history, in EDN.
        locks_of_gaps_may_refuse: whether InnoDB may prevent this, because the first transaction has
            locked gaps between rows of a table that another one writes to.
    """

    transactions: tuple[RobustTransaction, ...]
    statements: tuple[RobustStatement, ...]
    allowed_by: str
    forbidden_by: str
    anomaly: str
    certified: bool
    accepted: tuple[str, str]
    locks_of_rows_refuse: bool
    history: str
    locks_of_gaps_may_refuse: bool = False


class RobustMend(Struct, frozen=True, kw_only=True):
    """A read that becomes an update that changes nothing.

    Attributes:
        program: the program.
        step: the number of the step in the program, from 1.
        read: the read.
        update: the update that replaces the read.
    """

    program: str
    step: int
    read: str
    update: str


class LowestLevel(Struct, frozen=True, kw_only=True):
    """The lowest level of a program, if each other program runs at its own lowest level.

    Attributes:
        program: the program.
        level: the level.
        sql: the name of the level in SQL.
    """

    program: str
    level: LevelName
    sql: str


class RobustReport(Struct, frozen=True, kw_only=True):
    """The answer to whether templates are robust at a level.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        source: the file, or the text of the templates.
        at: the level.
        against: the level that each execution should satisfy: ``ser``, or ``pl-3`` without
            sessions.
        standing: the answer.
        programs: the names of the programs.
        branches: the number of ways through the programs.
        transactions: the number of transactions of the run that the templates describe; null
            without a run.
        dropped: how many ways are left out because they abort or touch no row; for a run, how many
            transactions did not certainly commit or touch no row.
        conditions: the conditions under which the answer ``robust`` is correct.
        reason: why the answer is unknown; null if it is known.
        counterexample: an execution that is not serializable; null if none was found.
        mends: the smallest sets of reads to change, each of which makes the templates robust. For a
            run, they are in ``table``.
        lowest: the lowest levels at which all programs together are robust.
        notes: the results that could not be computed, with reasons.
        table: for a run, each program with its lowest level and its mends.
        preparing: the number of transactions of a run that prepared the database.
        unsafe_together: the programs of a run that are not safe if the first mend of each program
            is applied; null if this was not decided.
    """

    schema: Literal[1] = 1
    source: str
    at: LevelName
    against: str
    standing: Literal["robust", "not robust", "unknown"]
    programs: tuple[str, ...]
    branches: int
    transactions: int | None
    dropped: int
    conditions: tuple[str, ...]
    reason: str | None
    counterexample: RobustCounterexample | None
    mends: tuple[tuple[RobustMend, ...], ...]
    lowest: tuple[LowestLevel, ...]
    notes: tuple[str, ...] = ()
    table: tuple[RobustProgram, ...] = ()
    preparing: int = 0
    unsafe_together: tuple[str, ...] | None = None


def robust(
    *,
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The service: templates, as a file or as text, or a "
        "recorded run."),
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            help="The level: PostgreSQL's mvrc or si, or innodb-read-committed, "
            "innodb-repeatable-read, innodb-snapshot, innodb-serializable; by default that of the "
            "run's transactions, or si.",
            show_default=False,
            **accept_names(lambda: _LEVELS, "LEVEL"),
        ),
    ] = None,
    no_sessions: Annotated[
        bool,
        typer.Option(
            "--no-sessions",
            help="Assume no order between the transactions of a session, as the literature does.",
        ),
    ] = False,
    whole_rows: Annotated[
        bool,
        typer.Option("--whole-rows", help="Assume that each statement reads or writes whole rows."),
    ] = False,
    same_keys: Annotated[
        list[str],
        typer.Option(
            "--same-keys", metavar="TABLES", show_default=False,
            help="For a run: these tables share their primary keys (savings,checking); may be "
            "repeated.",
        ),
    ] = [],  # noqa: B006
    foreign_keys: Annotated[
        str,
        typer.Option(
            "--foreign-keys", metavar="URL", show_default=False,
            help="For a run: take the foreign keys of its tables from the catalogue of this "
            "PostgreSQL database.",
        ),
    ] = "",
    write: Annotated[
        str,
        typer.Option(
            "--templates", metavar="FILE", rich_help_panel=OUTPUT, show_default=False,
            help="For a run: save the extracted templates in this file.",
        ),
    ] = "",
    save: Annotated[
        str,
        typer.Option(
            "--save", metavar="DIR", rich_help_panel=OUTPUT, show_default=False,
            help="Save the counterexample, its certificates and a picture in this folder.",
        ),
    ] = "",
    work: Annotated[
        int,
        typer.Option(
            "--work", metavar="N", show_default=True, help="Give up each search after N steps.",
            parser=number(int, 1, 1_000_000_000_000),
        ),
    ] = 200_000,
    reading: ReadOptions,
    output: Output = "text",
) -> int:  # fmt: skip
    """Decide whether a service may run at a weaker level, and which changes make it robust.

    The exit code is 0 if it is robust, 1 if not, and 3 if that is unknown.
    """
    is_text = "(" in source and not os.path.exists(source)
    question = _Question(
        source="<text>" if is_text else source, at=at or "", sessions=not no_sessions,
        whole_rows=whole_rows, work=int(work),
    )  # fmt: skip
    if is_text or _has_templates(source):
        for value, option in ((same_keys, "--same-keys"), (foreign_keys, "--foreign-keys")):
            if value:
                raise Mistake(
                    f"{option} applies only to a recorded run, because templates name their "
                    "parameters"
                )
        if write:
            raise Mistake(
                "--templates applies only to a recorded run: the source consists of templates "
                "already"
            )
        report, shown = _of_templates(question, source if is_text else "")
    else:
        report, shown = _of_run(question, same_keys, foreign_keys, reading, write)
    if save and shown is not None:
        _save(shown, Path(save))
    if output == "json":
        print_data(json_text(report))
    else:
        print_lines(*map(escaped, _text(report)))
    exit_codes = {"robust": EXIT_VALID, "not robust": EXIT_INVALID, "unknown": EXIT_UNKNOWN}
    return exit_codes[report.standing]


class _Question(Struct, frozen=True, kw_only=True):
    """A question: the name of the source, the level (empty for the default), and how to decide."""

    source: str
    at: str
    sessions: bool
    whole_rows: bool
    work: int

    @property
    def against(self) -> str:
        return "ser" if self.sessions else "pl-3"


def _of_templates(question: _Question, text: str) -> tuple[RobustReport, Counterexample | None]:
    """Decide about templates in a text or, if it is empty, in the file of the question."""
    from isolang.foresee.decide import decide, mends
    from isolang.foresee.service import conditions, why_unknown
    from isolang.foresee.templates import templates
    from isolang.programs.syntax import load_templates, parse_templates

    programs = templates(parse_templates(text) if text else load_templates(question.source))
    if question.whole_rows:
        programs = programs.with_whole_rows()
    sessions, level = question.sessions, _level(question.at or "si")
    levels = dict.fromkeys(programs.programs, level)
    notes: list[str] = []
    smallest: tuple[tuple[Mend, ...], ...] = ()
    with Bar(3, None) as bar:
        bar.phase("decide")
        decision = decide(programs, levels, sessions=sessions, work=question.work)
        bar.step()
        if decision.standing == "not robust":
            bar.phase("mend")
            try:
                smallest = mends(programs, levels, sessions=sessions, work=question.work)
            except UnsupportedError as error:
                notes.append(f"the list of mends may be incomplete: {error}")
        bar.step()
        bar.phase("find the lowest levels")
        lowest_levels = _lowest(programs, question, notes)
    report = RobustReport(
        source=question.source,
        at=level,
        against=question.against,
        standing=decision.standing,
        programs=programs.programs,
        branches=len(programs.branches),
        dropped=programs.dropped,
        transactions=None,
        conditions=tuple(
            conditions(
                programs, level, question.source, sessions=sessions, whole_rows=question.whole_rows
            )
        ),
        reason=why_unknown(decision) or None,
        counterexample=_counterexample(decision.counterexample, {}),
        mends=tuple(tuple(map(_mend, one)) for one in smallest),
        lowest=lowest_levels,
        notes=tuple(notes),
    )
    return report, decision.counterexample


def _of_run(
    question: _Question, same_keys: list[str], url: str, reading: ReadOptions, write: str
) -> tuple[RobustReport, Counterexample | None]:
    """Decide about the programs of a recorded run, and write their templates to a file."""
    from isolang.foresee.extract import extract
    from isolang.foresee.foreign_keys import foreign_keys
    from isolang.foresee.mending import MendSearch
    from isolang.foresee.service import decide_run
    from isolang.history import read_history

    catalogue = foreign_keys(url) if url else None
    groups = [one.split(",") for one in same_keys]
    with Bar(1, None) as bar:
        bar.phase("read")
        history = read_history(question.source, reading)
        level = _level(question.at or _level_of(history))
        bar.phase("decide")
        decision = decide_run(
            history, level, sessions=question.sessions, same_keys=groups, catalogue=catalogue,
            work=question.work, reached=bar.reached,
        )  # fmt: skip
        if write:
            _write(write, decision.run, question.source)
        bar.phase("mend")
        notes: list[str] = []
        search = MendSearch(
            decision.run,
            decision.levels,
            lambda unique: extract(history, same_keys=groups, catalogue=catalogue, unique=unique),
            sessions=question.sessions,
            work=question.work,
        )
        mends, together = _mends_of_run(decision, search, notes, bar)
    run, titles = decision.run, decision.run.titles
    report = RobustReport(
        source=question.source,
        at=level,
        against=question.against,
        standing=decision.standing,
        programs=tuple(titles.values()),
        branches=len(run.templates.branches),
        dropped=run.ignored,
        transactions=run.transactions,
        conditions=decision.conditions,
        reason=decision.reason or None,
        counterexample=_counterexample(decision.counterexample, titles),
        mends=(),
        lowest=tuple(_lowest_of_run(decision, mends)),
        notes=tuple(notes),
        table=tuple(program_reports(decision, mends)),
        preparing=run.preparing,
        unsafe_together=together,
    )
    return report, decision.counterexample


def _mends_of_run(
    decision: RunDecision, search: MendSearch, notes: list[str], bar: Bar
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
    mends: dict[str, list[ServiceMend]] = {}
    for program in unsafe:
        bar.reached(len(mends), len(unsafe))
        mends[program] = search.of(program)
    if not mends:
        return mends, None
    try:
        still_unsafe = search.all_together([some[0] for some in mends.values() if some])
    except UnsupportedError as error:
        notes.append(f"it is unknown whether the first mends together are enough: {error}")
        return mends, None
    return mends, tuple(decision.run.titles[program] for program in still_unsafe)


def _level_of(history: History) -> str:
    """Return the lowest level that the transactions of a run requested; ``si`` if none did.

    Raises:
        Mistake: the run is of MariaDB, and its levels do not tell at which of InnoDB's it was.
    """
    requested = {level for txn in range(history.t0) if (level := history.level_of(txn))}
    at_rc = not requested.isdisjoint(("pl-2", "rc"))
    if history.database().get("name") != "MariaDB":
        return "mvrc" if at_rc else "si"
    hint = "hint: --at innodb-read-committed or innodb-repeatable-read"
    if at_rc:
        raise Mistake(
            f"{history.name}: the run is of MariaDB, and does not say whether it was at READ "
            f"COMMITTED or REPEATABLE READ; {hint}"
        )
    if not requested or not requested <= {"si", "ser"}:
        got = ", ".join(sorted(requested)) or "none"
        raise Mistake(
            f"{history.name}: the levels that the run of MariaDB requested are not decided by "
            f"default (got {got}, expected si or ser); {hint}"
        )
    return "innodb-snapshot" if "si" in requested else "innodb-serializable"


def _lowest_of_run(
    decision: RunDecision, mends: Mapping[str, Sequence[ServiceMend]]
) -> Iterator[LowestLevel]:
    """Yield the lowest levels at which all programs of a run together are robust.

    A program that is safe at a lower level runs at SERIALIZABLE if one that needs SERIALIZABLE is
    safe only then.
    """
    needed = {
        partner
        for program in decision.programs
        if program.level == "ssi"
        for mend in mends.get(program.program, ())
        for change in mend.changes
        if change.kind == "serializable"
        for partner in change.programs
    }
    for program in decision.programs:
        level: LevelName = "ssi" if program.program in needed else program.level
        title = decision.run.titles[program.program]
        yield LowestLevel(program=title, level=level, sql=_sql(level))


def _lowest(programs: Templates, question: _Question, notes: list[str]) -> tuple[LowestLevel, ...]:
    """Return the lowest levels at which all programs together are robust."""
    from isolang.foresee.decide import lowest

    try:
        levels = lowest(
            programs,
            of=_level(question.at or "si"),
            sessions=question.sessions,
            work=question.work,
        )
    except UnsupportedError as error:
        notes.append(f"the lowest level of each program is unknown: {error}")
        return ()
    return tuple(
        LowestLevel(program=program, level=level, sql=_sql(level))
        for program, level in levels.items()
    )


def _has_templates(path: str) -> bool:
    """Return whether a file contains templates, judging by its name or its first word.

    For a file that does not exist, this is true, so that it is then reported as missing.
    """
    if path.endswith(".litmus") or not os.path.isfile(path):
        return path.endswith(".litmus") or not (os.path.exists(path) or path == "-")
    with open(path, "rb") as file:
        beginning = file.read(1 << 16)
    return re.match(rb"(\s|//[^\n]*\n)*program\s+[A-Za-z_]", beginning) is not None


def _write(path: str, run: Extracted, source: str) -> None:
    """Write the templates extracted from a run to a file."""
    from isolang.files import write_atomically
    from isolang.foresee.extract import shown
    from isolang.programs.syntax import ProgramError

    lines = [
        f"// Extracted from {source}: {run.transactions:,} transactions.",
        *([f"// The programs also do, or may do: {run.lacking}"] if run.lacking else []),
        *shown(run.templates),
    ]
    try:
        write_atomically(Path(path), "\n".join(lines) + "\n")
    except OSError as error:
        raise ProgramError(f"{path}: cannot write the file: {error.strerror or error}") from None


def _level(name: str) -> LevelName:
    return next(level for level in _LEVELS if level == name)


def _sql(level: LevelName) -> str:
    from isolang.foresee.service import SQL

    return SQL[level]


def _counterexample(
    found: Counterexample | None, titles: Mapping[str, str]
) -> RobustCounterexample | None:
    if found is None:
        return None
    return RobustCounterexample(
        transactions=tuple(
            RobustTransaction(name=name, program=titles.get(program, program), session=session)
            for name, program, session in zip(
                transaction_names(found, titles), found.programs, found.sessions, strict=True
            )
        ),
        statements=tuple(
            RobustStatement(transaction=one.transaction, text=statement_text(one))
            for one in found.ran
        ),
        allowed_by=found.allowed.spec.name,
        forbidden_by=found.forbidden.spec.name,
        anomaly=found.forbidden.violation.anomaly,
        certified=found.allowed.certified and found.forbidden.certified,
        accepted=found.accepted,
        locks_of_rows_refuse=found.refused_by_rows,
        locks_of_gaps_may_refuse=found.refused_by_gaps,
        history=found.edn.decode(),
    )


def _mend(one: Mend) -> RobustMend:
    return RobustMend(program=one.program, step=one.step + 1, read=one.read, update=one.update)


def _save(found: Counterexample, folder: Path) -> None:
    """Save the history of a counterexample, its two certificates, and a picture of it."""
    from isolang.files import open_replacement, write_atomically
    from isolang.programs.syntax import ProgramError
    from isolang.report.figure import figure
    from isolang.report.picture import save_picture

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open_replacement(folder / "counterexample.edn") as stream:
            stream.write(found.edn)
        for word, verdict in (("allowed", found.allowed), ("forbidden", found.forbidden)):
            path = folder / f"{word}.certificate.json"
            write_atomically(path, verdict.certificate().to_json())
        save_picture(figure(found.forbidden), folder / "forbidden.svg")
    except OSError as error:
        raise ProgramError(
            f"{folder}: cannot write to this folder: {error.strerror or error}"
        ) from None


# --- text ---


def _text(report: RobustReport) -> Iterator[str]:
    ways = (
        "" if report.branches == len(report.programs) else f", {report.branches:,} execution paths"
    )
    programs = f"{len(report.programs):,} program{'s' if len(report.programs) > 1 else ''}"
    yield f"{report.source}  {programs}{ways}"
    yield from _extent(report)
    yield ""
    level = f"{report.at} ({_sql(report.at)})"
    if report.standing == "robust":
        yield f"ROBUST  every execution at {level} is serializable, under these conditions:"
        yield from (f"  * {one}" for one in report.conditions)
    elif report.counterexample is None:
        yield f"UNKNOWN  at {level}: {report.reason}"
    else:
        yield f"NOT ROBUST  at {level}, this can happen: {report.counterexample.anomaly}"
        yield ""
        yield from _schedule(report.counterexample)
    yield ""
    if report.table:
        yield from table_lines(report.table, report.at)
        yield ""
    if report.counterexample is not None:
        yield from (
            mend_lines(report.table, report.at, report.unsafe_together)
            if report.table
            else _mends(report)
        )
        yield ""
    yield from report.notes
    if report.notes:
        yield ""
    yield from _lowest_lines(report)
    yield from _other_commands(report)


def _extent(report: RobustReport) -> Iterator[str]:
    from isolang.explain.words import quantity

    if report.transactions is None:
        if report.dropped:
            yield f"  left out: {report.dropped:,} execution paths that abort or touch no row"
        return
    yield f"  extracted from {report.transactions:,} committed transactions"
    if report.preparing:
        count = quantity(report.preparing, "transaction")
        yield f"  {count} before the first program prepared the database"
    if report.dropped:
        count = quantity(report.dropped, "transaction")
        yield f"  left out: {count} that did not certainly commit or touch no row"


def _lowest_lines(report: RobustReport) -> Iterator[str]:
    """Yield the lowest levels of all programs together.

    In the table of a run, only those are missing that are higher because of their partners.
    """
    if not report.table:
        if report.lowest:
            yield "The lowest level for each program, if every other program runs at its own:"
            yield from align_rows(
                [[row.program, _SHORT[row.level], row.sql] for row in report.lowest], indent=2
            )
        return
    alone = {row.program: row.level for row in report.table}
    raised = [row.program for row in report.lowest if row.level != alone[row.program]]
    if raised:
        yield (
            "SERIALIZABLE protects a program only from others that run at it: without mends, "
            f"{', '.join(raised)} would have to, too."
        )


def _other_commands(report: RobustReport) -> Iterator[str]:
    """Yield which other command answers what this one does not."""
    if not report.table or report.standing == "robust":
        return
    if report.at.startswith("innodb-"):
        yield "Here, no value or condition of the application was considered."
        return
    profile = f"postgresql-{_sql(report.at).lower().replace(' ', '-')}"
    yield "Here, no value or condition of the application was considered. On a database,"
    yield f"`isocheck predict {report.source} --at {profile} --play APP`"
    yield "plays what this run could have done; `isocheck court` plays two calls in all schedules."


def _schedule(found: RobustCounterexample) -> Iterator[str]:
    names = [f"{one.name}" for one in found.transactions]
    sessions = [one.session for one in found.transactions]
    shared = len(set(sessions)) < len(sessions)
    heads = [
        f"{name}  (session {session})" if shared else name
        for name, session in zip(names, sessions, strict=True)
    ]
    last = {one.transaction: at for at, one in enumerate(found.statements)}
    rows = [heads]
    for at, one in enumerate(found.statements):
        cells = [""] * len(heads)
        cells[one.transaction - 1] = one.text
        rows.append(cells)
        if last[one.transaction] == at and one.transaction > 1:
            rows.append(["commit" if n == one.transaction - 1 else "" for n in range(len(heads))])
    rows.append(["commit", *[""] * (len(heads) - 1)])
    yield from align_rows(rows, indent=2)
    yield ""
    yield f"  allowed by {found.allowed_by}, forbidden by {found.forbidden_by}"
    yield f"  both certified: {found.accepted[0]}; {found.accepted[1]}"
    if found.locks_of_rows_refuse:
        yield (
            "  two of these transactions write different columns of one row at the same "
            "time; a database that locks rows, such as PostgreSQL or InnoDB, prevents this"
        )
    if found.locks_of_gaps_may_refuse:
        yield (
            "  InnoDB may prevent this: the first transaction has locked gaps in a table that "
            "another one writes to"
        )


def _mends(report: RobustReport) -> Iterator[str]:
    if not report.mends and any("mends" in note for note in report.notes):
        return
    if not report.mends:
        yield "Changing at most three reads to updates is not enough to make this robust."
        return
    count = len(report.mends[0])
    what = "change one read to" if count == 1 else f"change {count} reads to"
    yield f"Smallest mends: {what} an update that changes nothing (SET x = x)"
    for position, one in enumerate(report.mends, 1):
        for place, part in enumerate(one):
            lead = f"{position}." if place == 0 else "  "
            yield f"  {lead} {part.program}: {part.read} becomes {part.update}"
