"""Supports commands that take several histories: expands folders, and summarizes verdicts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from isolang.caveat import Caveat
from isolang.output.records import Report
from isolang.output.terminal import escaped, forget_stdout, warn


def expand_folders(histories: Sequence[str], form: str) -> list[str]:
    """Replace each folder among the histories with the histories it contains.

    Files skipped in a folder are listed on stderr.
    """
    found: list[str] = []
    for name in histories:
        path = Path(name)
        if name == "-" or not path.is_dir():
            found.append(name)
            continue
        from isolang.history.load import histories_in

        inside, skipped = histories_in(path)
        if len(inside) <= 1 or (form != "auto" and inside[0] != path):
            found.append(name if not inside else str(inside[0]))
            continue
        found += map(str, inside)
        for phrase in skipped:
            warn(f"left out: {phrase}")
    return found


def brief_line(report: Report) -> str:
    """Return a report on one line: the verdict, the history, the specification, and the reasons."""
    why = report.anomaly or report.reason.split("\n", 1)[0]
    more = (short for one in report.caveats if (short := Caveat(one).brief) not in why)
    reasons = "; ".join(filter(None, (why, *more)))
    return "  ".join(x for x in (report.verdict.upper(), report.history, report.spec, reasons) if x)


class Remarks:
    """Prints each distinct warning once, on stderr."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def warn_once(self, lines: Iterable[str]) -> None:
        """Print the lines that have not been printed before."""
        for line in dict.fromkeys(lines):
            if line not in self._printed:
                self._printed.add(line)
                warn(line)

    def warn_about(self, report: Report, *, caveats: bool) -> None:
        """Print a report's warnings, and its caveats too if ``caveats`` is true."""
        unsaved = report.unsaved  # `warn_unsaved` prints these lines
        self.warn_once(as_warning(one) for one in report.warnings if one not in unsaved)
        if caveats:
            self.warn_once(f"{report.history}: {Caveat(one).brief}" for one in report.caveats)


def as_warning(text: str) -> str:
    """Prefix a text with ``warning:`` unless it is a warning at a position in a specification."""
    return text if " warning: " in text.partition("\n")[0] else f"warning: {text}"


def verdict_counts(reports: Counter[str]) -> str:
    """Return the count of each verdict: ``12 verdicts: 10 valid, 2 invalid``."""
    order = ("valid", "invalid", "unknown", "error")
    parts = [f"{reports[verdict]} {verdict}" for verdict in order if reports[verdict]]
    return f"{reports.total()} verdicts: {', '.join(parts)}"


def warn_unsaved(report: Report) -> None:
    """List the files of a report that could not be saved, on stderr."""
    warn(*(escaped(f"isocheck: not saved: {one}") for one in report.unsaved))


def was_printed(show: Callable[[], object]) -> bool:
    """Call a function that prints, and return whether the output could be written.

    An error is reported on stderr, because the exit code must still convey the verdict.

    Raises:
        BrokenPipeError: if the reader has closed the pipe.
    """
    try:
        show()
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        warn(f"isocheck: cannot print: {error.strerror or error}")
        forget_stdout()
        return False
    return True
