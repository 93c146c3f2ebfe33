"""Implements ``isocheck run``, which runs a workload on a database and checks the history."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec.structs import asdict, replace

from isolang.cli.choices import duration
from isolang.cli.parameters import Mistake, SelectedOptions, WorkersURL
from isolang.cli.progress import StatusLine
from isolang.cli.several import Remarks, brief_line, warn_unsaved, was_printed
from isolang.errors import IsolangError
from isolang.options import OutputOptions
from isolang.output.records import (
    EXIT_INPUT,
    EXIT_UNKNOWN,
    EXIT_VALID,
    Report,
    code_of,
    json_text,
    report_of,
)
from isolang.output.terminal import console, escaped, print_data, print_lines, warn
from isolang.run.play.state import SwarmRound
from isolang.run.settings import DATABASE, Settings

if TYPE_CHECKING:
    from isolang.run.judge.doubts import Doubt
    from isolang.run.judge.judge import JudgedRun
    from isolang.run.play.live import LiveVerdict
    from isolang.run.play.state import Run, RunState
    from isolang.run.target import Target

_LOST: Final = 5  # the maximum number of lost commits to print
_QUIET: Final = 2.0  # the seconds of silence after which the status line says so


class RunReport(Report, frozen=True, kw_only=True):
    """The report of a check, and facts about the run.

    Attributes:
        database: the version of the database.
        isolation: the level that the clients requested.
        workload: the workload that the clients ran.
        sessions_at_a_time: the number of concurrent clients.
        seed: the seed of all random choices.
        ran_seconds: how long the run took.
        throughput: the number of committed transactions per second.
        abort_rate: the share of transactions that aborted.
        latency: the average duration of a committed transaction in seconds.
        errors: the most frequent errors of the database, with their counts.
        faults: the faults injected into the server, with their counts.
        interrupted: whether the run was ended early.
        strongest: the strongest levels of the library that the history satisfies.
        first_transaction: the number, from 1, of the violation's first transaction in the history;
            0 without a violation.
        statements: the statements that the transactions of the violation sent.
        doubts: reasons why the verdict may mean less than it seems to mean.
        grave: whether a doubt makes a valid verdict meaningless; if so, the exit code is 3.
        lost: acknowledged commits that a kill of the server lost.
        rounds: the rounds that ``auto`` played after its workloads. If a round violated its level,
            it is the last round, and the report is about its history.
    """

    database: str
    isolation: str
    workload: str
    sessions_at_a_time: int
    seed: int
    ran_seconds: float
    throughput: float
    abort_rate: float
    latency: float
    errors: Mapping[str, int]
    faults: Mapping[str, int]
    interrupted: bool
    strongest: tuple[str, ...]
    first_transaction: int
    statements: Mapping[str, tuple[str, ...]]
    doubts: tuple[str, ...] = ()
    grave: bool = False
    lost: tuple[str, ...] = ()
    rounds: tuple[SwarmRound, ...] = ()


def run(
    *,
    settings: Settings,
    output: Annotated[
        OutputOptions,
        SelectedOptions(
            "brief", "quiet", "html", forms=("text", "json", "markdown", "junit", "sarif")
        ),
    ],
    survey: Annotated[
        bool, typer.Option(
            "--survey",
            help="Run every workload at every level, and print a table of the verdicts.")
    ] = False,
    against: Annotated[
        str,
        typer.Option(
            "--against", metavar="FILE", show_default=False,
            help="With --survey: report what is new since the survey in this file, which -o json "
            "wrote.",
        ),
    ] = "",
    workers: WorkersURL = "",
    trials: Annotated[
        float,
        typer.Option(
            "--effectiveness", metavar="TIME", parser=duration, show_default=False,
            help="Run trials for this time, such as 30m, and report how many violations each "
            "workload finds per hour.",
        ),
    ] = 0.0,
    swarm: Annotated[
        bool,
        typer.Option(
            "--swarm", help="Play short rounds with random options, and judge each round."),
    ] = False,
    selftest: Annotated[
        bool,
        typer.Option(
            "--selftest", rich_help_panel=DATABASE,
            help="Only test the adapter of TARGET.",
        ),
    ] = False,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", rich_help_panel=DATABASE,
            help="Only remove the tables that earlier runs left behind when they were killed.",
        ),
    ] = False,
) -> int:  # fmt: skip
    """Test a real database: run a workload, record it, and check the history."""
    from isolang.run.play.player import Player
    from isolang.run.play.runner import Runner
    from isolang.run.play.state import nothing_committed
    from isolang.run.survey.swarm import play_with_rounds
    from isolang.run.target import TargetError

    if against and not survey:
        raise Mistake("--against needs --survey", "isocheck run TARGET --survey --against FILE")
    if workers and not survey:
        raise Mistake("--workers needs --survey", "isocheck run TARGET --survey --workers URL")
    if clean:
        return _clean(settings)
    output.require_verdicts(brief=("text", "json"))
    short = output.brief
    form = "quiet" if output.quiet else "brief" if short and output.form == "text" else output.form
    table = survey or trials or selftest or swarm
    if table and (short or form not in ("text", "json", "markdown")):
        got = "--brief" if short else form
        raise Mistake(
            f"--output: a table cannot be printed in this format (got {got}, expected text, "
            "json or markdown)"
        )
    if selftest:
        return _selftest(settings, form)
    line = StatusLine(sys.stderr, _status_text)
    with _interrupt_on_sigterm():
        if survey:
            from isolang.cli.survey import run_survey

            return run_survey(
                settings,
                page=output.html,
                output=form,
                line=line,
                against=against,
                workers=workers,
            )
        if trials:
            from isolang.cli.survey import run_trials

            return run_trials(settings, trials, output=form, line=line)
        if swarm:
            from isolang.cli.survey import run_swarm

            return run_swarm(settings, output=form, line=line, judge=_judge)
        runner = Runner(settings)  # finds wrong settings before anything starts
        player = Player(settings.target, settings.prefix)
        try:
            recorded = play_with_rounds(settings, player, runner.target, line.show)
            line.end()
            player.finish()
            if not recorded.state.committed:
                raise TargetError(nothing_committed(recorded))
            target = Runner(recorded.settings).target if recorded.rounds else runner.target
            return _judge(recorded, target, page=output.html, form=form, short=short)
        finally:
            line.end()
            player.close()


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Make SIGTERM act like Ctrl-C while the block runs.

    Either of them ends the run; the tables are then removed and the history is checked.
    """

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_MARKS: Final = {"passed": "ok", "failed": "FAILED", "doubtful": "doubtful", "not played": "-"}


