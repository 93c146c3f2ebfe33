"""Implements ``isocheck watch``, which checks a history as it grows."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from isolang.cli.choices import duration, number
from isolang.cli.parameters import OneSpec, SelectedOptions
from isolang.cli.progress import StatusLine
from isolang.cli.watch_course import Lag, Progress
from isolang.declared import About
from isolang.options import OUTPUT, OutputOptions
from isolang.output.records import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from isolang.output.terminal import escaped, print_data, print_lines, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolang.watch import Round, Stream, Watch, WatchReport

_PACE: Final = 2.0  # the seconds after which a growing log is checked despite few new transactions
_NAMED: Final = 3  # the maximum number of files to name
_SHOWN: Final = 12  # the maximum number of assumed values to print
_EXITS: Final = {
    "valid": EXIT_VALID,
    "invalid": EXIT_INVALID,
    "suspected": EXIT_UNKNOWN,
    "unknown": EXIT_UNKNOWN,
}


def watch(
    *,
    paths: Annotated[
        list[str],
        typer.Argument(metavar=""
        "PATH...", help="Growing logs, folders of them, or - for standard input."),
    ],
    spec: OneSpec,
    output: Annotated[
        OutputOptions,
        SelectedOptions(
            forms=("text", "json"),
            about={
                "html": About(
                    "Write an HTML page with the progress every few seconds, and with the "
                    "violation at the end.",
                    "FILE", OUTPUT,
                ),
            },
        ),
    ],
    format: Annotated[  # noqa: A002
        str,
        typer.Option(
            "--from", metavar="FORMAT",
            help="The format of the logs; by default detected from their content.",
        ),
    ] = "auto",
    until_idle: Annotated[
        float | None,
        typer.Option(
            metavar="TIME", parser=duration, show_default=False,
            help="End after this time without new transactions; 0: at the end of the existing "
            "logs. By default the watch runs until Ctrl-C.",
        ),
    ] = None,
    state: Annotated[
        str,
        typer.Option(
            metavar="DIR", show_default=False,
            help="Save the certificate in this folder, one part for each cut, and resume from "
            "there; `isocheck verify DIR LOG` checks it.",
        ),
    ] = "",
    round: Annotated[  # noqa: A002
        int, typer.Option(
            metavar="N", parser=number(int, 1, 1_000_000),
            help="Check N transactions at a time.",
        ),
    ] = 1000,
    most: Annotated[
        int,
        typer.Option(
            metavar="N", parser=number(int, 1, 100_000_000),
            help="The most transactions to keep in memory; if a violation would need more, the "
            "watch only suspects it.",
        ),
    ] = 200_000,
    clock_error: Annotated[
        str,
        typer.Option(
            metavar="DURATION", show_default=False,
            help="How far the clocks of two clients may differ, such as 5ms.",
        ),
    ] = "",
    memory: Annotated[
        int, typer.Option(
            metavar="MB", parser=number(int, 64, 10_000_000),
            help="Memory limit; the last values of the keys may use half of it, and the rest goes "
            "to disk.",
        ),
    ] = 512,
    grace: Annotated[
        str, typer.Option(
            metavar="DURATION",
            help="In a log that grows: how long to wait for an unknown outcome, or for the write "
            "of a value that was read.",
        ),
    ] = "30s",
    initial_value: Annotated[
        list[str] | None, typer.Option(
            "--initial-value", metavar="V", show_default=False,
            help="The initial value of all keys (V), or of one key (KEY=V), instead of nil.",
        ),
    ] = None,
    unwritten_initial: Annotated[
        bool, typer.Option(
            "--unwritten-initial",
            help="Take a value that is read but never written as the initial value; at most one "
            "for each key.",
        ),
    ] = False,
    to_the_end: Annotated[
        bool, typer.Option(
            "--to-the-end",
            help="Go on after a violation, but ignore the reads of its transactions."
        ),
    ] = False,
    metrics: Annotated[
        str, typer.Option(
            "--metrics", metavar="[HOST:]PORT", show_default=False,
            help="Serve the metrics of the watch to Prometheus, under /metrics.",
        ),
    ] = "",
) -> int:  # fmt: skip
    """Check a history while it is being written, in bounded memory."""
    from isolang.errors import HistoryError
    from isolang.history.clock_error import nanoseconds
    from isolang.watch import Stream, Watch, position_in

    error = nanoseconds(clock_error) if clock_error else 0
    with ExitStack() as open_:
        if state:
            folder = Path(state)
        else:
            folder = Path(tempfile.mkdtemp(prefix="isolang-watch-"))
            open_.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        position = position_in(folder)
        spool = None
        if "-" in paths:
            if (folder / "input").exists():
                raise HistoryError(
                    "-: cannot resume a watch of the standard input, which cannot be read again"
                )
            spool = open_.enter_context((folder / "input").open("x+b"))
        stream = Stream(
            [sys.stdin.buffer if path == "-" else path for path in paths],
            format=format,
            follow=until_idle != 0,
            until_idle=until_idle or None,
            clock_error=error,
            spool=spool,
            resume=position,
        )
        open_.callback(stream.close)
        _warn_next_to_runs(paths)
        _warn_of_missing(paths, until_idle)
        follows = until_idle != 0
        watched = Watch(
            spec, stream=stream, folder=folder, sources=paths, round=round, clock_error=error,
            most=most, memory=memory * 500_000, to_the_end=to_the_end,
            initial_value=tuple(initial_value or ()), unwritten_initial=unwritten_initial,
            pace=_PACE if follows else None,
            grace_seconds=nanoseconds(grace) / 1e9 if follows else 0.0,
        )  # fmt: skip
        open_.callback(watched.close)
        course = Progress(
            ", ".join(paths), watched.plan.spec.name, page=output.html, before=watched.seen
        )
        line = StatusLine(sys.stderr, course.line)
        open_.callback(line.end)
        if metrics:
            from isolang.cli.watch_metrics import serve_metrics

            warn(f"metrics: {open_.enter_context(serve_metrics(course, metrics))}")
        report = _follow(watched, stream, course, line, output=output.form)
        # Without --state, the folder with the copy of standard input is deleted, so positions refer
        # to standard input instead.
        if not state:
            copy, original = f"{folder / 'input'}:", "the standard input, line "
            places = tuple(place.replace(copy, original) for place in report.places)
            report = msgspec.structs.replace(report, places=places)
        files = _save_violation(report, folder) if state else []
        if output.html:
            files += _save_page(report, course)
    return _print_report(report, watched, course, state=state, output=output.form, files=files)


def _warn_of_missing(paths: Sequence[str], until_idle: float | None) -> None:
    """Say which logs are not there yet, because the watch waits for them without a word."""
    for path in paths:
        if path != "-" and not os.path.exists(path):
            ends = f"; the watch ends after {until_idle:g} s without it" if until_idle else ""
            warn(escaped(f"{path}: there is no such file yet; isocheck waits for it{ends}"))


def _warn_next_to_runs(paths: Sequence[str]) -> None:
    """Warn about files that are ignored because their folder contains a run's history."""
    from isolang.watch.stream.folder import run_and_other_logs

    for folder in map(Path, paths):
        if not folder.is_dir() or (found := run_and_other_logs(folder)) is None:
            continue
        run, others = found
        names = ", ".join(path.name for path in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        warn(
            escaped(
                f"{folder}: only {run.name}, the history of a run, is read; {names}{more} ignored"
            )
        )


def _follow(
    watched: Watch,
    stream: Stream,
    course: Progress,
    line: StatusLine[[Round, Lag]],
    *,
    output: str,
) -> WatchReport:
    """Feed the stream to the watch until the watch ends, and return its report.

    Ctrl-C stops the stream, and the watch ends once it has processed the data already read.
    """
    batches = iter(stream)
    while watched.report is None:
        try:
            batch = next(batches)
            for found in watched.feed(batch):
                lag = Lag(bytes=batch.waiting + stream.behind, holding=batch.holding)
                course.add(found, lag)
                if output == "json":
                    print_data(msgspec.json.encode(course.record()).decode() + "\n")
                else:
                    line.show(found, lag)
        except KeyboardInterrupt:
            if stream.ended:
                raise
            stream.stop()
    return watched.report


def _save_violation(report: WatchReport, folder: Path) -> list[str]:
    """Save the transactions of a violation and their certificate in the chain's folder.

    Return a line for each saved file. Errors are only printed, because they do not change the
    verdict.
    """
    from isolang.errors import IsolangError
    from isolang.watch.violation import save_violation

    try:
        if (saved := save_violation(report, folder)) is not None:
            return [f"history {saved[0]}", f"certificate {saved[1]}"]
    except (IsolangError, OSError) as error:
        warn(escaped(f"cannot save the violation: {error}"))
    return []


def _save_page(report: WatchReport, course: Progress) -> list[str]:
    """Save the final page, and return a line about it.

    Errors are only printed, because they do not change the verdict.
    """
    from isolang.errors import IsolangError

    try:
        return [course.save_end(report)]
    except (IsolangError, OSError) as error:
        warn(escaped(f"cannot save the page: {error}"))
    return []


def _print_report(
    report: WatchReport,
    watched: Watch,
    course: Progress,
    *,
    state: str,
    output: str,
    files: list[str],
) -> int:
    from isolang.history.values import value_text

    verdict = report.verdict
    if output == "json":
        print_data(msgspec.json.encode(course.record(report)).decode() + "\n")
        return _EXITS[report.outcome]
    parts = "1 part" if report.parts == 1 else f"{report.parts:,} parts"
    lines = [
        f"{report.outcome.upper()}  {watched.plan.spec.name}",
        f"  {report.seen:,} transactions in {parts}, each certified by itself"
        if report.outcome == "valid"
        else f"  {report.seen:,} transactions seen",
    ]
    if report.violations > 1:
        lines.append(f"  {report.violations:,} violations; the first one:")
    if report.given_up:
        some = ", ".join(report.given_up_at)
        lines.append(
            f"  {report.given_up:,} transactions of unknown outcome left the window, because "
            f"no transaction had read from them{': ' if some else ''}{some}"
        )
    if report.note:
        lines.append(f"  {report.note}")
    if verdict is not None:
        lines += ["", *(f"  {line}" for line in str(verdict).splitlines()), ""]
    lines += [f"  in the log: {place}" for place in report.places]
    lines += [
        f"  assumed: no other transaction writes {value_text(value, '')} to {value_text(key, '')}"
        for key, value in report.assumed[:_SHOWN]
    ]
    if len(report.assumed) > _SHOWN:
        lines.append(f"  assumed: the same for {len(report.assumed) - _SHOWN:,} more values")
    lines += [f"  {name}" for name in files]
    if state and report.outcome == "valid":
        lines.append(f"  to check it again: isocheck verify {state} LOG")
    print_lines(*(escaped(line) for line in lines))
    return _EXITS[report.outcome]
