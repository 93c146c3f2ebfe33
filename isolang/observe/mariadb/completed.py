"""Joins a recording with the server's log, and completes the file of the history.

The log may be read again from where the observation began, so there may be a history of what was
recorded so far while the observation goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from msgspec import Struct

from isolang.observe.history.classes import write_evaluated
from isolang.observe.history.lines import EvaluatedRead
from isolang.observe.log.mariadb import LogReader
from isolang.observe.log.replay import Rows
from isolang.observe.log.stream import LogPosition
from isolang.observe.log.tables import Catalogue
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.evaluation import evaluate
from isolang.observe.mariadb.lines import GrowingHistory, write_end
from isolang.observe.mariadb.merge import Merger
from isolang.observe.mariadb.recording import Recording
from isolang.observe.mariadb.waiting import WaitingTransactions
from isolang.observe.unseen import CONTRADICTED, Unseen


class JoiningHistory(Struct, frozen=True):
    """A history whose file gets what a recording and the log say together.

    Attributes:
        connect: opens a connection to the server.
    """

    connect: Callable[[], Any]
    path: Path
    recording: Recording
    merger: Merger
    lines: GrowingHistory
    waiting: WaitingTransactions

    def doubt(self, log: LogReader) -> None:
        """Leave out the tables of which the log has been wrong so far."""
        for name in tuple(log.doubtful):
            self.merger.doubtful.update(self.merger.tables.labels_of(name))

    def finish(self, log: LogReader) -> Unseen:
        """Compare the log with the database, complete the file, and return what was not seen."""
        try:
            groups = [*log.audited()]
        finally:
            log.close()
        for problem in log.problems:
            self.recording.unseen.note(CONTRADICTED, f"{problem.kind}: {problem.text}")
        self.doubt(log)
        self.waiting.finish(groups)
        self.doubt(log)  # the last groups may have defined tables with the same names
        merger = self.merger
        self.lines.close(merger.doubtful, merger.is_kept, self._evaluate, merger.tables.all())
        merger.note_odd_columns()
        unseen = self.recording.unseen.settled()
        write_end(
            self.path,
            self.merger.tables.all(),
            unseen,
            foreign=log.foreign_keys,
            keeps_snapshots=self.recording.keeps_snapshots,
        )
        return unseen

    def _evaluate(self, reads: Sequence[EvaluatedRead]) -> None:
        """Let the server evaluate conditions, and write the predicate reads with them."""
        merger, unseen = self.merger, self.recording.unseen
        tables = {table.label: table for table in merger.tables.all()}
        evaluate(merger.evaluated, merger.images, tables, self.connect)
        write_evaluated(merger.evaluated, reads, merger.images, unseen, self.path, number_of=str)


class ObservationStart(Struct, frozen=True, kw_only=True):
    """The server when an observation began.

    Attributes:
        catalogue: the definitions, as the log's reader must know them.
        position: the position in the log, from which it can be read again.
        names: the names of tables in the history, where they differ from those in the database.
    """

    server: MariaDBAddress
    catalogue: Catalogue
    position: LogPosition
    rows: Rows
    most_rows: int
    names: Mapping[str, str]

    def reader(self) -> LogReader:
        """Return a new reader of the log, which loads definitions in its own time."""
        return LogReader(self.server.connect, copy(self.catalogue), self.position, self.rows)

    def history(self, recording: Recording, path: Path) -> JoiningHistory:
        """Create the file of a history, with the rows from before the observation."""
        merger, lines = (
            Merger(recording, self.most_rows, self.names),
            GrowingHistory(path, recording),
        )
        lines.write_initial(merger.add_initial(self.catalogue.tables, self.rows))
        waiting = WaitingTransactions(recording, merger, lines)
        return JoiningHistory(self.server.connect, path, recording, merger, lines, waiting)
