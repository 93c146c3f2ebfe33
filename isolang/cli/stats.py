"""``isocheck stats``: what a history contains."""

from __future__ import annotations

import json
import sys

from isolang.cli.report import EXIT_INPUT, EXIT_VALID
from isolang.errors import IsolangError


def stats(
    history: str,
    *,
    output: str,
    format: str,  # noqa: A002 - the option's name
    timestamps: bool,
    initial: int | None,
) -> int:
    """Count, print the figures, and give the exit code."""
    from isolang.history import load_history
    from isolang.history.stats import summarize

    try:
        read = load_history(history, format=format, timestamps=timestamps, initial=initial)
    except IsolangError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    figures = summarize(read)
    if output == "json":
        print(json.dumps(figures.to_json()))
    else:
        print(figures.to_text(), end="")
    return EXIT_VALID
