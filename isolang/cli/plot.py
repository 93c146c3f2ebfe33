"""Supports ``--plot``: checks that a figure can be drawn, and plots time against size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isolang.cli.parameters import Mistake

if TYPE_CHECKING:
    from isolang.output.contest import ContestRow
    from isolang.report.picture import Picture

MOST_CURVES: Final = 7
"""The largest number of curves in one chart."""


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
    """Return a chart of processor time against history size, with a curve for each pair.

    Both axes are logarithmic. More than a few curves get a small chart for each encoding.
    """
    from isolang.report.chart import chart, small_multiples

    curves: dict[str, list[tuple[float, float]]] = {}
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    stages = {row.prune_stage for row in rows if row.cpu is not None and row.prune_stage}
    for row in sorted(rows, key=lambda row: (row.encoding, row.solver, row.prune_stage or "")):
        if row.cpu is not None and row.transactions:
            name = "/".join(filter(None, (row.encoding, row.solver, row.prune_stage)))
            of = name.removeprefix(f"{row.encoding}/") if len(stages) > 1 else row.solver
            point = (row.transactions, max(row.cpu, 1e-6))
            curves.setdefault(name, []).append(point)
            panels.setdefault(row.encoding, {}).setdefault(of, []).append(point)
    words = {"title": "time against size", "across": "transactions"}
    if len(curves) > MOST_CURVES and len(panels) > 1:
        return small_multiples(panels, up="CPU seconds", **words)
    return chart(curves, up="CPU seconds (prune, encode, solve)", **words)