def _selftest(settings: Settings, output: str) -> int:
    from isolang.run.play.level_mix import level_mix_of
    from isolang.run.play.player import test_adapter
    from isolang.run.play.selftest import SelfTest
    from isolang.run.targets import target_named

    target = target_named(settings.target, prefix=settings.prefix)
    level = level_mix_of(settings, target).level
    checks = test_adapter(settings)
    if output == "json":
        found = SelfTest(target=str(target.address), level=level.name, checks=checks)
        print_data(json_text(found))
    else:
        print_lines(f"{escaped(str(target.address))}, {level.name} (claims {level.claims})", "")
        for one in checks:
            why = f": {one.why}" if one.why else ""
            print_lines(f"  {_MARKS[one.outcome]:<9} {one.name}{escaped(why)}")
    return EXIT_INPUT if any(one.outcome == "failed" for one in checks) else EXIT_VALID


def _clean(settings: Settings) -> int:
    from isolang.run.play.player import clean
    from isolang.run.target import TargetError

    removed, why = clean(settings.target, settings.prefix)
    if why:
        raise TargetError(f"--clean: {why}")
    print_lines(*(f"removed {escaped(name)}" for name in removed))
    if not removed:
        prefix = escaped(settings.prefix)
        print_lines(f"nothing to remove: isocheck created no table or key with the prefix {prefix}")
    return EXIT_VALID


