"""Implements ``isocheck robust``, which decides whether programs are robust at a weaker level."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import number
from isolang.cli.parameters import Mistake, Output, accept_names
from isolang.cli.progress import Bar
from isolang.cli.robust_programs import mend_lines, statement_text, table_lines
from isolang.foresee.robustness import LEVELS, LowestLevel, RobustProgram
from isolang.foresee.schedules import Level
from isolang.options import OUTPUT, ReadOptions
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines

if TYPE_CHECKING:
    from isolang.foresee.decide import Mend
    from isolang.foresee.extract import Extracted
    from isolang.foresee.foreign_keys import ForeignKeys
    from isolang.foresee.robustness import Robustness
    from isolang.foresee.split import Counterexample
    from isolang.history.history import History

_SHORT: Final[Mapping[Level, str]] = {
    "mvrc": "RC",
    "si": "SI",
    "ssi": "SER",
    "innodb-read-committed": "RC",
    "innodb-repeatable-read": "RR",
    "innodb-snapshot": "SI",
    "innodb-serializable": "SER",
}


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
    at: Level
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
            **accept_names(lambda: LEVELS, "LEVEL"),
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
    from isolang.foresee.robustness import robust as decide_robust
    from isolang.programs.syntax import is_program_text

    of_templates = is_program_text(source) or _has_templates(source)
    if of_templates:
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
    with Bar(3 if of_templates else 1, None) as bar:
        found = decide_robust(
            source if of_templates else _read(source, reading, bar),
            at,
            sessions=not no_sessions,
            whole_rows=whole_rows,
            same_keys=[group.split(",") for group in same_keys],
            catalogue=_catalogue(foreign_keys),
            work=int(work),
            progress=bar.phase,
            reached=bar.reached,
        )
    if write and found.run is not None:
        _write(write, found.run, source)
    report = _report(source, found)
    if save and found.counterexample is not None:
        _save(found.counterexample, Path(save))
    if output == "json":
        print_data(json_text(report))
    else:
        print_lines(*map(escaped, _text(report)))
    exit_codes = {"robust": EXIT_VALID, "not robust": EXIT_INVALID, "unknown": EXIT_UNKNOWN}
    return exit_codes[report.standing]


def _read(source: str, reading: ReadOptions, bar: Bar) -> History:
    from isolang.history import read_history

    bar.phase("read")
    return read_history(source, reading)


def _catalogue(url: str) -> ForeignKeys | None:
    from isolang.foresee.foreign_keys import foreign_keys

    return foreign_keys(url) if url else None


def _report(source: str, found: Robustness) -> RobustReport:
    run = found.run
    return RobustReport(
        source=source if run is not None else found.source,
        at=found.at,
        against=found.against,
        standing=found.standing,
        programs=found.programs,
        branches=len(found.templates.branches),
        transactions=None if run is None else run.transactions,
        dropped=found.templates.dropped if run is None else run.ignored,
        conditions=found.conditions,
        reason=found.reason or None,
        counterexample=_counterexample(found.counterexample),
        mends=tuple(tuple(map(_mend, one)) for one in found.mends),
        lowest=found.lowest,
        notes=found.notes,
        table=found.table,
        preparing=0 if run is None else run.preparing,
        unsafe_together=found.unsafe_together,
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


def _sql(level: Level) -> str:
    from isolang.foresee.service import SQL

    return SQL[level]


def _counterexample(found: Counterexample | None) -> RobustCounterexample | None:
    if found is None:
        return None
    return RobustCounterexample(
        transactions=tuple(
            RobustTransaction(name=name, program=program, session=session)
            for name, program, session in zip(
                found.names, found.programs, found.sessions, strict=True
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
