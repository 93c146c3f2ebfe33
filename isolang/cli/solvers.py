"""Implements ``isocheck solvers``, which runs all encoding-solver pairs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from isolang.cli import choices
from isolang.cli.parameters import (
    HistoryPaths,
    Include,
    Mistake,
    OneSpec,
    Plugins,
    SelectedOptions,
    accept_names,
)
from isolang.cli.plot import require_plottable, time_against_size
from isolang.cli.progress import Bar
from isolang.declared import About
from isolang.jobs.child import Children
from isolang.jobs.contest import ContestEntry, run
from isolang.jobs.routes import load_route
from isolang.limits import Deadline
from isolang.options import (
    LIMITS,
    LONGEST,
    OUTPUT,
    Options,
    OutputOptions,
    ReadOptions,
)
from isolang.output.contest import ContestRow
from isolang.output.records import EXIT_INPUT, EXIT_REJECTED, EXIT_VALID, json_text
from isolang.output.terminal import escaped, escaped_record, print_data, print_lines, warn

if TYPE_CHECKING:
    from isolang.language.classify.route import Route
    from isolang.solvers.registry import Pair

COLUMNS: Final = ContestRow.__struct_fields__
_SHOWN: Final = (
    "encoding", "solver", "pruned", "verdict", "CPU", "spread", "seconds", "prune", "encode",
    "solve", "variables", "clauses", "edges", "conflicts", "MB",
)  # fmt: skip
_WIDE: Final = 150  # the minimum width of the table, because wrapped rows would be unreadable
_TIMEOUT: Final = About(
    "Limit of processor time for each run, in seconds, from the pre-pass to the answer.", "S",
    LIMITS, bounds=(0, LONGEST), above=True,
)  # fmt: skip


def solvers(
    *,
    histories: HistoryPaths,
    spec: OneSpec,
    options: Annotated[
        Options,
        SelectedOptions(
            "memory", "seed", about={"timeout": _TIMEOUT}, timeout=60.0
        ),
    ],
    reading: ReadOptions,
    output: Annotated[
        OutputOptions,
        SelectedOptions(
            forms=("text", "json", "csv"),
            about={
                "plot": About("Plot time against size (.svg, .png or .pdf).", "FILE", OUTPUT),
                "html": About(
                    "Write an HTML page with a plot of time against size and a sortable "
                    "table.", "FILE", OUTPUT
                ),
            },
        ),
    ],
    only: Annotated[
        list[str],
        typer.Option(
            "--only", metavar="NAME",
            help="Run only pairs with this encoding, solver or encoding/solver; may be repeated.",
        ),
    ] = [],  # noqa: B006
    prune: Annotated[
        list[str],
        typer.Option(
            "--prune", help="Run with this stage of pruning, by default fixpoint; may be repeated.",
            **accept_names(lambda: choices.pruning_stages()[1:], "STAGE"),
        ),
    ] = [],  # noqa: B006
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat", metavar="N", parser=choices.number(int, 1, 10_000),
            help="Run each pair N times, and report the median, and the spread of the others.",
        ),
    ] = 1,
    total: Annotated[
        float | None,
        typer.Option(
            "--total", metavar="TIME", parser=choices.duration, show_default=False,
            help="Time limit for all runs together, on the clock. Each run may take an equal share "
            "of the remaining time.",
        ),
    ] = None,
    plugin: Plugins = [],  # noqa: B006
    include: Include = [],  # noqa: B006
) -> int:  # fmt: skip
    """Compare all encodings and solvers on the same histories."""
    if output.plot:
        require_plottable(output.plot)
    route = load_route(spec, include)
    pairs, missing = _chosen_pairs(only, prune or ["fixpoint"], route)
    if not pairs and not missing:
        raise Mistake(f"--only {' '.join(only)}: no pair has this name for {spec}")
    rows: list[ContestRow] = []
    children = Children()
    shown = _Shown(output.form, len(histories) * len(pairs))
    deadline = Deadline(total)
    waiting = len(histories) * len(pairs)
    try:
        with Bar(waiting, total) as bar:
            for history in histories:
                of_history: list[ContestRow] = []
                for pair in pairs:
                    entry = ContestEntry(
                        history=history,
                        spec=spec,
                        route=route,
                        pair=pair,
                        options=options,
                        reading=reading,
                    )
                    runs = _runs(_share(deadline, waiting), children, entry, repeat, bar)
                    of_history.append(_middle(runs) if runs else _not_run(entry))
                    waiting -= 1
                    bar.step()
                    bar.pause()
                    shown.add(of_history[-1], ran=True)
                for encoding, solver, why in missing:
                    of_history.append(
                        ContestRow(
                            history=history, spec=spec, encoding=encoding, solver=solver,
                            verdict="not installed", detail=why,
                        )
                    )  # fmt: skip
                    shown.add(of_history[-1], ran=False)
                shown.end(of_history)
                rows += of_history
    finally:
        children.close()
    messages = disagreements(rows)
    _draw(rows, messages, output)
    warn(*(f"isocheck: {message}" for message in messages))
    if messages:
        return EXIT_REJECTED
    return EXIT_INPUT if any(row.verdict == "error" for row in rows) else EXIT_VALID


def _draw(rows: Sequence[ContestRow], messages: Sequence[str], output: OutputOptions) -> None:
    if not (output.html or output.plot):
        return
    from isolang.report import save_page
    from isolang.report.contest import html
    from isolang.report.picture import save_picture

    picture = time_against_size(rows)
    if output.plot:
        save_picture(picture, output.plot)
    if output.html:
        save_page(html(rows, picture, messages=messages), Path(output.html))


def disagreements(rows: Sequence[ContestRow]) -> list[str]:
    """Return a message for each pair with a wrong result, and for each disputed history.

    A history is disputed if one pair finds it valid and another finds it invalid.
    """
    messages = [
        f"{row.history}: {row.encoding}/{row.solver} is wrong: {row.detail}"
        for row in rows
        if row.verdict == "wrong"
    ]
    for history in dict.fromkeys(row.history for row in rows):
        found = {
            verdict: [
                f"{r.encoding}/{r.solver}/{r.prune_stage}"
                for r in rows
                if r.history == history and r.verdict == verdict
            ]
            for verdict in ("valid", "invalid")
        }
        if all(found.values()):
            valid, invalid = (", ".join(found[v]) for v in ("valid", "invalid"))
            messages.append(f"{history}: disagreement: valid by {valid}; invalid by {invalid}")
    return messages


def _chosen_pairs(
    only: Sequence[str], prune: Sequence[str], route: Route
) -> tuple[list[Pair], list[tuple[str, str, str]]]:
    """Return the pairs to run, and the pairs whose solver is not installed.

    A pair of the latter kind is returned as encoding, solver and reason.
    """
    from isolang.errors import SolverError
    from isolang.solvers.registry import SOLVERS, Pair, solver_of, stages_of, supported_pairs

    pairs, missing = [], []
    parts = [name for name in only if ":" in name]  # such as sat:glucose4 or encoding/sat:glucose4
    for encoding, base in supported_pairs(route, installed=False):
        variants = [
            base,
            *(p.split("/")[-1] for p in parts if p.split("/")[-1].startswith(f"{base}:")),
        ]
        for solver in variants:
            names = {encoding, solver, f"{encoding}/{solver}"}
            if only and not names & set(only):
                continue
            if not SOLVERS[base].installed:
                missing.append((encoding, solver, SOLVERS[base].missing))
                continue
            try:
                solver_of(solver)
            except SolverError as error:
                raise Mistake(str(error)) from None
            stages = stages_of(encoding)
            selected = [s for s in prune if s in stages] if len(stages) > 1 else stages
            pairs += [Pair(encoding, solver, stage) for stage in selected]
    return pairs, missing


def _share(deadline: Deadline, waiting: int) -> Deadline | None:
    """Return an equal share of the time for the pairs that have not run; ``None`` if it is over.

    So the histories that come last, which are often the largest, have as much of it as the first.
    """
    try:
        remaining = deadline.remaining()
    except TimeoutError:
        return None
    return Deadline(None if remaining is None else remaining / waiting)


def _runs(
    share: Deadline | None, children: Children, entry: ContestEntry, repeat: int, bar: Bar
) -> list[ContestRow]:
    """Run a pair several times, or as often as its share of the time allows."""
    runs: list[ContestRow] = []
    name = f"{Path(entry.history).name}: {entry.pair}"
    while share is not None and len(runs) < repeat:
        bar.phase(f"{name}, run {len(runs) + 1} of {repeat}" if repeat > 1 else name)
        try:
            rest = share.remaining()
        except TimeoutError:
            break
        runs.append(run(children, replace(entry, share=rest)))
    return runs


def _not_run(entry: ContestEntry) -> ContestRow:
    return ContestRow(
        history=entry.history, spec=entry.spec, encoding=entry.pair.encoding,
        solver=entry.pair.solver, prune_stage=entry.pair.prune, verdict="unknown",
        detail="not run, because the time limit of --total was over",
    )  # fmt: skip


def _middle(runs: Sequence[ContestRow]) -> ContestRow:
    """Return the run with the median processor time, or the first without any, with the spread."""
    times = [run.cpu for run in runs if run.cpu is not None]
    spread = {"cpu_low": min(times, default=None), "cpu_high": max(times, default=None)}
    failed = next((run for run in runs if run.cpu is None), None)
    if failed is not None:
        return replace(failed, runs=len(runs), **spread)
    middle = statistics.median_low(times)
    return replace(next(run for run in runs if run.cpu == middle), runs=len(runs), **spread)


# --- output ---


class _Shown:
    """Prints each result as soon as it is known.

    JSON and CSV have one line per result. A table can be sorted and aligned only once all pairs
    have run on its history. Until then, each result is printed as a line on stderr.
    """

    def __init__(self, form: str, total: int) -> None:
        self._form, self._total, self._ended = form, total, 0
        if form == "csv":
            print_data(",".join(COLUMNS) + "\n")

    def add(self, row: ContestRow, *, ran: bool) -> None:
        """Print the result of a pair."""
        if self._form == "json":
            print_data(json_text(row))
        elif self._form == "csv":
            import csv
            import io

            text = io.StringIO()
            csv.DictWriter(text, COLUMNS, lineterminator="\n").writerow(to_builtins(row))
            print_data(text.getvalue())
        elif ran:
            self._ended += 1
            pair = "/".join(filter(None, (row.encoding, row.solver, row.prune_stage)))
            took = "" if row.cpu is None else f", {row.cpu:.2f} s"
            warn(escaped(f"{self._ended}/{self._total}  {pair}: {row.verdict}{took}"))

    def end(self, rows: Sequence[ContestRow]) -> None:
        """Print the table with all results for a history if the output is text."""
        if self._form == "text":
            _table([escaped_record(row) for row in rows])


def _table(rows: Sequence[ContestRow]) -> None:
    import sys

    from isolang.output.layout import Grid, Styled
    from isolang.output.terminal import console

    out = console(sys.stdout)
    out = replace(out, width=max(out.width, _WIDE))
    for history in dict.fromkeys(row.history for row in rows):
        table = Grid(space=1, right=frozenset(range(4, len(_SHOWN))))
        table.add(*(Styled(name, "bold") for name in _SHOWN))
        of_history = [row for row in rows if row.history == history]
        for row in sorted(of_history, key=lambda r: (r.cpu is None, r.cpu or 0.0)):
            table.add(
                row.encoding,
                row.solver,
                row.prune_stage or "",
                row.verdict,
                _number(row.cpu, 3),
                _spread(row),
                *(_number(x, 3) for x in (row.total, row.prune, row.encode, row.solve)),
                *(_number(x, 0) for x in (row.variables, row.clauses, row.edges, row.conflicts)),
                _number(row.peak_mb, 0),
            )
        out.line(history)
        out.show(table)
        for row in of_history:
            if row.verdict not in ("valid", "invalid"):
                pair = "/".join(filter(None, (row.encoding, row.solver, row.prune_stage)))
                print_lines(escaped(f"{pair}: {row.verdict}: {row.detail}"))
        print_lines("")


def _spread(row: ContestRow) -> str:
    """Return the least and the most processor time of several runs."""
    if row.runs < 2 or row.cpu_low is None or row.cpu_high is None:
        return ""
    return f"{row.cpu_low:.3f}-{row.cpu_high:.3f}"


def _number(value: Any, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