def _judge(recorded: Run, target: Target, *, page: str, form: str, short: bool) -> int:
    """Check a run, print the verdict before anything else is computed, and return the exit code.

    Ctrl-C ends what is computed after the verdict, and not the verdict: the exit code is the same.
    """
    from isolang.cli.progress import Bar
    from isolang.run.judge.judge import judge_run

    found = recorded.watched
    if found is not None and not page and form in ("text", "json", "quiet", "brief"):
        return _judge_watched(recorded, found, form, short=short)
    with Bar(1, recorded.settings.timeout) as bar:
        bar.phase("the verdict")
        verdict = judge_run(recorded, target, levels=False, smallest=False, little=False)
    judged = verdict
    report = report_of_run(judged)
    printed = form != "text" or was_printed(lambda: _print(report, judged))
    try:
        for more, lines in _with_more(verdict, form):
            judged = more
            if form == "text":
                printed &= was_printed(partial(print_lines, *lines))
        report = report_of_run(judged)
        if page:
            report = _with_page(report, judged, page)
    except KeyboardInterrupt:
        report = report_of_run(judged)
        warn(f"isocheck: interrupted: {report.verdict} stands, but what follows it is incomplete")
    code = code_of(report)
    code = EXIT_UNKNOWN if code == EXIT_VALID and report.grave else code
    if form != "text":
        printed = was_printed(lambda: _print_form(report, judged, form, short=short))
    warn_unsaved(report)
    return code if printed else code or EXIT_INPUT


def _with_more(judged: JudgedRun, form: str) -> Iterator[tuple[JudgedRun, Sequence[str]]]:
    """Yield the run with what takes longer than its verdict, and the lines that say so.

    Each step has a work limit, so that equal runs give equal results.
    """
    from isolang.cli.progress import Bar
    from isolang.language.hierarchy import IMPLIES
    from isolang.run.judge.judge import (
        with_smallest_part,
        with_strongest_levels,
        with_vacuity_doubt,
    )

    with Bar(1) as bar:
        bar.phase("a small part that is still invalid")
        judged = with_smallest_part(judged)
    yield judged, _smallest_line(judged)
    known = len(judged.doubts)
    judged = with_vacuity_doubt(judged)
    doubts = (f"by this run: {doubt.text}" for doubt in judged.doubts[known:])
    yield judged, [_row("NOT PROVED", doubt) for doubt in doubts]
    if form not in ("text", "json"):
        return
    with Bar(len(IMPLIES)) as bar:

        def level(name: str) -> None:
            if name in IMPLIES:
                bar.step()
                bar.phase(name)

        judged = with_strongest_levels(judged, progress=level)
    more = "" if judged.all_levels else " (some levels are undecided; isocheck levels decides them)"
    strongest = ", ".join(judged.strongest) or "no level of the library"
    yield judged, [_row("held", strongest + more)]


def _with_page(report: RunReport, judged: JudgedRun, path: str) -> RunReport:
    """Return the report with the page about the run, or with the reason why it was not saved."""
    from isolang.report import course_of, save_page
    from isolang.report import page as make

    history = judged.recorded.path
    try:
        text = make(
            judged.verdict,
            name=str(history),
            course=course_of(history),
            statements=judged.statements,
        )
        return replace(report, page=save_page(text, Path(path)))
    except (IsolangError, OSError) as error:
        return replace(report, unsaved=(*report.unsaved, str(error)))


def _print_form(report: RunReport, judged: JudgedRun, form: str, *, short: bool) -> None:
    if form == "json":
        print_data(json_text(report.brief() if short else report))
    elif form == "markdown":
        from isolang.report.forms import markdown

        print_data(markdown(judged.verdict))
        print_data(
            "".join(f"\n* {escaped(doubt)}" for doubt in report.doubts) + "\n" * bool(report.doubts)
        )
    elif form == "quiet":
        Remarks().warn_about(report, caveats=True)
    else:
        _print_whole(_without_meaningless_verdict(report), judged, form)


