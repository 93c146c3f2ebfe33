"""Several histories: folders are what is in them, and a line at the end says what came of all."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from isolang.caveat import Caveat
from isolang.cli.parameters import Mistake
from isolang.output.records import Report
from isolang.output.terminal import complain, forget_stdout, visible


def expanded(histories: Sequence[str], form: str) -> list[str]:
    """The histories, with each folder that holds several replaced by these.

    What is left out of a folder is said on the standard error output.

    Args:
        histories: as given on the command line.
        form: of ``--from``; of a folder that is no history by itself, it says which file is one.

    Raises:
        Mistake: a folder has none.
    """
    found: list[str] = []
    for given in histories:
        path = Path(given)
        if given == "-" or not path.is_dir():
            found.append(given)
            continue
        from isolang.history.load import histories_in

        inside, left_out = histories_in(path)
        if len(inside) <= 1 or (form != "auto" and inside[0] != path):
            found.append(given if not inside else str(inside[0]))
            continue
        found += map(str, inside)
        for phrase in left_out:
            complain(f"left out: {phrase}")
    if not found:
        raise Mistake("there is no history in what was given")
    return found


def brief(report: Report) -> str:
    """A report in one line, with what changes the meaning of its verdict."""
    why = report.anomaly or report.reason.split("\n", 1)[0]
    more = (short for one in report.caveats if (short := Caveat(one).brief) not in why)
    said = "; ".join(filter(None, (why, *more)))
    return "  ".join(x for x in (report.verdict.upper(), report.history, report.spec, said) if x)


class Remarks:
    """What is said beside verdicts that are not printed in full, on the error output; once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, lines: Iterable[str]) -> None:
        """Say what was not said yet."""
        for line in dict.fromkeys(lines):
            if line not in self._said:
                self._said.add(line)
                complain(line)

    def beside(self, report: Report, *, caveats: bool) -> None:
        """Say warnings, and the caveats of a verdict that is not printed."""
        unsaved = report.unsaved  # which `complain_unsaved` says
        self.say(warning(one) for one in report.warnings if one not in unsaved)
        if caveats:
            self.say(f"{report.history}: {Caveat(one).brief}" for one in report.caveats)


def warning(text: str) -> str:
    """A warning as it stands on the error output; one of a specification has its own place."""
    return text if " warning: " in text.partition("\n")[0] else f"warning: {text}"


def summary(reports: Counter[str]) -> str:
    """What came of all: ``12 verdicts: 10 valid, 2 invalid``."""
    order = ("valid", "invalid", "unknown", "error")
    parts = [f"{reports[verdict]} {verdict}" for verdict in order if reports[verdict]]
    return f"{reports.total()} verdicts: {', '.join(parts)}"


def complain_unsaved(report: Report) -> None:
    """Say what of a report could not be saved, on the standard error output."""
    complain(*(visible(f"isocheck: not saved: {one}") for one in report.unsaved))


def was_printed(show: Callable[[], object]) -> bool:
    """Print something; where that is not possible, say why, and lose no verdict by it.

    Raises:
        BrokenPipeError: nobody reads on.
    """
    try:
        show()
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"isocheck: cannot print: {error.strerror or error}")
        forget_stdout()
        return False
    return True
