"""Implements ``isocheck check``, which :mod:`isolang.cli.check` declares."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import replace

from isolang.cli.check import FILES, FORMS
from isolang.cli.choices import levels, nearest_name
from isolang.cli.parameters import Mistake
from isolang.cli.plot import require_plottable
from isolang.cli.progress import Bar
from isolang.cli.several import (
    Remarks,
    as_warning,
    brief_line,
    expand_folders,
    verdict_counts,
    warn_unsaved,
    was_printed,
)
from isolang.jobs.job import Job, UnloadedSpec, run_job
from isolang.jobs.routes import load_routes
from isolang.machine import processors
from isolang.options import Options, OutputOptions, ReadOptions
from isolang.output.records import EXIT_INPUT, Report, code_of, exit_code, json_text
from isolang.output.terminal import console, escaped, print_data, print_lines, use_color, warn

if TYPE_CHECKING:
    from isolang.language.classify.route import Route


def check_histories(
    *,
    histories: Sequence[str],
    specs: Sequence[str],
    models: str,
    options: Options,
    reading: ReadOptions,
    output: OutputOptions,
    jobs: int,
    workers: str,
    cross_check: str,
    include: Sequence[str],
) -> int:
    """Check histories, print the reports, and return the exit code."""
    use_color(output.color)
    output.require_verdicts(brief=("text", "json", "edn"))
    specs = [*specs, *_levels_of_models(models)] if models else specs
    if not specs:
        raise Mistake(
            "--spec/-s SPEC is missing",
            "name a level such as ser, or a .iso file, here or in pyproject.toml; see "
            "`isocheck check --help`",
        )
    histories = expand_folders(histories, reading.format)
    if output.plot:
        require_plottable(output.plot)
    if len(histories) > 1 or len(specs) > 1:
        for flag, file in (
            ("--minimal", output.minimal),
            ("--html FILE.html", output.html if output.html.endswith(".html") else ""),
            ("--plot", output.plot),
        ):
            if file:
                folder = ", or a folder" if "html" in flag else ""
                raise Mistake(
                    f"{flag} shows a single verdict: name one history and one --spec{folder}"
                )
    if reading.unit == "request":
        for flag, file in (("--minimal", output.minimal), ("--plot", output.plot)):
            if file:
                raise Mistake(f"{flag} shows a single verdict, and --unit request gives two")
        if output.html.endswith(".html"):
            raise Mistake("--html FILE.html shows a single verdict: name a folder")
    if workers and "-" in histories:
        raise Mistake("--workers: the workers cannot read this machine's standard input (-)")
    if histories.count("-") > 1:
        raise Mistake("the standard input (-) can be read only once")
    if output.certificates:
        try:
            os.makedirs(output.certificates, exist_ok=True)
        except OSError as error:
            where = f"--certificate {output.certificates}"
            reason = error.strerror or str(error)
            raise Mistake(f"{where}: cannot create the folder ({reason})") from None
    routes = load_routes(specs, include, options)
    for _, route in routes:
        if not isinstance(route, UnloadedSpec):
            _check_pairs(route, options, cross_check)
    parallel = min(jobs, len(histories))
    if options.threads is None and parallel > 1:
        options = replace(options, threads=max(1, processors() // parallel))
    everything = [
        Job(
            history=history,
            specs=routes,
            reading=reading,
            options=options,
            parallel=parallel,
            output=output,
            form=output.form if output.form in FORMS else "",
            cross_check=cross_check,
            standing=output.form == "text" and not (output.brief or output.quiet),
            simplest=not output.quiet or bool(output.html or output.plot or output.certificates),
        )
        for history in histories
    ]
    remarks = Remarks()
    if output.form == "text":
        warnings = [w for _, r in routes if not isinstance(r, UnloadedSpec) for w in r.warnings]
        remarks.warn_once(map(as_warning, warnings))
    reports: list[Report] = []
    counts: Counter[str] = Counter()
    printed: set[bool] = set()
    show = _printer(output, remarks)
    if output.form in FILES:
        show = reports.append

    def counted(report: Report) -> None:
        counts[report.verdict] += 1
        printed.add(was_printed(lambda: show(report)))
        if output.form not in FILES:
            warn_unsaved(report)

    code = _run(everything, counted, parallel, workers)
    if output.form == "text" and not output.quiet and counts.total() > 1:
        printed.add(was_printed(lambda: print_lines(verdict_counts(counts))))
    if output.form in FILES:
        from isolang.output.text import text_of_report
        from isolang.report.forms import junit, sarif

        form = junit if output.form == "junit" else sarif
        text = form((report, text_of_report(report)) for report in reports)
        printed.add(was_printed(lambda: print_data(text)))
        for report in reports:
            warn_unsaved(report)
    return code if all(printed) else code or EXIT_INPUT


def _run(jobs: Sequence[Job], show: Callable[[Report], None], parallel: int, workers: str) -> int:
    """Run jobs, show their reports in order as soon as they are ready, and return the exit code."""
    codes: set[int] = set()
    with Bar(len(jobs), jobs[0].options.timeout) as bar:
        results = (
            _results_of_workers(jobs, workers, bar) if workers else _results(jobs, parallel, bar)
        )
        for reports in results:
            bar.pause()
            for report in reports:
                show(report)
                codes.add(code_of(report))
            bar.step()
    return exit_code(codes)


def _results_of_workers(jobs: Sequence[Job], url: str, bar: Bar) -> Iterator[list[Report]]:
    from isolang.jobs.workers import Workers, check_in_child

    with Workers(url) as workers:
        bar.phase(workers.workers_phrase())
        folder = os.getcwd()
        for reports in workers.in_order(check_in_child, ((job, folder) for job in jobs)):
            yield reports
            bar.phase(workers.workers_phrase())


def _results(jobs: Sequence[Job], parallel: int, bar: Bar) -> Iterator[list[Report]]:
    limited = any(o.timeout is not None or o.memory is not None for o in (j.options for j in jobs))
    if parallel == 1 and not limited:
        for job in jobs:
            reports: list[Report] = []
            run_job(job, reports.append, bar.phase)
            yield reports
        return
    from concurrent.futures import ThreadPoolExecutor

    from isolang.jobs.child import Children
    from isolang.jobs.pool import run_in_child

    children = Children()
    executor = ThreadPoolExecutor(parallel)
    try:
        futures = [executor.submit(run_in_child, children, job, bar.phase) for job in jobs]
        for future in futures:
            yield future.result()
    finally:
        # Children are killed first, because the threads wait for them. This also happens on Ctrl-C.
        children.close()
        executor.shutdown(cancel_futures=True)


def _printer(output: OutputOptions, remarks: Remarks) -> Callable[[Report], None]:
    if output.quiet:
        return lambda report: _print_errors(report, remarks)
    if output.form == "text" and output.brief:

        def line(report: Report) -> None:
            print_lines(escaped(brief_line(report)))
            remarks.warn_about(report, caveats=False)

        return line
    if output.form == "json":
        return lambda report: print_data(json_text(report.brief() if output.brief else report))
    if output.form == "markdown":
        return _markdown_printer(remarks)
    if output.form in FORMS:
        return lambda report: _draw(report, remarks)
    if output.form == "edn":
        from isolang.output.edn import to_edn

        return lambda report: print_data(
            to_edn(to_builtins(report.brief() if output.brief else report)) + "\n"
        )
    from isolang.output.text import render

    out = console(sys.stdout)
    before: list[Report] = []

    def text(report: Report) -> None:
        warnings = tuple(one for one in report.warnings if one not in report.unsaved)
        # Warnings about unsaved files are printed later.
        shown = replace(report, warnings=warnings)
        render(shown, out, before=before.pop() if before else None)
        before.append(report)
        if output.profile:
            from isolang.output.profile import profile as lines

            print_lines(*lines(report), "")
        sys.stdout.flush()

    return text


def _print_errors(report: Report, remarks: Remarks) -> None:
    """Print a report for ``--quiet``: only errors and a verdict's caveats, on stderr."""
    if report.verdict == "error":
        warn(f"{report.history}: {report.reason}")
    remarks.warn_about(report, caveats=True)