def _judge_watched(recorded: Run, found: LiveVerdict, form: str, *, short: bool) -> int:
    """Print the result of the watch on a long run, and return the exit code.

    The history is not read again. If the watch found a violation, it has saved the few transactions
    that prove it, and only these are checked.
    """
    from isolang.run.judge.judge import judge_watched_run

    doubts, judged = judge_watched_run(recorded, found)
    if judged is not None:
        report = report_of_run(judged)
    else:
        base = Report(history=str(recorded.path), spec=recorded.claims, verdict="valid")
        report = _with_run(base, recorded, doubts=doubts)
    state = recorded.state
    report = replace(
        report,
        history=str(recorded.path),
        transactions=found.transactions,
        committed=state.committed,
        aborted=state.aborted,
        maybe=state.maybe,
        certified=True,
        certified_reason=f"each of {found.parts:,} parts by itself, during the recording"
        if judged is None
        else report.certified_reason,
        certificate=found.folder if judged is None else report.certificate,
        warnings=(*report.warnings, *((found.note,) if found.note else ())),
    )
    printed = was_printed(
        lambda: _print_watched(report, recorded, found, judged, form, short=short)
    )
    warn_unsaved(report)
    code = code_of(report)
    code = EXIT_UNKNOWN if code == EXIT_VALID and report.grave else code
    return code if printed else code or EXIT_INPUT


def _print_watched(
    report: RunReport,
    recorded: Run,
    found: LiveVerdict,
    judged: JudgedRun | None,
    form: str,
    *,
    short: bool,
) -> None:
    if form == "text":
        from isolang.output.text import render

        if report.grave and judged is None:
            print_lines(
                "NOT PROVED BY THIS RUN: the verdict below rests on too little evidence", ""
            )
        render(report, console(sys.stdout))
        print_lines(*(f"  in the history: {escaped(place)}" for place in found.places))
        print_lines(*_summary_lines(report, recorded))
        if judged is None:
            print_lines(
                f"  to check the certificate: isocheck verify {escaped(found.folder)} "
                f"{escaped(str(recorded.path))}"
            )
    elif form == "json":
        print_data(json_text(report.brief() if short else report))
    elif form == "brief":
        print_lines(escaped(brief_line(_without_meaningless_verdict(report))))
    else:
        Remarks().warn_about(report, caveats=True)


def _without_meaningless_verdict(report: RunReport) -> RunReport:
    """Return the report, with the verdict replaced by unknown if it is valid but meaningless."""
    if not (report.grave and report.verdict == "valid"):
        return report
    return replace(report, verdict="unknown", reason="; ".join(("not proved", *report.doubts)))


def _print_whole(report: RunReport, judged: JudgedRun, form: str) -> None:
    """Print the report on one line, or in the format ``junit`` or ``sarif``."""
    if form == "brief":
        return print_lines(escaped(brief_line(report)))
    from isolang.output.text import text_of_report
    from isolang.report.forms import junit, sarif

    text = "\n".join(
        [
            text_of_report(report),
            "",
            *_summary_lines(report, judged.recorded),
            *_smallest_line(judged),
        ]
    )
    return print_data((junit if form == "junit" else sarif)([(report, text)]))


def report_of_run(judged: JudgedRun) -> RunReport:
    """Return the report on a run: the report on the check, with facts about the run."""
    ran = judged.recorded
    base = replace(
        report_of(str(ran.path), ran.claims, judged.verdict),
        certificate=None if judged.certificate is None else str(judged.certificate),
        minimal=None if judged.minimal is None else str(judged.minimal),
    )
    report = _with_run(base, ran, doubts=judged.doubts)
    return replace(
        report,
        strongest=tuple(judged.strongest),
        first_transaction=judged.first,
        statements={name: tuple(sent) for name, sent in judged.statements.items()},
        lost=judged.lost,
        unsaved=judged.unsaved,
    )


def _with_run(report: Report, ran: Run, *, doubts: Sequence[Doubt]) -> RunReport:
    state, settings = ran.state, ran.settings
    caveats = (*report.caveats, *(doubt.text for doubt in doubts))
    return RunReport(
        **asdict(replace(report, caveats=caveats)),
        database=ran.version,
        isolation=ran.level.name,
        workload=settings.workload,
        sessions_at_a_time=settings.sessions,
        seed=settings.seed,
        ran_seconds=round(ran.seconds, 3),
        throughput=round(ran.throughput, 1),
        abort_rate=round(state.aborted / max(1, state.total()), 4),
        latency=round(state.latency / max(1, state.committed), 6),
        errors=dict(state.errors.most_common(8)),
        faults=state.faults,
        interrupted=ran.interrupted,
        strongest=(),
        first_transaction=0,
        statements={},
        doubts=tuple(doubt.text for doubt in doubts),
        grave=any(doubt.grave for doubt in doubts),
        rounds=ran.rounds,
    )


