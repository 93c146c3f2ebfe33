"""``compare --plot``: time against size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isolang.cli.parameters import Mistake

if TYPE_CHECKING:
    from isolang.cli.contest import Row


def require_plottable(path: str) -> None:
    """See before the runs that there can be a picture after them.

    Raises:
        Mistake: there cannot.
    """
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise Mistake("--plot needs matplotlib; pip install 'isolang[plot]'")
    kinds = (".svg", ".png", ".pdf")
    if not path.endswith(kinds):
        raise Mistake(f"--plot: no kind of picture (got {path}, expected {', '.join(kinds)})")
    if not Path(path).absolute().parent.is_dir():
        raise Mistake(f"--plot: there is no folder for it (got {path})")


def draw(rows: Sequence[Row], path: str) -> None:
    """Draw a line for each pair, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "isolang"  # equal rows give equal files
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5))
    lines: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for row in rows:
        if row.total is not None and row.transactions:
            name = (row.encoding, row.solver, row.prune_stage or "")
            lines.setdefault(name, []).append((row.transactions, row.total))
    for i, (name, points) in enumerate(sorted(lines.items())):
        marker = "osD^vPX*"[i // 10 % 8]
        points.sort()
        axes.plot(*zip(*points, strict=True), marker=marker, label="/".join(name))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("transactions")
    axes.set_ylabel("seconds (prune, encode, solve)")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(
        path, bbox_inches="tight", metadata={"Date": None} if path.endswith(".svg") else None
    )
    plt.close(figure)
