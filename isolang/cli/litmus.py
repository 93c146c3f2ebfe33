"""Implements ``isocheck litmus``, which plays a program that separates two levels on a database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct

from isolang.cli.parameters import Include, Mistake, Output, accept_only
from isolang.cli.progress import Bar
from isolang.history.values import Keyword
from isolang.output.layout import align_rows
from isolang.output.records import EXIT_INVALID, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines, warn
from isolang.run.litmus.hermitage import Occurrence
from isolang.run.settings import LitmusSettings

if TYPE_CHECKING:
    from isolang.comparison.normal import Normal
    from isolang.explain.violation import Violation
    from isolang.history.history import History
    from isolang.language.classify.route import Route
    from isolang.run.litmus.litmus import (
        Litmus,
        LitmusQuestion,
        LitmusResult,
        PlayedSchedule,
        TransactionResults,
    )


class OutcomeReport(Struct, frozen=True, kw_only=True):
    """The outcome of one interleaving.

    Attributes:
        schedule: the number of the session that runs each step, from 1; the last step of a
            transaction is COMMIT.
        shown: for each session, the operations of its transactions, or why they did not commit.
        anomaly: the name of the violation; null if the outcome only equals the history.
    """

    schedule: tuple[int, ...]
    shown: tuple[tuple[str, ...], ...]
    anomaly: str | None


class LitmusReport(Struct, frozen=True, kw_only=True):
    """The outcomes of one program on a database.

    Attributes:
        allowed_by: the level that allows the history; null if the history is from a file.
        forbidden_by: the level that forbids the history; null if no level was named.
        program: the history in one line.
        database: the name and version of the database; null if nothing was run.
        level: the level of the database.
        possible: how many interleavings could produce the history.
        played: how many interleavings were run.
        violations: how many outcomes violate the level that forbids the history.
        same: how many outcomes equal the history.
        example: the first of these outcomes.
        seconds: how long the interleavings took.
    """

    allowed_by: str | None
    forbidden_by: str | None
    program: str
    database: str | None = None
    level: str | None = None
    possible: int
    played: int = 0
    violations: int = 0
    same: int = 0
    example: OutcomeReport | None = None
    seconds: float = 0.0


class LitmusReports(Struct, frozen=True, kw_only=True):
    """The outcomes of all programs on all requested levels.

    Attributes:
        schema: a number that changes when a field is removed or changes its meaning.
        results: the outcomes of each program on each level.
        skipped: the edges of the lattice that no history with single-key reads separates.
        phenomena: with --suite, the result for each of Hermitage's phenomena at each level.
    """

    schema: Literal[1] = 1
    results: tuple[LitmusReport, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    phenomena: tuple[Occurrence, ...] = ()


class Case(Struct, frozen=True, kw_only=True):
    """A program to play, with the history it was made from.

    Attributes:
        allowed_by: the level that allows the history; ``None`` if the history is from a file.
        forbidden_by: the level that forbids the history; ``None`` if the user named no level.
        question: the program, with the level whose violations are sought.
    """

    allowed_by: str | None
    forbidden_by: str | None
    program: str
    question: LitmusQuestion


def litmus(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A B | FILE", show_default=False,
            help="Two specifications, or one history with a few transactions; leave them out with "
            "--suite.",
        ),
    ] = None,
    playing: LitmusSettings,
    spec: Annotated[
        str,
        typer.Option(
            "--spec", "-s", metavar="SPEC", show_default=False,
            help="With FILE: search for any violation of this level.",
        ),
    ] = "",
    script: Annotated[
        str | None,
        typer.Option(
            "--script",
            help="Write a stand-alone Python program that plays an interleaving with this outcome.",
            **accept_only("psycopg", "sql", "python"),
        ),
    ] = None,
    suite: Annotated[
        bool, typer.Option("--suite", help="Play one program for each edge of the lattice of "
        "levels.")
    ] = False,
    include: Include = [],  # noqa: B006
    output: Output = "text",
) -> int:  # fmt: skip
    """Find a program whose outcome separates two levels, and play its interleavings on a database.

    A history that A allows and B forbids becomes the program. The exit code is 1 if the database
    produces a history that B forbids, otherwise 0.
    """
    from isolang.run.litmus.litmus import play_litmus_tests

    skipped: list[tuple[str, str]] = []
    with Bar(1) as bar:
        bar.phase("search for histories")
        levels = _levels(playing, suite=suite, script=bool(script))
        cases = _cases(what or [], spec, include, skipped, suite=suite, progress=bar.phase)
    questions = [case.question for case in cases]
    announce = suite and not sys.stderr.isatty()  # a progress bar needs a terminal
    if announce:
        warn(f"{len(cases)} programs, each played at {_counted(len(levels), 'level')}")
    rows = []
    with Bar(len(levels) * len(cases)) as bar:
        for name in levels:

            def playing_now(program: str, name: str = name) -> None:
                bar.phase(" ".join(filter(None, (name, program))))
                bar.step()

            rows.append(play_litmus_tests(questions, playing, name, progress=playing_now))
            if announce:
                warn(f"played at {escaped(name)}: {len(rows)} of {_counted(len(levels), 'level')}")
    if script:
        print_data(_script(cases, rows, playing, script))
        return EXIT_VALID
    phenomena: tuple[Occurrence, ...] = ()
    if suite:
        from isolang.run.litmus.hermitage import play_hermitage

        phenomena = play_hermitage(playing, levels)
    results = [_report(case, None) for case in cases if not rows]
    results += [_report(case, one) for row in rows for case, one in zip(cases, row, strict=True)]
    if output == "json":
        print_data(
            json_text(
                LitmusReports(results=tuple(results), skipped=tuple(skipped), phenomena=phenomena)
            )
        )
    elif suite:
        print_lines(*_table(cases, rows, skipped), "", *_phenomena(phenomena))
    else:
        print_lines(*_program(cases[0]))
        for row in rows:
            print_lines("", *_result_lines(cases[0], row[0]))
    seen = any(one.violations or one.same for one in results)
    seen = seen or any(one.outcome == "occurs" for one in phenomena)
    return EXIT_INVALID if seen else EXIT_VALID


def _script(
    cases: Sequence[Case],
    rows: Sequence[Sequence[LitmusResult]],
    playing: LitmusSettings,
    kind: str,
) -> str:
    """Return the first program as a script that runs the interleaving with this history."""
    from isolang.run.litmus.script import Kind, script_of

    seen = [one for row in rows for one in (*row[0].violations, *row[0].same)]
    if rows and not seen:
        raise Mistake(
            "--script: the database did not produce the history",
            "leave out --run to write the program anyway",
        )
    module = "duckdb" if playing.target.startswith("duckdb") else "sqlite3"
    kinds: dict[str, Kind] = {"psycopg": "psycopg", "sql": "sql", "python": "python"}
    return script_of(
        cases[0].question.litmus,
        kinds[kind],
        level=next(iter(playing.levels), ""),
        schedule=seen[0].schedule if seen else (),
        load=playing.load,
        module=module,
    )


def _cases(
    what: Sequence[str],
    spec: str,
    include: Sequence[str],
    skipped: list[tuple[str, str]],
    *,
    suite: bool,
    progress: Callable[[str], object],
) -> list[Case]:
    if suite:
        if what or spec:
            raise Mistake(
                "--suite plays its own programs: leave out the specifications and the history"
            )
        return list(_edges(skipped, progress))
    if len(what) == 2:
        return [_pair(what[0], what[1], include)]
    if len(what) == 1:
        return [_file(what[0], spec, include)]
    raise Mistake(
        "nothing to play: name two specifications or a history, or give --suite",
        "isocheck litmus psi si --run postgres --level 'repeatable read'",
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def _edges(skipped: list[tuple[str, str]], progress: Callable[[str], object]) -> Iterator[Case]:
    """Yield a case for each lattice edge that is separated by a history with single-key reads.

    All other edges are appended to ``skipped``.
    """
    from isolang.comparison.compare import decide_implication
    from isolang.comparison.lattice import implication_order
    from isolang.comparison.separate import Bounds

    levels = _levels_by_key()
    edges = implication_order(levels, bounds=Bounds(transactions=0)).edges
    for number, (stronger, weaker) in enumerate(edges, 1):
        progress(f"look for a history between {weaker} and {stronger}, {number} of {len(edges)}")
        found = decide_implication(levels[weaker], levels[stronger], bounds=Bounds(one_by_one=True))
        if found.witness is None:
            skipped.append((stronger, weaker))
        else:
            small = found.witness.small
            yield _case(weaker, stronger, str(small), small.history(), found.witness.violation.spec)


def _levels_by_key() -> dict[str, Normal]:
    """Return the library levels that can be separated by histories with single-key reads.

    Levels that use groups or per-transaction levels are left out, and so are levels that differ
    from PL-3 only on predicate reads.
    """
    from isolang.comparison.lattice import library_levels
    from isolang.language.library import list_mixed
    from isolang.language.meaning.mentions import uses_groups

    mixed = {entry.name for entry in list_mixed()}
    by_predicate = ("pl-2-99", "locking-repeatable-read")
    return {
        name: one
        for name, one in library_levels().items()
        if name not in by_predicate and name not in mixed and not uses_groups(one.spec)
    }


def _pair(a: str, b: str, include: Sequence[str]) -> Case:
    from isolang.comparison.compare import decide_implication
    from isolang.comparison.normal import normal
    from isolang.comparison.separate import Bounds
    from isolang.language.load import load_spec

    allows, forbids = (load_spec(name, include_path=include) for name in (a, b))
    bounds = Bounds(transactions=5, one_by_one=True)
    found = decide_implication(normal(allows), normal(forbids), bounds=bounds)
    if found.proof is not None:
        raise Mistake(
            f"{a} implies {b}, so no history is allowed by {a} and forbidden by {b}",
            f"isocheck litmus {b} {a}",
        )
    if found.witness is None:
        raise Mistake(
            f"among the histories of up to {found.searched} transactions that read single "
            f"keys, none is allowed by {a} and forbidden by {b}"
        )
    small = found.witness.small
    return _case(a, b, str(small), small.history(), forbids)


def _case(a: str | None, b: str | None, program: str, history: object, spec: object) -> Case:
    from isolang.history.history import History
    from isolang.language.classify.route import route
    from isolang.language.meaning.core import Spec
    from isolang.run.litmus.litmus import LitmusQuestion, litmus_of

    assert isinstance(history, History)
    chosen = route(spec) if isinstance(spec, Spec) else None
    return Case(
        allowed_by=a,
        forbidden_by=b,
        program=program,
        question=LitmusQuestion(
            litmus=litmus_of(history, _violation(history, chosen)), spec=chosen
        ),
    )


def _violation(history: History, chosen: Route | None) -> Violation | None:
    """Return the violation in a history with queries, for a script to explain."""
    from isolang.api import check
    from isolang.verdict import Invalid

    if chosen is None or not len(history.columns.statement_start):
        return None
    found = check(history, chosen)
    return found.violation if isinstance(found, Invalid) else None


def _file(path: str, spec: str, include: Sequence[str]) -> Case:
    from isolang.api import load_history
    from isolang.language.load import load_spec

    history = load_history(path)
    forbids = load_spec(spec, include_path=include) if spec else None
    case = _case(None, spec or None, "", history, forbids)
    shown = case.question.litmus.shown
    program = " || ".join(" -> ".join(_ops(ops) for ops in own) for own in shown)
    return Case(allowed_by=None, forbidden_by=spec or None, program=program, question=case.question)


def _levels(playing: LitmusSettings, *, suite: bool, script: bool = False) -> list[str]:
    if not playing.target:
        if suite or (playing.levels and not script):
            raise Mistake("--run TARGET is missing: name the database to play it on")
        return []
    if playing.levels or not suite:
        return list(playing.levels) or [""]
    from isolang.run.targets import target_named

    return [one.name for one in target_named(playing.target).levels]


def _report(case: Case, found: LitmusResult | None) -> LitmusReport:
    from isolang.run.litmus.litmus import count_schedules

    if found is None:
        return LitmusReport(
            allowed_by=case.allowed_by,
            forbidden_by=case.forbidden_by,
            program=case.program,
            possible=count_schedules(case.question.litmus),
        )
    example = next(iter([*found.violations, *found.same]), None)
    return LitmusReport(
        allowed_by=case.allowed_by,
        forbidden_by=case.forbidden_by,
        program=case.program,
        database=found.database,
        level=found.level,
        possible=found.possible,
        played=len(found.outcomes),
        violations=len(found.violations),
        same=len(found.same),
        example=None if example is None else _outcome(example),
        seconds=round(found.seconds, 6),
    )


def _outcome(one: PlayedSchedule) -> OutcomeReport:
    violation = one.violation
    return OutcomeReport(
        schedule=tuple(session + 1 for session in one.schedule),
        shown=tuple(
            tuple(done if isinstance(done, str) else _ops(done) for done in own)
            for own in one.shown
        ),
        anomaly=None if violation is None else violation.violation.anomaly,
    )


# --- text ---


def _ops(ops: TransactionResults) -> str:
    return " ".join(f"{name}({key},{_value(value)})" for name, key, value in ops)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{' '.join(map(str, value))}]"
    return (
        "nil" if value is None else f":{value.name}" if isinstance(value, Keyword) else str(value)
    )


def _program(case: Case) -> Iterator[str]:
    litmus = case.question.litmus
    if case.allowed_by:
        a, b = escaped(case.allowed_by), escaped(case.forbidden_by or "")
        yield f"{a} allows this, {b} does not:"
    for number_, own in enumerate(litmus.shown, 1):
        for ops in own:
            yield f"  session {number_}   begin  {escaped(_ops(ops))}  commit"
    for (i, j), (k, m) in litmus.before:
        yield f"  transaction {j + 1} of session {i + 1} ends before {m + 1} of {k + 1} begins"


def _count(found: LitmusResult) -> str:
    played = f"{len(found.outcomes):,}"
    return f"all {played}" if found.complete else f"{played} of {found.possible:,}"


def _result_lines(case: Case, found: LitmusResult) -> Iterator[str]:
    where = f"{escaped(found.database)}, {escaped(found.level)}"
    if not found.possible:
        yield (
            f"{where}: no interleaving is possible, because a read would come before the "
            "write that it returns"
        )
        return
    seen = [*found.violations, *found.same]
    if not seen:
        yield f"{where}: not seen in {_count(found)} interleavings ({found.seconds:.1f} s)"
        return
    many = f"{len(found.violations) or len(found.same)} of {len(found.outcomes):,}"
    yield f"{where}: seen in {many} interleavings ({found.seconds:.1f} s)"
    first = seen[0]
    if first.violation is not None:
        about, forbids = first.violation.violation, escaped(case.forbidden_by or "")
        yield f"  {about.anomaly}, which {forbids} forbids: {about.meaning}"
    yield "  for example:"
    yield from (f"    {line}" for line in _steps(litmus=case.question.litmus, one=first))


def _steps(litmus: Litmus, one: PlayedSchedule) -> Iterator[str]:
    """Yield the steps of an interleaving as text, with one column per session."""
    steps = []
    for own, shown in zip(litmus.shown, one.shown, strict=True):
        of_session: list[str] = []
        for ops, done in zip(own, [*shown, *[""] * len(own)], strict=False):
            if isinstance(done, str):
                of_session += [f"{name} {key}" for name, key, _ in ops] + [f"not committed: {done}"]
            else:
                of_session += [f"{name}({key},{_value(value)})" for name, key, value in done]
                of_session.append("commit")
        steps.append([escaped(text)[:60] for text in of_session])
    widths = [max(map(len, own)) for own in steps]
    at = [0] * len(steps)
    for session in one.schedule:
        if at[session] < len(steps[session]):
            cells = [""] * len(steps)
            cells[session] = steps[session][at[session]]
            at[session] += 1
            line = "   ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True))
            yield line.rstrip()


def _table(
    cases: Sequence[Case],
    rows: Sequence[Sequence[LitmusResult]],
    skipped: Sequence[tuple[str, str]],
) -> Iterator[str]:
    """Yield a table with a row per edge and a column per database level.

    Below the table, state what the results prove about each database level.
    """
    yield escaped(rows[0][0].database)
    yield ""
    lines = [("forbidden by", "allowed by", *(row[0].level for row in rows), "history")]
    for number_, case in enumerate(cases):
        cells = [_cell(row[number_]) for row in rows]
        lines.append((case.forbidden_by or "", case.allowed_by or "", *cells, case.program))
    yield from align_rows(lines)
    yield ""
    for row in rows:
        bad = [c.forbidden_by or "" for c, one in zip(cases, row, strict=True) if one.violations]
        yield f"  {row[0].level}: {_boundary_sentence(bad)}"
    if skipped:
        pairs = ", ".join(f"{a} from {b}" for a, b in skipped)
        yield f"  no sequential interleaving separates these pairs: {pairs}"


def _phenomena(found: Sequence[Occurrence]) -> Iterator[str]:
    """Yield a table with a row per Hermitage phenomenon and a column per level."""
    levels = tuple(dict.fromkeys(one.level for one in found))
    lines = [("Hermitage", "", *map(escaped, levels))]
    for name in dict.fromkeys(one.name for one in found):
        own = {one.level: one for one in found if one.name == name}
        title = next(iter(own.values())).title
        lines.append((name, title, *(own[level].outcome for level in levels)))
    yield from align_rows(lines)


def _cell(found: LitmusResult) -> str:
    if found.violations:
        return f"seen {len(found.violations)}/{len(found.outcomes)}"
    return f"- {_count(found)}"


def _boundary_sentence(refuted: Sequence[str]) -> str:
    """Return a sentence about the levels between which a database lies.

    These are the strongest levels not refuted by any result, and the weakest refuted ones.
    """
    from isolang.comparison.lattice import LevelRanking
    from isolang.comparison.walks import prove_implication

    levels = _levels_by_key()
    bad = {
        name
        for name in levels
        if any(prove_implication(levels[name], levels[one]) is not None for one in refuted)
    }
    near = LevelRanking(levels)
    good = near.strongest(name for name in levels if name not in bad)
    worst = near.weakest(bad)
    said = f"nothing seen against {', '.join(good) or 'no level'}"
    return f"{said}; refuted: {', '.join(worst)}" if worst else said
