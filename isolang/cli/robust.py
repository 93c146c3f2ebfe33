"""Implements ``isocheck robust``, which decides whether programs are robust at a weaker level."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import number
from isolang.cli.parameters import Mistake, Output, accept_only
from isolang.errors import UnsupportedError
from isolang.options import OUTPUT, ReadOptions
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines

if TYPE_CHECKING:
    from isolang.foresee.decide import Decision, Mend
    from isolang.foresee.extract import Extracted
    from isolang.foresee.schedules import Level
    from isolang.foresee.split import Counterexample
    from isolang.foresee.templates import Templates

LevelName = Literal["mvrc", "si", "ssi"]

_SQL: Final[dict[str, str]] = {
    "mvrc": "READ COMMITTED",
    "si": "REPEATABLE READ",
    "ssi": "SERIALIZABLE",
}
_SHORT: Final[dict[str, str]] = {"mvrc": "RC", "si": "SI", "ssi": "SER"}


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
        mends: the smallest sets of changes, each of which makes the templates robust.
        lowest: the lowest levels at which all programs together are robust.
        notes: the results that could not be computed, with reasons.
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


def robust(
    *,
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The service: templates, as a file or as text, or a "
        "recorded run."),
    ],
    at: Annotated[str, typer.Option("--at", help="The level.", **accept_only("mvrc", "si"))] = "si",
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
    from isolang.foresee.decide import decide, lowest, mends

    is_text = "(" in source and not os.path.exists(source)
    found, run = _templates(source, same_keys, foreign_keys, reading, is_text=is_text)
    if write:
        _write(write, run, source)
    if whole_rows:
        found = found.with_whole_rows()
    sessions, level = not no_sessions, _level(at)
    levels = dict.fromkeys(found.programs, level)
    steps = int(work)
    decision = decide(found, levels, sessions=sessions, work=steps)
    name = "<text>" if is_text else source
    notes: list[str] = []
    smallest: tuple[tuple[Mend, ...], ...] = ()
    levels_found: dict[str, Level] = {}
    reason = _reason(decision)
    if run is not None and run.lacking:
        reason = reason or f"the run does not have everything that its programs do: {run.lacking}"
        notes.append(f"the list of mends and the lowest levels are unknown: {reason}")
    elif decision.standing == "not robust":
        try:
            smallest = mends(found, levels, sessions=sessions, work=steps)
        except UnsupportedError as error:
            notes.append(f"the list of mends may be incomplete: {error}")
    try:
        if run is None or not run.lacking:
            levels_found = lowest(found, sessions=sessions, work=steps)
    except UnsupportedError as error:
        notes.append(f"the lowest level of each program is unknown: {error}")
    report = RobustReport(
        source=name,
        at=level,
        against="ser" if sessions else "pl-3",
        standing="unknown" if decision.standing == "robust" and reason else decision.standing,
        programs=found.programs,
        branches=len(found.branches),
        dropped=run.ignored if run is not None else found.dropped,
        transactions=run.transactions if run is not None else None,
        conditions=(
            *_conditions(found, level, name, sessions=sessions, whole_rows=whole_rows),
            *(_conditions_of_run(run) if run is not None else ()),
        ),
        reason=None if decision.standing == "not robust" else reason,
        counterexample=_counterexample(decision.counterexample),
        mends=tuple(tuple(map(_mend, one)) for one in smallest),
        lowest=tuple(
            LowestLevel(program=program, level=one, sql=_SQL[one])
            for program, one in levels_found.items()
        ),
        notes=tuple(notes),
    )
    if save and decision.counterexample is not None:
        _save(decision.counterexample, Path(save))
    if output == "json":
        print_data(json_text(report))
    else:
        print_lines(*map(escaped, _text(report)))
    exit_codes = {"robust": EXIT_VALID, "not robust": EXIT_INVALID, "unknown": EXIT_UNKNOWN}
    return exit_codes[report.standing]


def _templates(
    source: str, same_keys: list[str], url: str, reading: ReadOptions, *, is_text: bool
) -> tuple[Templates, Extracted | None]:
    """Return the templates from text, a file or a run.

    The second result describes the run, or is ``None`` if the source is not a run.
    """
    from isolang.foresee.templates import templates
    from isolang.programs.syntax import load_templates, parse_templates

    if is_text or _has_templates(source):
        for value, option in ((same_keys, "--same-keys"), (url, "--foreign-keys")):
            if value:
                raise Mistake(
                    f"{option} applies only to a recorded run, because templates name their "
                    "parameters"
                )
        return templates(parse_templates(source) if is_text else load_templates(source)), None
    from isolang.foresee.extract import extract
    from isolang.history import read_history

    groups = [one.split(",") for one in same_keys]
    catalogue = None
    if url:
        from isolang.foresee.foreign_keys import foreign_keys

        catalogue = foreign_keys(url)
    run = extract(read_history(source, reading), same_keys=groups, catalogue=catalogue)
    return run.templates, run


def _has_templates(path: str) -> bool:
    """Return whether a file contains templates, judging by its name or its first word.

    For a file that does not exist, this is true, so that it is then reported as missing.
    """
    if path.endswith(".litmus") or not os.path.isfile(path):
        return path.endswith(".litmus") or not (os.path.exists(path) or path == "-")
    with open(path, "rb") as file:
        beginning = file.read(1 << 16)
    return re.match(rb"(\s|//[^\n]*\n)*program\s+[A-Za-z_]", beginning) is not None


def _write(path: str, run: Extracted | None, source: str) -> None:
    """Write the templates extracted from a run to a file."""
    from isolang.files import write_atomically
    from isolang.foresee.extract import shown
    from isolang.programs.syntax import ProgramError

    if run is None:
        raise Mistake(
            "--templates applies only to a recorded run: the source consists of templates already"
        )
    lines = [
        f"// Extracted from {source}: {run.transactions:,} transactions.",
        *([f"// The programs also do, or may do: {run.lacking}"] if run.lacking else []),
        *shown(run.templates),
    ]
    try:
        write_atomically(Path(path), "\n".join(lines) + "\n")
    except OSError as error:
        raise ProgramError(f"{path}: cannot write the file: {error.strerror or error}") from None


def _conditions_of_run(run: Extracted) -> Iterator[str]:
    """Yield the additional conditions for the answer ``robust`` if the source is a run."""
    yield (
        f"the {run.transactions:,} recorded transactions include every program, and every "
        "sequence of statements that a program can execute"
    )
    yield "each statement of the programs finds its rows by their primary keys, unless it is a scan"
    yield from run.foreign_keys


def _level(name: str) -> Literal["mvrc", "si"]:
    return "mvrc" if name == "mvrc" else "si"


def _reason(decision: Decision) -> str | None:
    if decision.standing != "unknown":
        return None
    if decision.gave_up:
        return decision.gave_up
    return (
        "the theorem does not exclude a counterexample, but both checkers certify none "
        f"of the {decision.tried:,} candidates"
    )


def _conditions(
    found: Templates, level: str, name: str, *, sessions: bool, whole_rows: bool
) -> Iterator[str]:
    """Yield sentences with the conditions under which the answer ``robust`` is correct."""
    count = len(found.programs)
    programs = "the program" if count == 1 else f"the {count:,} programs"
    yield f"every transaction that touches these rows is an instance of {programs} of {name}"
    yield "a key is the value of a parameter or a constant; `*` may stand for any row"
    yield f"all run at {_SQL[level]} as PostgreSQL has it, on one server"
    yield (
        "a transaction may follow any other one in its session"
        if sessions
        else "no order of transactions in a session matters"
    )
    if not whole_rows:
        yield "statements on different columns of a row do not conflict"
    changing = {
        one.relation
        for branch in found.branches
        for one in branch.statements
        if one.kind in ("insert", "delete")
    }
    touched = {
        one.relation
        for branch in found.branches
        for one in branch.statements
        if one.kind in ("write", "update", "delete") and one.keyed
    }
    if changing & touched:
        yield (
            "a write, update or delete by key finds its row "
            f"({', '.join(sorted(changing & touched))})"
        )


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
            RobustStatement(transaction=one.transaction, text=one.text) for one in found.ran
        ),
        allowed_by=found.allowed.spec.name,
        forbidden_by=found.forbidden.spec.name,
        anomaly=found.forbidden.violation.anomaly,
        certified=found.allowed.certified and found.forbidden.certified,
        accepted=found.accepted,
        locks_of_rows_refuse=found.refused_by_rows,
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
    if report.transactions is not None:
        yield f"  extracted from {report.transactions:,} committed transactions"
        if report.dropped:
            from isolang.explain.words import quantity

            count = quantity(report.dropped, "transaction")
            yield f"  left out: {count} that did not certainly commit or touch no row"
    elif report.dropped:
        yield f"  left out: {report.dropped:,} execution paths that abort or touch no row"
    yield ""
    level = f"{report.at} ({_SQL[report.at]})"
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
        yield from _mends(report)
    yield ""
    yield from report.notes
    if report.lowest:
        yield "The lowest level for each program, if every other program runs at its own:"
        yield from align_rows(
            [[one.program, _SHORT[one.level], one.sql] for one in report.lowest], indent=2
        )


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
            "time; a database that locks rows, such as PostgreSQL, prevents this"
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