def _print(report: RunReport, judged: JudgedRun) -> None:
    from isolang.output.text import render

    if report.grave and report.verdict == "valid":
        print_lines("NOT PROVED BY THIS RUN: the verdict below rests on too little evidence", "")
    render(report, console(sys.stdout))
    print_lines(*_summary_lines(report, judged.recorded))
    sys.stdout.flush()


def _forms_remark(settings: Settings) -> str:
    """Return a remark if statements were sent in several forms."""
    several = [
        f"each {what} in one of several forms: --{option} any"
        for what, option, chosen in (
            ("read", "access", settings.access), ("write", "update", settings.update)
        )
        if chosen == "any"
    ]  # fmt: skip
    return f" ({'; '.join(several)})" if several else ""


def _summary_lines(report: RunReport, ran: Run) -> Iterator[str]:
    """Yield the lines that follow the verdict: doubts, statements, and facts about the run."""
    for doubt in report.doubts:
        yield f"  note: {escaped(doubt)}"
    for commit in report.lost[:_LOST]:
        yield f"  lost: {escaped(commit)}"
    if len(report.lost) > _LOST:
        yield f"  lost: {len(report.lost) - _LOST:,} more commits"
    if report.doubts or report.lost:
        yield ""
    if report.statements:
        yield f"  What was sent{_forms_remark(ran.settings)}:"
        yield ""
        for name, statements in report.statements.items():
            yield f"  {escaped(name)}"
            yield from (f"    {escaped(one)}" for one in statements)
        yield ""
    state = ran.state
    rows = {
        "database": f"{ran.version}, {ran.level.name} (claims {ran.claims})",
        "workload": f"{ran.settings.workload}, {ran.settings.sessions} sessions, "
        f"seed {ran.settings.seed}",
        "ran": f"{ran.seconds:.1f} s, {state.committed:,} committed ({ran.throughput:,.0f}/s), "
        f"{state.aborted:,} aborted, {state.maybe:,} maybe"
        + (" (interrupted)" if ran.interrupted else ""),
        "history": str(ran.path),
    }
    if ran.settings.level_mix:
        rows["levels"] = ", ".join(
            f"{name} ×{n:,}" for name, n in sorted(state.committed_by_level.items())
        )
    if state.errors:
        rows["errors"] = "; ".join(f"{kind} ×{n:,}" for kind, n in state.errors.most_common(3))
    if state.faults:
        rows["faults"] = ", ".join(f"{name} ×{count}" for name, count in state.faults.items())
    if ran.rounds:
        counts = Counter(one.verdict for one in ran.rounds)
        rows["rounds"] = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        if ran.rounds[-1].verdict == "invalid":
            rows["this round"] = ran.rounds[-1].command
    yield from (_row(name, said) for name, said in rows.items())


def _smallest_line(judged: JudgedRun) -> list[str]:
    if judged.minimal is None:
        return []
    return [_row("smallest", f"{judged.minimal} ({judged.smallest})")]


def _row(name: str, said: str) -> str:
    return f"  {name:<13}{escaped(said)}"


def _status_text(state: RunState) -> str:
    """Return the text of the status line during a run."""
    passed = time.monotonic() - state.began
    look = state.look
    verdict = "" if look is None else f"{look.outcome} up to {look.transactions:,}"
    if look is not None and look.little:
        verdict += ", but nothing could be violated yet"
    silent = time.monotonic() - max(state.answered, state.began)
    if silent > _QUIET:
        verdict += f"  NO ANSWER for {silent:.0f} s"
    return (
        f"{passed:4.0f} s  {state.level} {state.workload:<14} {state.committed:,} committed  "
        f"{state.aborted:,} aborted  {state.maybe} maybe  "
        f"{state.committed / max(passed, 0.1):,.0f}/s  "
        f"{1000 * state.latency / max(1, state.committed):.1f} ms  {verdict}"
    )