def _markdown_printer(remarks: Remarks) -> Callable[[Report], None]:
    """Return a function that prints reports as Markdown, separated by empty lines."""
    from isolang.report.forms import markdown_of_report

    first = True

    def show(report: Report) -> None:
        nonlocal first
        text = markdown_of_report(report) if report.drawn is None else report.drawn
        print_data(text if first else f"\n{text}")
        first = False
        remarks.warn_about(report, caveats=False)

    return show


def _draw(report: Report, remarks: Remarks) -> None:
    """Print a verdict in the requested form; for an error, print the reason on stderr."""
    if report.drawn is None:
        warn(f"{report.history}: {report.reason}")
    else:
        print_data(report.drawn)
    remarks.warn_about(report, caveats=False)


def _check_pairs(route: Route, options: Options, cross_check: str) -> None:
    """Check the requested encodings and solvers before reading any history."""
    names = (options.encoding, options.solver, options.prune)
    if set(names) == {"auto"} and not cross_check:
        return
    from isolang.errors import SolverError
    from isolang.solvers.registry import choose_pair

    try:
        chosen, _ = choose_pair(*names, route=route)
        if cross_check:
            from isolang.pipeline.crosscheck import partners

            partners(chosen, cross_check, route)
    except SolverError as error:
        raise Mistake(str(error)) from None


def _levels_of_models(text: str) -> list[str]:
    """Return the levels for consistency models given by their names in Elle."""
    there = levels()
    found = [name.strip().removeprefix(":") for name in text.replace(",", " ").split()]
    for name in found:
        if name.lower() not in there:
            meant = nearest_name(name.lower(), there)
            hint = f"the nearest is {meant}" if meant else "`isocheck spec list` lists them"
            raise Mistake(f"--consistency-models: the library has no level {name}", hint)
    return found
