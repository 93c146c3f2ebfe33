"""``isocheck run``: a workload on a real database, recorded and judged."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from isolang.cli.report import Report, code_of, report_of

if TYPE_CHECKING:
    from isolang.options import Options
    from isolang.run.judge import Judged
    from isolang.run.runner import Settings, State


def run(settings: Settings, *, output: str = "text") -> int:
    """Run a workload on a database, and print the verdict.

    Args:
        settings: what to run.
        output: ``text`` or ``json``.

    Returns:
        The exit code.

    Raises:
        IsolangError: it cannot be run; the message says what to do.
    """
    from isolang.run.judge import judge
    from isolang.run.runner import Runner

    runner = Runner(settings)
    line = Line(sys.stderr)
    try:
        runner.start()
        recorded = runner.run(line.show)
    finally:
        line.end()
        runner.close()
    judged = judge(recorded, runner.target)
    report = report_of_run(judged)
    if output == "json":
        print(json.dumps(report), flush=True)
    else:
        _print(report, judged)
    return code_of(report)


def report_of_run(judged: Judged) -> Report:
    """The report of a check, with what is known of the run besides."""
    ran = judged.recorded
    state, settings = ran.state, ran.settings
    return {
        **report_of(str(ran.path), ran.claims, judged.verdict),
        "certificate": None if judged.certificate is None else str(judged.certificate),
        "minimal": None if judged.minimal is None else str(judged.minimal),
        "database": ran.version,
        "isolation": ran.level.name,
        "workload": settings.workload,
        "sessions_at_a_time": settings.sessions,
        "seed": settings.seed,
        "ran_seconds": round(ran.seconds, 3),
        "throughput": round(ran.throughput, 1),
        "abort_rate": round(state.aborted / max(1, state.total()), 4),
        "latency": round(state.latency / max(1, state.committed), 6),
        "errors": dict(state.errors.most_common(8)),
        "interrupted": ran.interrupted,
        "strongest": list(judged.strongest),
        "first_transaction": judged.first,
        "statements": {name: list(sent) for name, sent in judged.statements.items()},
    }


def _print(report: Mapping[str, Any], judged: Judged) -> None:
    from isolang.cli.text import console, render

    render(dict(report), console(sys.stdout))
    if judged.statements:
        print("  What was sent:\n")
        for name, statements in judged.statements.items():
            print(f"  {name}")
            print(*(f"    {one}" for one in statements), sep="\n")
        print()
    ran, state = judged.recorded, judged.recorded.state
    rows = {
        "database": f"{ran.version}, {ran.level.name} (claims {ran.claims})",
        "workload": f"{ran.settings.workload}, {ran.settings.sessions} sessions, "
        f"seed {ran.settings.seed}",
        "ran": f"{ran.seconds:.1f} s, {state.committed:,} committed ({ran.throughput:,.0f}/s), "
        f"{state.aborted:,} aborted, {state.maybe:,} maybe"
        + (" (interrupted)" if ran.interrupted else ""),
        "held": ", ".join(judged.strongest) or "no level of the library",
        "history": str(ran.path),
        "certificate": str(judged.certificate or "none"),
    }
    if judged.minimal is not None:
        rows["smallest"] = str(judged.minimal)
    for name, said in rows.items():
        print(f"  {name:<13}{said}")


class Line:
    """The line that tells how a run goes; nothing where nobody looks."""

    def __init__(self, stream: IO[str]) -> None:
        """Write to a stream, if that is a terminal."""
        self._stream = stream
        self._shown = stream.isatty()
        self._wrote = False

    def show(self, state: State) -> None:
        """Say how it goes now."""
        if not self._shown:
            return
        passed = time.monotonic() - state.began
        look = state.look
        verdict = "" if look is None else f"{look.outcome} up to {look.transactions:,}"
        text = (
            f"{passed:4.0f} s  {state.workload:<14} {state.committed:,} committed  "
            f"{state.aborted:,} aborted  {state.maybe} maybe  "
            f"{state.committed / max(passed, 0.1):,.0f}/s  "
            f"{1000 * state.latency / max(1, state.committed):.1f} ms  {verdict}"
        )
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()
        self._wrote = True

    def end(self) -> None:
        """Clear it."""
        if self._wrote:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._wrote = False


def command(
    *,
    output: str,
    options: Options,
    keys: int | None,
    operations: int | None,
    **chosen: Any,
) -> int:
    """Run with the options of the command line."""
    from isolang.run.runner import Settings
    from isolang.run.workloads import Shape

    shape = Shape(keys=keys, operations=operations)
    return run(Settings(shape=shape, seed=options.seed, **chosen), output=output)
