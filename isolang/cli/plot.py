"""``--plot``: figures for a paper, of verdicts, of levels, and of time against size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from isolang.cli.parameters import OUTPUT, Mistake

if TYPE_CHECKING:
    from isolang.output.contest import Row
    from isolang.report.picture import Picture

Plot: TypeAlias = Annotated[
    str,
    typer.Option(
        "--plot", metavar="FILE", rich_help_panel=OUTPUT, show_default=False,
        help="Draw it for a paper: .svg, or .png and .pdf with isolang[plot].",
    ),
]  # fmt: skip


def require_plottable(path: str) -> None:
    """See before the work that there can be a picture after it.

    Raises:
        Mistake: there cannot.
    """
    from isolang.errors import OptionError
    from isolang.report.picture import require_kind

    try:
        require_kind(path)
    except OptionError as error:
        raise Mistake(str(error)) from None


def time_against_size(rows: Sequence[Row]) -> Picture:
    """A curve for each pair, both axes logarithmic."""
    from isolang.report.chart import chart

    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row.total is not None and row.transactions:
            name = "/".join(filter(None, (row.encoding, row.solver, row.prune_stage)))
            curves.setdefault(name, []).append((row.transactions, max(row.total, 1e-6)))
    return chart(
        dict(sorted(curves.items())),
        title="time against size",
        across="transactions",
        up="seconds (prune, encode, solve)",
    )
