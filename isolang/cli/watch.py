"""``isocheck watch``: a history that somebody is still writing, judged as it grows."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from isolang.cli.choices import number
from isolang.cli.parameters import Output
from isolang.cli.progress import StatusLine
from isolang.output.report import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from isolang.output.terminal import data, say, visible

if TYPE_CHECKING:
    from isolang.watch import Report, Round, Stream, Watch

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
        typer.Argument(metavar="PATH...", help="Logs that grow, folders of them, or - (stdin)."),
    ],
    spec: Annotated[
        str, typer.Option("--spec", "-s", metavar="SPEC", help="A level, or a .iso file.")
    ],
    format: Annotated[  # noqa: A002
        str, typer.Option("--from", metavar="FORMAT", help="The format of the logs.")
    ] = "auto",
    until_idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", parser=number(float, 0, 1e8), show_default=False,
            help="End when nothing new has come for so long; 0: at the end of what is there. "
            "Without, Ctrl-C ends it.",
        ),
    ] = None,
    state: Annotated[
        str,
        typer.Option(
            metavar="DIR", show_default=False,
            help="Keep the certificate there, a part for each cut; `isocheck verify DIR LOG` "
            "checks it.",
        ),
    ] = "",
    round: Annotated[  # noqa: A002
        int, typer.Option(
            metavar="N", parser=number(int, 1, 1_000_000),
            help="Transactions that are judged at a time.",
        ),
    ] = 1000,
    most: Annotated[
        int,
        typer.Option(
            metavar="N", parser=number(int, 1, 100_000_000),
            help="Transactions that may be held at once; where more would have to be, a "
            "violation is only suspected.",
        ),
    ] = 200_000,
    clock_error: Annotated[
        str,
        typer.Option(
            metavar="DURATION", show_default=False,
            help="How far the clocks of two clients may differ, such as 5ms.",
        ),
    ] = "",
    output: Output = "text",
) -> int:  # fmt: skip
    """Judge a history while it is being written, in bounded memory."""
    from isolang.errors import HistoryError
    from isolang.history.clock_error import nanoseconds
    from isolang.watch import Stream, Watch, position_in
    from isolang.watch.chain import NAME

    error = nanoseconds(clock_error) if clock_error else 0
    with ExitStack() as open_:
        if state:
            folder = Path(state)
        else:
            folder = Path(tempfile.mkdtemp(prefix="isolang-watch-"))
            open_.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        position = position_in(folder / NAME)
        spool = None
        if "-" in paths:
            if position is not None:
                raise HistoryError(
                    "-: what came through a pipe is gone; a watch of it cannot go on"
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
        watched = Watch(
            spec, stream=stream, folder=folder, sources=paths,
            round=round, clock_error=error, most=most,
        )  # fmt: skip
        line = StatusLine(sys.stderr, _how_it_goes)
        open_.callback(line.end)
        report = _followed(watched, stream, line, output=output)
    return _told(report, watched, state=state, output=output)


def _followed(
    watched: Watch, stream: Stream, line: StatusLine[[Round, int]], *, output: str
) -> Report:
    """Read until the stream ends, a violation is found, or Ctrl-C ends it."""
    batches = iter(stream)
    while watched.report is None:
        try:
            batch = next(batches)
            for found in watched.feed(batch):
                _show(found, line, waiting=batch.waiting, output=output)
        except KeyboardInterrupt:
            if stream.ended:
                raise
            stream.stop()
    return watched.report


class WatchLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one line of ``--output json`` says: of a round, or in the end of the whole.

    Attributes:
        outcome: ``valid`` so far, or what was found: ``invalid``, ``suspected``, ``unknown``.
        ended: whether this is the last line.
        transactions: how many have been seen, those in flight left out.
        parts: how many parts the certificate has.
        window: how many transactions are held in memory.
        put_back: how many cuts were put back for this round.
        waiting: bytes that were read and are not judged yet.
        holding: what keeps the window long, in words.
        note: what the outcome rests on, in words.
        places: where the transactions of a violation stand: ``file:line``.
        verdict: the violation, or why nothing is known, as text.
    """

    outcome: str
    ended: bool
    transactions: int
    parts: int
    window: int = 0
    put_back: int = 0
    waiting: int = 0
    holding: str = ""
    note: str = ""
    places: tuple[str, ...] = ()
    verdict: str | None = None


def _show(found: Round, line: StatusLine[[Round, int]], *, waiting: int, output: str) -> None:
    if output == "json":
        said = WatchLine(
            outcome=found.outcome, ended=False, transactions=found.seen, parts=found.parts,
            window=found.kept, put_back=found.put_back, waiting=waiting, holding=found.holding,
        )  # fmt: skip
        data(msgspec.json.encode(said).decode() + "\n")
    else:
        line.show(found, waiting)


def _how_it_goes(found: Round, waiting: int) -> str:
    held = f"; {found.holding}" if found.holding else ""
    return visible(
        f"{found.seen:,} transactions, {found.kept:,} in the window, {found.parts:,} parts, "
        f"{waiting:,} bytes behind: {found.outcome}{held}"
    )


def _told(report: Report, watched: Watch, *, state: str, output: str) -> int:
    verdict = report.verdict
    if output == "json":
        line = WatchLine(
            outcome=report.outcome, ended=True, transactions=report.seen, parts=report.parts,
            note=report.note, places=report.places,
            verdict=None if verdict is None else str(verdict),
        )  # fmt: skip
        data(msgspec.json.encode(line).decode() + "\n")
        return _EXITS[report.outcome]
    lines = [
        f"{report.outcome.upper()}  {watched.plan.spec.name}",
        f"  {report.seen:,} transactions in {report.parts:,} parts, each certified by itself"
        if report.outcome == "valid"
        else f"  {report.seen:,} transactions seen",
    ]
    if report.note:
        lines.append(f"  {report.note}")
    if verdict is not None:
        lines += ["", *(f"  {line}" for line in str(verdict).splitlines()), ""]
    lines += [f"  in the log: {place}" for place in report.places]
    lines += [
        f"  assumed: no other transaction writes {value!r} to {key!r}"
        for key, value in report.assumed
    ]
    if state and report.outcome == "valid":
        lines.append(f"  isocheck verify {state} LOG checks it again")
    say(*(visible(line) for line in lines))
    return _EXITS[report.outcome]
