"""Writes the smallest part of an invalid history as a file that violates the level by itself.

A file may express less than the history in memory: the history may have been read with options, and
the format may be unable to express its initial values. Therefore the text is read back and judged
again before it is shown.
"""

from __future__ import annotations

import io
import shlex
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from isolang.arrays import np
from isolang.declared import command_line
from isolang.errors import HistoryError, IsolangError
from isolang.files import open_replacement
from isolang.history import columns as c
from isolang.limits import Work
from isolang.options import ReadOptions
from isolang.pipeline.minimal import anomaly_of

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.language.classify.route import Route

# The work limit for judging the texts of one part, about ten seconds.
_WORK: Final = 40_000_000
# Features that the text may omit if the violation does not need them, least important first.
_DROPS: Final = (
    (),
    ("order-after-unknown",),
    ("real-time",),
    ("real-time", "order-after-unknown"),
)


class ExportedPart(Struct, frozen=True, kw_only=True):
    """A part of a history, written as EDN.

    Attributes:
        text: the text. If it must be read with options, a comment on its first line says so.
        anomaly: the name of the anomaly in the text; empty if it could not be judged within a work
            limit.
        reading: the options needed to read the text, as on the command line.
        omitted: the features of the part that the text omits because the violation does not need
            them.
    """

    text: bytes
    anomaly: str
    reading: str
    omitted: tuple[str, ...]
    transactions: int
    operations: int

    def save(self, path: str | Path) -> None:
        """Save the text as a file.

        Raises:
            HistoryError: if the file cannot be written.
        """
        try:
            with open_replacement(Path(path)) as file:
                file.write(self.text)
        except OSError as error:
            raise HistoryError(
                f"{path}: cannot write the file: {error.strerror or error}"
            ) from None

    def described(self) -> str:
        """Return the size of the part, with any remarks that a reader needs."""
        found = f"{self.transactions} transactions, {self.operations} operations"
        found += f": {self.anomaly}" if self.anomaly else ""
        found += f", without {' and '.join(self.omitted)}" if self.omitted else ""
        return found + (f"; read it with {self.reading}" if self.reading else "")


def export_part(
    part: History, route: Route, *, seed: int = 0, work: Work | None = None
) -> ExportedPart:
    """Write a part of a history as text that shows the same violation when it is read.

    Raises:
        HistoryError: if no text shows the same violation; the message says why.
    """
    work = work or Work(_WORK)
    expected = anomaly_of(part, route, seed=seed, work=work)
    refusal: HistoryError | None = None
    for drop in _DROPS:
        for history, reading in _export_options(part):
            try:
                found = _exported_part(history, reading, drop, route, seed=seed, work=work)
            except HistoryError as error:
                refusal = refusal or error
                continue
            if found.anomaly == expected:
                return found
    what = "what a file can express of it does not have the same violation"
    raise refusal or HistoryError(f"{part.name}: the smallest part is not saved: {what}")


def _export_options(part: History) -> list[tuple[History, ReadOptions]]:
    """Return the histories to try writing, with the options for reading them, simplest first.

    Initial values that replace nil may be left to the options used to read the history.
    """
    columns = part.columns
    alone = np.flatnonzero(c.initial_alone(columns)).tolist()
    unwritten = bool(part.options.get("unwritten_initial"))
    if not unwritten or not alone:
        return [(part, ReadOptions())]
    plain = copy(columns)
    for key in alone:
        plain.set_initial_value(key, c.NIL_ATOM)
    named = (columns.op_source == c.SOURCE_INITIAL) & np.isin(columns.op_key, alone)
    for op in np.flatnonzero(named).tolist():
        plain.set_source(op, c.SOURCE_BY_VALUE)
    as_read = replace(part, columns=plain, _lazy=part.about_the_file())
    return [(part, ReadOptions()), (as_read, ReadOptions(unwritten_initial=True))]


def _exported_part(
    history: History,
    reading: ReadOptions,
    drop: tuple[str, ...],
    route: Route,
    *,
    seed: int,
    work: Work,
) -> ExportedPart:
    """Write a history as text, and return it with the anomaly found when the text is read."""
    from isolang.history.load import read_history
    from isolang.history.writers import DROPPABLE, write_history

    stream = io.BytesIO()
    report = write_history(history, stream, format="edn", renumber=True, drop=drop)
    flags = shlex.join(command_line(reading))
    text = (f"; isocheck check {flags}\n".encode() if flags else b"") + stream.getvalue()
    try:
        again = read_history(io.BytesIO(text), replace(reading, format="edn"))
        anomaly = anomaly_of(again, route, seed=seed, work=work)
    except IsolangError as error:
        what = str(error).removeprefix("<stream>: ")
        raise HistoryError(f"{history.name}: the smallest part is not saved: {what}") from None
    return ExportedPart(
        text=text,
        anomaly=anomaly,
        reading=flags,
        omitted=tuple(DROPPABLE[name] for name in drop),
        transactions=report.transactions,
        operations=report.operations,
    )
