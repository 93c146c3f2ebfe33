"""Writes the history of an observation that goes on.

The log is read again from where the observation began, so the history is the same as if the
observation ended now.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path

from msgspec import Struct

from isolang.observe.log.mariadb import Group, LogReader
from isolang.observe.log.replay import Rows
from isolang.observe.log.stream import LogPosition
from isolang.observe.log.tables import Catalogue
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.lines import write_end, write_history
from isolang.observe.mariadb.merge import Merger
from isolang.observe.mariadb.recording import Recording
from isolang.observe.unseen import CONTRADICTED, Unseen


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

    def merger(self, recording: Recording) -> Merger:
        """Return what joins a recording with the log."""
        made = Merger(recording, self.most_rows, self.names)
        made.add_initial(self.catalogue.tables, self.rows)
        return made

    def reader(self) -> LogReader:
        """Return a new reader of the log, which loads definitions in its own time."""
        return LogReader(self.server.connect, copy(self.catalogue), self.position, self.rows)

    def complete(self, recording: Recording, into: Path) -> tuple[Unseen, dict[int, int]]:
        """Write the history of a recording to a new file.

        Returns:
            What was not seen; and for each line of a transaction of a call of the application, the
            number of the call.
        """
        log, merger = self.reader(), self.merger(recording)
        try:
            groups = [*log.audited()]
        finally:
            log.close()
        return finish_history(recording, merger, groups, log, into)


def finish_history(
    recording: Recording, merger: Merger, groups: list[Group], log: LogReader, into: Path
) -> tuple[Unseen, dict[int, int]]:
    """Write the history of a recording whose log was compared with the tables."""
    merged = [*merger.transactions(groups)]
    for problem in log.problems:
        recording.unseen.note(CONTRADICTED, f"{problem.kind}: {problem.text}")
    for name in log.doubtful:
        merger.doubtful.update(merger.tables.labels_of(name))
    clients = write_history(
        into, merger.initial, merged, doubtful=merger.doubtful,
        keeps_snapshots=recording.keeps_snapshots, processes=recording.process(),
    )  # fmt: skip
    unseen = recording.unseen.settled()
    write_end(into, merger.tables.all(), unseen)
    return unseen, clients
