"""``isocheck check``: histories against specs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.cli.arguments import UsageProblem
from isolang.cli.job import Job, run_job
from isolang.cli.progress import Bar
from isolang.cli.report import EXIT_INPUT, Report, code_of, exit_code
from isolang.errors import IsolangError
from isolang.options import Options, ReadOptions
from isolang.processors import processors

if TYPE_CHECKING:
    from isolang.language.classify.route import Route


def load_routes(specs: Sequence[str], include: Sequence[str]) -> tuple[tuple[str, Route], ...]:
    """Load specs and route them, before any history is read: a typo should not cost an hour.

    Raises:
        SpecError: the first one that cannot be used.
    """
    from isolang.language.classify.route import route
    from isolang.language.load import load_spec

    return tuple((name, route(load_spec(name, include_path=include))) for name in specs)


def run(jobs: Sequence[Job], *, output: str, parallel: int, profile: bool = False) -> int:
    """Run jobs, print their reports in order as they come, and give the exit code."""
    show = _printer(output, profile)
    codes: set[int] = set()
    with Bar(len(jobs)) as bar:
        for reports in _results(jobs, parallel, bar):
            bar.pause()
            for report in reports:
                show(report)
                codes.add(code_of(report))
            bar.step()
    return exit_code(codes)


def _results(jobs: Sequence[Job], parallel: int, bar: Bar) -> Iterator[list[Report]]:
    capped = any(job.options.timeout is not None or job.options.memory is not None for job in jobs)
    if parallel == 1 and not capped:
        for job in jobs:
            reports: list[Report] = []
            run_job(job, reports.append, bar.phase)
            yield reports
        return
    from isolang.cli.pool import Pool

    pool = Pool()
    executor = ThreadPoolExecutor(parallel)
    try:
        futures: list[Future[list[Report]]] = [
            executor.submit(pool.run, job, bar.phase) for job in jobs
        ]
        for future in futures:
            yield future.result()
    finally:
        # Also on Ctrl-C: first the children, else their threads would wait for them.
        pool.close()
        executor.shutdown(cancel_futures=True)


def _printer(output: str, profile: bool) -> Callable[[Report], None]:
    if output == "json":
        return lambda report: print(json.dumps(report), flush=True)
    if output == "edn":
        from isolang.cli.edn import to_edn

        return lambda report: print(to_edn(report), flush=True)
    from isolang.cli.text import console, render

    out = console(sys.stdout)

    def text(report: Report) -> None:
        render(report, out)
        if profile:
            from isolang.cli.profile import profile as lines

            print(*lines(report), "", sep="\n")
        sys.stdout.flush()

    return text


def check(
    *,
    specs: Sequence[str],
    histories: Sequence[str],
    include: Sequence[str],
    output: str,
    reading: ReadOptions,
    options: Options,
    certificates: str,
    minimal: str,
    jobs: int,
    profile: bool = False,
    cross_check: str = "",
) -> int:
    """Check, and give the exit code; see ``isocheck check --help`` for the arguments.

    Raises:
        UsageProblem: options that do not go together.
    """
    if minimal and (len(histories) > 1 or len(specs) > 1):
        raise UsageProblem("--minimal writes one part: give it one history and one --spec")
    if histories.count("-") > 1:
        raise UsageProblem("the standard input (-) can be read once")
    if certificates:
        try:
            os.makedirs(certificates, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageProblem(f"--certificate {certificates}: cannot be made ({reason})") from None
    try:
        routes = load_routes(specs, include)
    except IsolangError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    for _, route in routes:
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
            certificates=certificates,
            minimal=minimal,
            cross_check=cross_check,
        )
        for history in histories
    ]
    if output == "text":
        for line in dict.fromkeys(warning for _, route in routes for warning in route.warnings):
            print(f"warning: {line}", file=sys.stderr)
    with suppress(BrokenPipeError):
        return run(everything, output=output, parallel=parallel, profile=profile)
    _forget_stdout()
    return EXIT_INPUT


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
            from isolang.crosscheck import partners

            partners(chosen, cross_check, route)
    except SolverError as error:
        raise UsageProblem(str(error)) from None


def _forget_stdout() -> None:
    """Nobody reads on; without this, Python would complain once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
