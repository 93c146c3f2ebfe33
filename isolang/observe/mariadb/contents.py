"""Names the rows of tables and their contents for a history.

A history tells a row's versions apart by a number, in the column ``xmin``: two versions of a key
with the same content have the same number. What is read is known by its content, so a content that
a key had twice may be either version; each write says which version it makes.

A version is forgotten once no transaction can read it any more. If its content comes again later,
it is another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from isolang.observe.history.edn import edn
from isolang.observe.log.tables import LoggedTable, Name
from isolang.observe.mariadb.compared import ComparedColumn
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement

_VERSION: Final = "xmin"  # the name by which reports know the column that tells versions apart
_NEVER: Final = 1 << 62
_START: Final = (-1, -1)
_UNKNOWN: Final = (-1, _NEVER)


class WrittenVersion(Struct, frozen=True, gc=False):
    """A version of a row.

    Attributes:
        text: the row in EDN; ``None`` if the row was deleted.
        writer: its writer; ``None`` if no proxy observed it.
        number: grows with the versions of its key, under all definitions of the table.
        values: the values of its columns; ``None`` if the row was deleted.
    """

    text: str | None
    writer: FollowedTransaction | None
    number: int = 0
    values: tuple[Any, ...] | None = None


class NamedTable:
    """A table as the log has it between two changes of its definition.

    Attributes:
        label: its name in the history.
        compared: how conditions compare its columns, by name.
        form: its columns, which tell whether a statement was prepared for this definition.
        defined: the positions at which its definition was sent and answered.
    """

    def __init__(self, table: LoggedTable, label: str, *, is_redefined: bool) -> None:
        """Describe a table, whose name may have had another definition before."""
        self.is_redefined = is_redefined
        self.table, self.label = table, label
        self.compared = {column.name: ComparedColumn(column) for column in table.logged}
        self.form = form_of(table)
        self.defined = _START
        self._deleted = 0  # the largest number of a deleted version
        # By the text of each key: the version that all open transactions find or have replaced,
        # the later versions, and the numbers of the contents of all these.
        self._settled: dict[str, WrittenVersion] = {}
        self._versions: dict[str, list[WrittenVersion]] = {}
        self._contents: dict[str, dict[tuple[Any, ...], int]] = {}

    def key(self, key: tuple[Any, ...]) -> str:
        """Return the text of a key, which no other key of the table has."""
        if len(key) == 1:
            return str(key[0])
        return ",".join(str(value).replace("\\", "\\\\").replace(",", "\\,") for value in key)

    def key_edn(self, key: tuple[Any, ...]) -> str:
        """Return a key in EDN."""
        return edn([self.label, self.key(key)])

    def start(self, key: tuple[Any, ...], row: Mapping[str, Any]) -> str:
        """Return a row from before the observation in EDN, and remember it."""
        values, text = tuple(row.values()), self._row(row, 0)
        self._contents[self.key(key)] = {values: 0}
        self._settled[self.key(key)] = WrittenVersion(text, None, 0, values)
        return text

    def write(
        self,
        key: tuple[Any, ...],
        row: Mapping[str, Any] | None,
        writer: FollowedTransaction | None,
        number: int,
    ) -> tuple[str | None, bool]:
        """Remember a version of a key, whose row is ``None`` for a deletion.

        Return the row in EDN, and whether the version is the next one, because the log must have
        all versions, and each once.
        """
        name = self.key(key)
        versions = self._versions.setdefault(name, [])
        before = versions[-1] if versions else self._settled.get(name)
        if before is not None and before.text is not None:
            is_next = number == before.number + 1
        else:
            is_next = self.is_redefined or number == self._deleted + 1
        text = values = None
        if row is None:
            self._deleted = max(number, self._deleted)
        else:
            values = tuple(row.values())
            text = self._row(row, self._contents.setdefault(name, {}).setdefault(values, number))
        versions.append(WrittenVersion(text, writer, number, values))
        return text, is_next

    def settle(self, key: tuple[Any, ...], number: int) -> None:
        """Forget the versions of a key before the numbered one; nobody can read them any more."""
        name = self.key(key)
        versions = self._versions.get(name, [])
        at = next((n for n, version in enumerate(versions) if version.number == number), None)
        if at is None:
            return
        settled, later = versions[at], versions[at + 1 :]
        if not later:
            del self._versions[name]
            if settled.text is None:
                self._settled.pop(name, None)
                self._contents.pop(name, None)
                return
        else:
            self._versions[name] = later
        self._settled[name] = WrittenVersion(settled.text, None, number, settled.values)
        contents = self._contents.get(name, {})
        self._contents[name] = {
            version.values: contents[version.values]
            for version in (settled, *later)
            if version.values is not None
        }

    def is_kept(self, key: tuple[Any, ...]) -> bool:
        """Return whether a row is from before the observation, and still there."""
        settled = self._settled.get(self.key(key))
        return settled is not None and settled.number == 0 and not self._versions.get(self.key(key))

    def locked_version(
        self, key: tuple[Any, ...], transaction: FollowedTransaction, event: RecordedStatement
    ) -> str | None:
        """Return the version of a row that a statement had locked.

        Return ``None`` if it is not certain, or if the transaction has written the row itself.

        SOUND BECAUSE: each writer of the row has it locked from its write to its commit. So one
        that sent its COMMIT before this lock was granted had it before, and one that sent its last
        statement after the lock was granted has it after. A statement without a transaction gets
        and loses its lock between its sending and its answer.
        """
        lock_position = event.answered if transaction.is_explicit else event.sent
        versions = self._versions.get(self.key(key), [])
        if any(version.writer is transaction for version in versions):
            return None
        settled = self._settled.get(self.key(key))
        text, is_certain = None if settled is None else settled.text, True
        for version in versions:
            writer = version.writer
            if writer is None or writer.is_unclear or not writer.events:
                is_certain = False
            elif (writer.last_sent if writer.is_explicit else writer.end) < lock_position:
                text, is_certain = version.text, True
            elif writer.last_sent > event.answered:
                break
            else:
                is_certain = False
        return text if is_certain else None

    def find(self, key: tuple[Any, ...], row: Mapping[str, Any]) -> str | None:
        """Return a row that was read in EDN; ``None`` if the key never had this content."""
        number = self._contents.get(self.key(key), {}).get(tuple(row.values()))
        return None if number is None else self._row(row, number)

    def _row(self, row: Mapping[str, Any], number: int) -> str:
        shown = {name: self.compared[name].recorded(value) for name, value in row.items()}
        return edn({**shown, _VERSION: number})


def form_of(table: LoggedTable) -> tuple[tuple[str, ...], ...]:
    """Return what decides the image of a table's rows."""
    return tuple(
        (column.name, column.type, str(column.scale), column.charset, *column.elements)
        for column in table.logged
    )


