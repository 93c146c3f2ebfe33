"""Several histories: folders are what is in them, and a line at the end says what came of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from isolang.cli.parameters import Mistake
from isolang.output.records import Report
from isolang.output.terminal import complain
from isolang.verdict import NOTHING_OBSERVED


def expanded(histories: Sequence[str], form: str) -> list[str]:
    """The histories, with each folder that holds several replaced by these.

    What is left out of a folder is said on the standard error output.

    Args:
        histories: as given on the command line.
        form: of ``--from``; a folder of which all files have to be of that is one history.

    Raises:
        Mistake: a folder has none.
    """
    found: list[str] = []
    for given in histories:
        path = Path(given)
        if given == "-" or form != "auto" or not path.is_dir():
            found.append(given)
            continue
        from isolang.history.load import histories_in

        inside, left_out = histories_in(path)
        if len(inside) <= 1:
            found.append(given if not inside else str(inside[0]))
            continue
        found += map(str, inside)
        for phrase in left_out:
            complain(f"left out: {phrase}")
    if not found:
        raise Mistake("there is no history in what was given")
    return found


def brief(report: Report) -> str:
    """A report in one line."""
    said = report.anomaly or report.reason.split("\n", 1)[0]
    if report.nothing_observed:
        said = NOTHING_OBSERVED.partition(":")[0].lower()
    return "  ".join(x for x in (report.verdict.upper(), report.history, report.spec, said) if x)


def summary(reports: Counter[str]) -> str:
    """What came of all: ``12 verdicts: 10 valid, 2 invalid``."""
    order = ("valid", "invalid", "unknown", "error")
    parts = [f"{reports[verdict]} {verdict}" for verdict in order if reports[verdict]]
    return f"{reports.total()} verdicts: {', '.join(parts)}"
