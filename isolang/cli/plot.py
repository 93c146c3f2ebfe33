"""Supports ``--plot``: checks that a figure can be drawn, and plots time against size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isolang.cli.parameters import Mistake

if TYPE_CHECKING:
    from isolang.output.contest import ContestRow
    from isolang.report.picture import Picture


def require_plottable(path: str) -> None:
    """Check, before the work begins, that a picture with this file name can be drawn.

    Raises:
        Mistake: if the file type is not supported, or a package is not installed.
    """
    from isolang.errors import OptionError
    from isolang.report.picture import require_kind

    try:
        require_kind(path)
    except OptionError as error:
        raise Mistake(str(error)) from None


def time_against_size(rows: Sequence[ContestRow]) -> Picture:
    """Return a chart of solving time against history size, with one curve per encoding-solver pair.

    Both axes are logarithmic.
    """
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