class NamedTables:
    """The tables of an observation, by name and definition."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        """Start without tables.

        Args:
            names: the names of tables in the history, where they differ from those in the database.
        """
        self._names = names or {}
        self._by_name: dict[Name, list[NamedTable]] = {}
        self._by_table: dict[int, NamedTable] = {}
        self._labels: dict[str, Name] = {}

    def define(self, tables: Sequence[LoggedTable], when: tuple[int, int] | None) -> None:
        """Note that tables have another definition from here on.

        Args:
            when: the positions at which the statement was sent and answered; ``None`` if unknown.
        """
        for table in tables:
            self.of(table).defined = when or _UNKNOWN

    def of(self, table: LoggedTable) -> NamedTable:
        """Return the name of a table of the log."""
        if (known := self._by_table.get(id(table))) is not None:
            return known
        where = table.schema, table.name
        generations = self._by_name.setdefault(where, [])
        label = self._names.get(table.name, table.name)
        if self._labels.setdefault(label, where) != where:
            label = f"{table.schema}.{table.name}"
        if generations:
            label += f"#{len(generations) + 1}"
        made = NamedTable(table, label, is_redefined=bool(generations))
        generations.append(made)
        self._by_table[id(table)] = made
        return made

    def read_from(self, table: LoggedTable, event: RecordedStatement) -> NamedTable | None:
        """Return the table that a statement read; ``None`` if its definition is not certain.

        SOUND BECAUSE: a statement that was answered before the next definition was sent ran before
        it. One that was planned on the columns of a definition ran behind it, unless an earlier
        definition has the same columns. A statement that was planned earlier may run behind a
        later definition, as long as its columns exist.
        """
        form = form_of(table)
        generations = self._by_name.get((table.schema, table.name), [])
        fitting = []
        for number, generation in enumerate(generations):
            _, begin = generation.defined
            end = _NEVER
            if number + 1 < len(generations):
                end, _ = generations[number + 1].defined
            is_new = all(earlier.form != form for earlier in generations[:number])
            if (
                generation.form == form
                and event.answered < end
                and (number == 0 or is_new or begin < event.sent)
            ):
                fitting.append(generation)
        return fitting[0] if len(fitting) == 1 else None

    def labels_of(self, name: str) -> set[str]:
        """Return the labels of all tables with a name, in any schema; of all if it is empty."""
        return {named.label for named in self.all() if name in ("", named.table.name)}

    def all(self) -> list[NamedTable]:
        """Return all tables that occurred."""
        return [*self._by_table.values()]
