"""``isocheck stats``: what a history contains."""

from __future__ import annotations

from isolang.cli.parameters import HistoryPath, Output
from isolang.cli.report import EXIT_VALID, json_text
from isolang.cli.terminal import data, say, visible_record
from isolang.options import ReadOptions


def stats(*, history: HistoryPath, reading: ReadOptions, output: Output = "text") -> int:
    """Say what a history contains."""
    from isolang.api import read
    from isolang.history.stats import summarize

    figures = summarize(read(history, reading))
    if output == "json":
        data(json_text(figures))
    else:
        say(visible_record(figures).to_text().rstrip("\n"))
    return EXIT_VALID
