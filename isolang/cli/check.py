"""``isocheck check``: histories against specs."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from isolang.cli.choices import levels, near, number
from isolang.cli.parameters import (
    OUTPUT,
    Color,
    HistoryPaths,
    Include,
    Mistake,
    Plugins,
    Specs,
    one_of,
)
from isolang.cli.plot import Plot, require_plottable
from isolang.cli.progress import Bar
from isolang.cli.several import (
    Remarks,
    brief,
    expanded,
    summary,
    warn_unsaved,
    warning,
    was_printed,
)
from isolang.jobs.job import Job, Unloaded, run_job
from isolang.jobs.routes import load_routes
from isolang.machine import processors
from isolang.options import LIMITS, Options, ReadOptions
from isolang.output.records import EXIT_INPUT, Report, code_of, exit_code, json_text
from isolang.output.terminal import console, escaped, print_data, print_lines, use_color, warn

if TYPE_CHECKING:
    from isolang.language.classify.route import Route


# Forms of a single verdict; what makes them is imported where one is asked for.
_FORMS: Final = ("dot", "graphml", "markdown", "mermaid", "perfetto")
# Forms of all verdicts together.
_FILES: Final = ("junit", "sarif")


def check(
    *,
    histories: HistoryPaths,
    options: Options,
    reading: ReadOptions,
    specs: Specs = [],  # noqa: B006 - Typer's way to say that it may be left out
    models: Annotated[
        str,
        typer.Option(
            "--consistency-models", metavar="NAMES", show_default=False,
            help="Levels by Elle's names, with commas between.",
        ),
    ] = "",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="How to print.", rich_help_panel=OUTPUT,
            **one_of("text", "json", "edn", *_FILES, *_FORMS),
        ),
    ] = "text",
    all_anomalies: Annotated[
        bool,
        typer.Option(
            "--all", rich_help_panel=OUTPUT,
            help="Also list every kind of anomaly that the history has, with an example of each.",
        ),
    ] = False,
    one_line: Annotated[
        bool, typer.Option("--brief", help="One line for each verdict.", rich_help_panel=OUTPUT)
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print no verdicts: the exit code says it.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    color: Color = "auto",
    profile: Annotated[
        bool,
        typer.Option(
            "--profile", help="Say where the time went (JSON has it).", rich_help_panel=OUTPUT
        ),
    ] = False,
    certificates: Annotated[
        str,
        typer.Option(
            "--certificate", metavar="DIR", help="Save certificates here.", rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = "",
    minimal: Annotated[
        str,
        typer.Option(
            "--minimal", metavar="FILE", rich_help_panel=OUTPUT, show_default=False,
            help="Write the smallest part found that is still invalid (EDN).",
        ),
    ] = "",
    page: Annotated[
        str,
        typer.Option(
            "--html", metavar="FILE|DIR", rich_help_panel=OUTPUT, show_default=False,
            help="Write the verdict as a page: FILE.html, or one for each in a folder.",
        ),
    ] = "",
    plot: Plot = "",
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", metavar="N", help="Histories at a time.", rich_help_panel=LIMITS,
            parser=number(int, 1, 256),
        ),
    ] = 1,
    cross_check: Annotated[
        str,
        typer.Option(
            "--cross-check", metavar="[PAIR|all]", show_default=False,
            rich_help_panel="How it is decided",
            help="Ask other pairs, too: one that shares nothing with the first, all, or "
            "encoding/solver/prune.",
        ),
    ] = "",
    plugin: Plugins = [],  # noqa: B006
    include: Include = [],  # noqa: B006 - Typer's way to say that it may be left out
) -> int:  # fmt: skip
    """Check histories against isolation levels."""
    use_color(color)
    if quiet and output != "text":
        raise Mistake(f"--quiet prints no verdicts (got --output {output})")
    if one_line and output not in ("text", "json", "edn"):
        raise Mistake(f"--brief is of text, json and edn (got --output {output})")
    specs = [*specs, *_models(models)] if models else specs
    if not specs:
        raise Mistake(
            "--spec/-s SPEC is missing",
            "a level such as ser, or a .iso file, here or in pyproject.toml; see "
            "`isocheck check --help`",
        )
    histories = expanded(histories, reading.format)
    if minimal and (len(histories) > 1 or len(specs) > 1):
        raise Mistake("--minimal writes one part: give it one history and one --spec")
    if page.endswith(".html") and (len(histories) > 1 or len(specs) > 1):
        raise Mistake("--html FILE.html is one page: give one history and one --spec, or a folder")
    if plot:
        require_plottable(plot)
        if len(histories) > 1 or len(specs) > 1:
            raise Mistake("--plot draws one verdict: give one history and one --spec")
    if histories.count("-") > 1:
        raise Mistake("the standard input (-) can be read once")
    if certificates:
        try:
            os.makedirs(certificates, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise Mistake(f"--certificate {certificates}: cannot be made ({reason})") from None
    routes = load_routes(specs, include, options)
    for _, route in routes:
        if not isinstance(route, Unloaded):
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
            certificates=certificates,
            minimal=minimal,
            page=page,
            plot=plot,
            form=output if output in _FORMS else "",
            cross_check=cross_check,
            all_anomalies=all_anomalies,
            standing=output == "text" and not (one_line or quiet),
            simplest=not quiet or bool(page or plot or certificates),
        )
        for history in histories
    ]
    remarks = Remarks()
    if output == "text":
        warnings = [w for _, r in routes if not isinstance(r, Unloaded) for w in r.warnings]
        remarks.warn_once(map(warning, warnings))
    reports: list[Report] = []
    counts: Counter[str] = Counter()
    printed: set[bool] = set()
    show = _printer(output, profile, one_line, quiet, remarks)
    if output in _FILES:
        show = reports.append

    def counted(report: Report) -> None:
        counts[report.verdict] += 1
        printed.add(was_printed(lambda: show(report)))
        if output not in _FILES:
            warn_unsaved(report)

    code = _run(everything, counted, parallel)
    if output == "text" and not quiet and counts.total() > 1:
        printed.add(was_printed(lambda: print_lines(summary(counts))))
    if output in _FILES:
        from isolang.output.text import text_of_report
        from isolang.report.forms import junit, sarif

        form = junit if output == "junit" else sarif
        text = form((report, text_of_report(report)) for report in reports)
        printed.add(was_printed(lambda: print_data(text)))
        for report in reports:
            warn_unsaved(report)
    return code if all(printed) else code or EXIT_INPUT


def _run(jobs: Sequence[Job], show: Callable[[Report], None], parallel: int) -> int:
    """Run jobs, print their reports in order as they come, and give the exit code."""
    codes: set[int] = set()
    with Bar(len(jobs), jobs[0].options.timeout) as bar:
        for reports in _results(jobs, parallel, bar):
            bar.pause()
            for report in reports:
                show(report)
                codes.add(code_of(report))
            bar.step()
    return exit_code(codes)


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
    from isolang.jobs.pool import run_apart

    children = Children()
    executor = ThreadPoolExecutor(parallel)
    try:
        futures = [executor.submit(run_apart, children, job, bar.phase) for job in jobs]
        for future in futures:
            yield future.result()
    finally:
        # Also on Ctrl-C: first the children, else their threads would wait for them.
        children.close()
        executor.shutdown(cancel_futures=True)


def _models(text: str) -> list[str]:
    """The levels that Elle's names mean.

    Raises:
        Mistake: the library has no level of that name.
    """
    there = levels()
    found = [name.strip().removeprefix(":") for name in text.replace(",", " ").split()]
    for name in found:
        if name.lower() not in there:
            meant = near(name.lower(), there)
            hint = f"the nearest is {meant}" if meant else "`isocheck spec list` lists them"
            raise Mistake(f"--consistency-models: the library has no {name}", hint)
    return found


def _printer(
    output: str, profile: bool, one_line: bool, quiet: bool, remarks: Remarks
) -> Callable[[Report], None]:
    if quiet:
        return lambda report: _errors_only(report, remarks)
    if output == "text" and one_line:

        def line(report: Report) -> None:
            print_lines(escaped(brief(report)))
            remarks.warn_about(report, caveats=False)

        return line
    if output == "json":
        return lambda report: print_data(json_text(report.brief() if one_line else report))
    if output == "markdown":
        return _paragraphs(remarks)
    if output in _FORMS:
        return lambda report: _draw(report, remarks)
    if output == "edn":
        from isolang.output.edn import to_edn

        return lambda report: print_data(
            to_edn(to_builtins(report.brief() if one_line else report)) + "\n"
        )
    from isolang.output.text import render

    out = console(sys.stdout)
    before: list[Report] = []

    def text(report: Report) -> None:
        warnings = tuple(one for one in report.warnings if one not in report.unsaved)
        shown = replace(report, warnings=warnings)  # what follows says what was not saved
        render(shown, out, before=before.pop() if before else None)
        before.append(report)
        if profile:
            from isolang.output.profile import profile as lines

            print_lines(*lines(report), "")
        sys.stdout.flush()

    return text


def _errors_only(report: Report, remarks: Remarks) -> None:
    """Say what cannot be used, which is no verdict, and what changes the meaning of one."""
    if report.verdict == "error":
        warn(f"{report.history}: {report.reason}")
    remarks.warn_about(report, caveats=True)


def _paragraphs(remarks: Remarks) -> Callable[[Report], None]:
    """Print each verdict as Markdown, also those that there are not, with an empty line between."""
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
    """Print the form that was asked for; where there is no verdict, say why not."""
    if report.drawn is None:
        warn(f"{report.history}: {report.reason}")
    else:
        print_data(report.drawn)
    remarks.warn_about(report, caveats=False)


def _check_pairs(route: Route, options: Options, cross_check: str) -> None:
    """See that the pairs exist, are installed and apply, before any history is read."""
    wanted = (options.encoding, options.solver, options.prune)
    if set(wanted) == {"auto"} and not cross_check:
        return
    from isolang.errors import SolverError
    from isolang.solvers.registry import choose_pair

    try:
        chosen, _ = choose_pair(*wanted, route=route)
        if cross_check:
            from isolang.pipeline.crosscheck import partners

            partners(chosen, cross_check, route)
    except SolverError as error:
        raise Mistake(str(error)) from None
