"""Implements ``isocheck outcomes``, which lists the outcomes of a small program at each level."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct

from isolang.cli.choices import number
from isolang.cli.parameters import Include, Mistake, SelectedOptions, Specs, accept_only
from isolang.cli.progress import Bar
from isolang.options import OUTPUT, Options
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.programs.outcomes import Outcome, OutcomeTable
    from isolang.verdict import Verdict


class OutcomeAtLevel(Struct, frozen=True, kw_only=True):
    """The verdict of one level on one outcome.

    Attributes:
        level: the level, as named on the command line.
        standing: whether the level allows the outcome.
        certified: whether an independent checker accepted the proof.
        anomaly: the name of the violation if the outcome is forbidden; otherwise null.
        reason: why the verdict is unknown; null if it is known.
    """

    level: str
    standing: Literal["allowed", "forbidden", "unknown"]
    certified: bool
    anomaly: str | None = None
    reason: str | None = None


class ProgramOutcome(Struct, frozen=True, kw_only=True):
    """One outcome of the program.

    Attributes:
        number: the number of the outcome, from 1, with which the files of --save begin.
        reads: the value that each read returned, by the name of the read.
        aborted: the numbers, from 1, of the transactions that aborted.
        history: the history, in EDN.
        levels: the verdict of each level.
    """

    number: int
    reads: dict[str, int]
    aborted: tuple[int, ...]
    history: str
    levels: tuple[OutcomeAtLevel, ...]


class TargetAtLevel(Struct, frozen=True, kw_only=True):
    """The verdict of a level on a condition of the program.

    Attributes:
        level: the level, as named on the command line.
        standing: allowed if the level allows some outcome that satisfies the condition.
    """

    level: str
    standing: Literal["allowed", "forbidden", "unknown"]


class TargetReport(Struct, frozen=True, kw_only=True):
    """A condition of the program.

    Attributes:
        exists: the condition.
        title: the name of the condition in the program; may be empty.
        outcomes: the numbers of the outcomes that satisfy the condition.
        levels: whether each level allows one of these outcomes.
    """

    exists: str
    title: str
    outcomes: tuple[int, ...]
    levels: tuple[TargetAtLevel, ...]


class OutcomesReport(Struct, frozen=True, kw_only=True):
    """The outcomes that a program may observe at each level.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        program: the name of the program.
        title: the title of the program; may be empty.
        sessions: for each session the texts of its transactions.
        levels: the levels, as named on the command line.
        reads: the names of all reads.
        outcomes: the distinct outcomes.
        exists: the conditions that the program states.
        seconds: how long the verdicts took.
    """

    schema: Literal[1] = 1
    program: str
    title: str
    sessions: tuple[tuple[str, ...], ...]
    levels: tuple[str, ...]
    reads: tuple[str, ...]
    outcomes: tuple[ProgramOutcome, ...]
    exists: tuple[TargetReport, ...]
    seconds: float


def outcomes(
    *,
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="The program, as a file or as "
    "text.")],
    specs: Specs = [],  # noqa: B006
    options: Annotated[Options, SelectedOptions("timeout", "memory", "seed")],
    most: Annotated[
        int,
        typer.Option(
            "--most", metavar="N", help="Try at most N combinations of sources for the reads.",
            parser=number(int, 1, 10_000_000),
        ),
    ] = 100_000,
    save: Annotated[
        str,
        typer.Option(
            "--save", metavar="DIR", rich_help_panel=OUTPUT, show_default=False,
            help="Save the history, the certificates and a picture of each outcome in this folder.",
        ),
    ] = "",
    page: Annotated[
        str,
        typer.Option(
            "--html", metavar="FILE", rich_help_panel=OUTPUT, show_default=False,
            help="Write the table as an HTML page, with an argument for each forbidden outcome.",
        ),
    ] = "",
    include: Include = [],  # noqa: B006
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="The output format.", rich_help_panel=OUTPUT,
            **accept_only("text", "json", "latex"),
        ),
    ] = "text",
) -> int:  # fmt: skip
    """List all outcomes of a small program, and which levels allow each.

    The exit code is 3 if some verdict is unknown, else 0.
    """
    from isolang.jobs.job import UnloadedSpec
    from isolang.jobs.routes import load_routes
    from isolang.programs.outcomes import outcomes as table_of
    from isolang.programs.outcomes import save as save_files

    if not specs:
        raise Mistake("--spec/-s SPEC is missing", "isocheck outcomes PROGRAM --spec si --spec ser")
    if len(set(specs)) < len(specs):
        raise Mistake("--spec: each level may be named only once")
    levels = {}
    for name, route in load_routes(specs, include, options):
        if isinstance(route, UnloadedSpec):
            warn(f"isocheck: {name}: {route.reason}")
            return EXIT_UNKNOWN
        levels[name] = route
    with Bar(1, options.timeout) as bar:
        table = table_of(
            program,
            levels,
            timeout=options.timeout,
            memory=options.memory,
            seed=options.seed,
            most=int(most),
            progress=bar.phase,
        )
    if save:
        save_files(table, Path(save))
    if page:
        from isolang.programs.page import html
        from isolang.report import save_page

        save_page(html(table), Path(page))
    if output == "json":
        print_data(json_text(_report(table)))
    elif output == "latex":
        from isolang.programs.page import latex

        print_data(latex(table))
    else:
        print_lines(*map(escaped, _text(table)))
    return EXIT_VALID if table.decided else EXIT_UNKNOWN


# --- JSON ---


def _report(table: OutcomeTable) -> OutcomesReport:
    numbers = {id(one): number_ for number_, one in enumerate(table.outcomes, 1)}
    return OutcomesReport(
        program=table.program.name,
        title=table.program.title,
        sessions=table.program.texts,
        levels=table.levels,
        reads=table.reads,
        outcomes=tuple(_outcome(table, numbers[id(one)], one) for one in table.outcomes),
        exists=tuple(
            TargetReport(
                exists=target.text,
                title=target.title,
                outcomes=tuple(numbers[id(one)] for one in table.outcomes_satisfying(target)),
                levels=tuple(
                    TargetAtLevel(level=name, standing=table.standing_of(target, level))
                    for level, name in enumerate(table.levels)
                ),
            )
            for target in table.program.targets
        ),
        seconds=round(table.seconds, 6),
    )


def _outcome(table: OutcomeTable, number_: int, one: Outcome) -> ProgramOutcome:
    return ProgramOutcome(
        number=number_,
        reads=one.reads,
        aborted=one.aborted,
        history=one.edn.decode(),
        levels=tuple(
            _at_level(name, verdict)
            for name, verdict in zip(table.levels, one.verdicts, strict=True)
        ),
    )


def _at_level(name: str, verdict: Verdict) -> OutcomeAtLevel:
    from isolang.programs.outcomes import standing_of_verdict
    from isolang.verdict import Invalid, Unknown

    return OutcomeAtLevel(
        level=name,
        standing=standing_of_verdict(verdict),
        certified=verdict.certified,
        anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else None,
        reason=verdict.reason if isinstance(verdict, Unknown) else None,
    )


# --- text ---


def _text(table: OutcomeTable) -> Iterator[str]:
    from isolang.programs.page import aborted_names, cell, has_aborts, program_lines, read_values

    program = table.program
    yield f"{program.name}  {program.title}".rstrip()
    if program.initial:
        first = ", ".join(f"{key} = {value}" for key, value in program.initial.items())
        yield f"  initially   {first}"
    yield from (f"  {line}" for line in program_lines(table))
    yield ""
    heads = ["", *table.reads, *(["aborted"] if has_aborts(table) else []), *table.levels]
    rows = [
        [
            str(number_),
            *read_values(table, one),
            *([aborted_names(one)] if has_aborts(table) else []),
            *map(cell, one.verdicts),
        ]
        for number_, one in enumerate(table.outcomes, 1)
    ]
    yield from align_rows([heads, *rows], indent=2)
    if program.targets:
        yield ""
        yield from align_rows(
            [
                ["exists", *table.levels, ""],
                *(
                    [
                        target.text,
                        *(table.standing_of(target, i) for i in range(len(table.levels))),
                        target.title,
                    ]
                    for target in program.targets
                ),
            ],
            indent=2,
        )
    unknown = [
        f"  unknown: {name}, outcome {number_}: {found.reason}"
        for number_, one in enumerate(table.outcomes, 1)
        for name, verdict in zip(table.levels, one.verdicts, strict=True)
        if (found := _at_level(name, verdict)).reason is not None
    ]
    yield from unknown
    uncertified = sum(not v.certified for one in table.outcomes for v in one.verdicts)
    many = len(table.outcomes) * len(table.levels)
    certified = "all certified" if not uncertified else f"{many - uncertified:,} certified"
    yield ""
    yield (
        f"  {len(table.outcomes):,} outcomes, {many:,} verdicts, {certified}, {table.seconds:.1f} s"
    )
