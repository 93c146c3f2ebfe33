"""Implements ``isocheck run --survey``, ``--effectiveness`` and ``--swarm``, each of many runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from isolang.errors import IsolangError
from isolang.output.records import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID, json_text
from isolang.output.terminal import escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.cli.progress import StatusLine
    from isolang.run.play.state import RunState, SwarmRound
    from isolang.run.settings import Settings
    from isolang.run.survey.survey import Cell, Survey

_COLUMNS = "  {:<20} {:<14} {:<11} {}"


def run_survey(
    settings: Settings,
    *,
    page: str,
    output: str,
    line: StatusLine[[RunState]],
    against: str = "",
    workers: str = "",
) -> int:
    """Run a survey, print its table, and return the exit code."""
    from isolang.jobs.workers import Workers
    from isolang.report import save_page
    from isolang.run.survey.comparison import compare_surveys, load_survey
    from isolang.run.survey.survey import ALL_WORKLOADS, survey
    from isolang.run.survey.table import html, markdown

    workloads = _workload_names(settings.workload, ALL_WORKLOADS)
    earlier = load_survey(against) if against else None
    unsaved: list[str] = []

    def done(cell: Cell, so_far: Survey) -> None:
        line.end()
        if page:  # the page is saved after each cell, because a later cell may end the run
            unsaved.clear()
            try:
                save_page(html(so_far, Path(settings.folder), Path(page)), Path(page))
            except IsolangError as error:  # the survey continues, and its table is still printed
                unsaved.append(str(error))
        if output == "text":
            print_lines(*_lines(cell))
        elif sys.stderr.isatty():
            warn(*_lines(cell))

    try:
        with Workers(workers) if workers else nullcontext() as cluster:
            found = survey(
                settings,
                workloads,
                pages=bool(page),
                show=line.show,
                done=done,
                submit=None if cluster is None else cluster.submit_in_folder,
            )
    finally:
        line.end()
    new = () if earlier is None else compare_surveys(earlier, found)
    if output == "json":
        print_data(json_text(found))
    elif output == "markdown":
        print_data(markdown(found))
    else:
        rows = {"database": found.database, "saved in": settings.folder, "page": page}
        print_lines("", *(f"  {name:<10}{escaped(text)}" for name, text in rows.items() if text))
    if earlier is not None:
        show = print_lines if output == "text" else warn
        show("", f"  against {escaped(against)}, {escaped(earlier.database)}:")
        show(*(f"  {one.kind:<10}{escaped(one.text)}" for one in new or ()))
        if not new:
            show("  nothing new")
    warn(*(escaped(f"isocheck: not saved: {one}") for one in unsaved))
    outcomes = {cell.outcome for cell in found.cells}
    known = earlier is not None and not any(one.kind == "violation" for one in new)
    if "invalid" in outcomes and not known:
        return EXIT_INVALID
    meant = any(cell.outcome == "valid" and not cell.grave for cell in found.cells)
    nothing = "valid" in outcomes and not meant
    return EXIT_UNKNOWN if outcomes & {"unknown", "failed"} or nothing else EXIT_VALID


def run_trials(
    settings: Settings, seconds: float, *, output: str, line: StatusLine[[RunState]]
) -> int:
    """Measure the violations found by each workload, print them, and return the exit code."""
    from isolang.run.play.phases import AUTO
    from isolang.run.survey.effectiveness import effectiveness, markdown

    workloads = _workload_names(settings.workload, [name for name, _ in AUTO])
    try:
        found = effectiveness(settings, workloads, seconds, show=line.show)
    finally:
        line.end()
    print_data(json_text(found) if output == "json" else markdown(found))
    return EXIT_INVALID if any(row.violations for row in found.rows) else EXIT_VALID


def run_swarm(
    settings: Settings,
    *,
    output: str,
    line: StatusLine[[RunState]],
    judge: Callable[..., int],
) -> int:
    """Play a swarm of rounds, print each with its verdict, and return the exit code."""
    from isolang.run.play.player import Player
    from isolang.run.play.runner import Runner
    from isolang.run.survey.swarm import Swarm, markdown, play_rounds, report_of

    def done(one: SwarmRound) -> None:
        line.end()
        if output == "text":
            print_lines(*_round_lines(one))

    target = Runner(settings).target  # finds wrong settings before anything starts
    player = Player(settings.target, settings.prefix)
    try:
        found = play_rounds(
            Swarm(settings, target, whole=True),
            player,
            target,
            settings.length,
            to_the_end=settings.to_the_end,
            show=line.show,
            done=done,
        )
    finally:
        line.end()
        player.close()
    report = report_of(found, settings, target)
    if output == "json":
        print_data(json_text(report))
    elif output == "markdown":
        print_data(markdown(report))
    else:
        counts = Counter(one.verdict for one in found.rounds)
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
        name = report.database or report.target
        print_lines("", escaped(f"{name}: {len(found.rounds)} rounds, {verdicts}"))
        if found.violated is not None:
            print_lines("")
            again = Runner(found.violated.settings).target  # has recorded the statements
            judge(found.violated, again, page="", form="text", short=False)
    outcomes = {one.verdict for one in found.rounds}
    if "invalid" in outcomes:
        return EXIT_INVALID
    return EXIT_VALID if outcomes == {"valid"} else EXIT_UNKNOWN


def _round_lines(one: SwarmRound) -> list[str]:
    said = one.anomaly or one.reason or f"{one.committed:,} committed"
    head = _COLUMNS.format(escaped(one.level), one.workload, one.verdict, escaped(said))
    return [head, f"    {escaped(one.command)}"]


def _workload_names(workload: str, everything: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the value of ``--workload``; ``auto`` and ``all`` mean every workload."""
    from isolang.run.workloads import workload_named

    if workload in ("auto", "all"):
        return tuple(everything)
    names = tuple(workload.split(","))
    for name in names:
        if name != "scripted":
            workload_named(name)  # finds a mistyped name before anything starts
    return names


def _lines(cell: Cell) -> list[str]:
    from isolang.run.survey.table import anomalies_text, counts_text, strongest_levels_text

    head = _COLUMNS.format(cell.level, cell.workload, cell.outcome, "")
    if cell.outcome in ("not played", "failed"):
        return [f"{head.rstrip()}  {escaped(cell.reason)}"]
    lines = [f"{head}held {strongest_levels_text(cell)}; {counts_text(cell)}"]
    if cell.anomalies:
        lines.append(f"  {'':<49}{anomalies_text(cell)}")
    lines += [f"  {'':<49}{escaped(doubt)}" for doubt in cell.doubts]
    return lines
