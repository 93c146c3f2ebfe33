"""Writes the page for ``isocheck solvers``, with a chart of times and a table of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isolang.report.plain import figure, plain_page, table, text

if TYPE_CHECKING:
    from isolang.output.contest import ContestRow
    from isolang.report.picture import Picture

_HEADS: Final = (
    "history", "transactions", "encoding", "solver", "pruned", "verdict", "CPU", "least", "most",
    "seconds", "prune", "encode", "solve", "variables", "clauses", "edges", "conflicts", "MB",
    "detail",
)  # fmt: skip
_NUMBERS: Final = frozenset((1, *range(6, 18)))


def html(rows: Sequence[ContestRow], picture: Picture, *, messages: Sequence[str]) -> str:
    """Return the page with the results of all runs."""
    spec = rows[0].spec if rows else ""
    histories = len({row.history for row in rows})
    pairs = len({(row.encoding, row.solver, row.prune_stage) for row in rows})
    wrong = "".join(f'<p class="wrong"><b>{text(message)}</b></p>' for message in messages)
    body = (
        f"<h1>{text(spec)}: every encoding with every solver</h1>"
        f'<p class="note">{pairs} pairs on {histories} '
        f"{'history' if histories == 1 else 'histories'}; CPU is the processor time from the "
        "pre-pass to the answer, without reading and certifying: the median of the runs, the least "
        "and the most. Click a column heading to sort by that column.</p>"
        f"{wrong}{figure(picture)}"
        f"{table(list(_HEADS), [_cells(row) for row in rows], numbers=_NUMBERS)}"
    )
    return plain_page(f"{spec}: encodings and solvers", body, script="sort.js")


def _cells(row: ContestRow) -> list[str]:
    def number(value: float | None, digits: int = 0) -> str:
        return "" if value is None else f"{value:,.{digits}f}"

    return [
        row.history,
        number(row.transactions),
        row.encoding,
        row.solver,
        row.prune_stage or "",
        row.verdict,
        *(number(value, 4) for value in (row.cpu, row.cpu_low, row.cpu_high)),
        *(number(value, 4) for value in (row.total, row.prune, row.encode, row.solve)),
        *(number(value) for value in (row.variables, row.clauses, row.edges, row.conflicts)),
        number(row.peak_mb),
        row.detail,
    ]
