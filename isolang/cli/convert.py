"""``isocheck convert``: a history in another format."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from isolang.cli.report import EXIT_INPUT, EXIT_VALID
from isolang.errors import IsolangError


def convert(
    source: str,
    target: str,
    *,
    to: str,
    format: str,  # noqa: A002 - the option's name
    timestamps: bool,
    initial: int | None,
    renumber: bool,
    drop: Sequence[str],
) -> int:
    """Read, write, say on stderr what changed on the way, and give the exit code."""
    from isolang.history import load_history
    from isolang.history.writers import write_history

    try:
        history = load_history(source, format=format, timestamps=timestamps, initial=initial)
        where = sys.stdout.buffer if target == "-" else target
        report = write_history(history, where, format=to, renumber=renumber, drop=drop)
        if target == "-":
            sys.stdout.buffer.flush()
    except IsolangError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    name = "the standard output" if target == "-" else target
    print(
        f"{name}: {report.transactions} transactions, {report.operations} operations "
        f"as {report.format}",
        file=sys.stderr,
    )
    for note in (*history.ignored, *report.notes):
        print(f"  {note}", file=sys.stderr)
    return EXIT_VALID
