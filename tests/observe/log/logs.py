"""Builds the events of a log, as a server writes them."""

import struct

from isolang.observe.log import events
from isolang.observe.log.assembler import Assembler
from isolang.observe.log.events import parse_event
from isolang.observe.log.replay import Rows
from isolang.observe.log.stream import position
from isolang.observe.log.tables import Foreign, LoggedColumn, LoggedTable
from isolang.observe.log.transactions import Transactions

INSERT, UPDATE, DELETE = 23, 24, 25


def packed(kind, body, *, end=0, flags=0):
    """Return the bytes of an event."""
    size = events.HEADER_BYTES + len(body)
    return struct.pack("<IBIIIH", 0, kind, 7, size, end, flags) + body


def event(kind, body, *, end=0, flags=0):
    """Return an event."""
    return parse_event(packed(kind, body, end=end, flags=flags))


def gtid(number, *, flags=0, more=b"\0" * 6):
    """Return the start of a transaction."""
    return event(events.GTID, struct.pack("<QIB", number, 0, flags) + more)


def annotation(text):
    """Return the text in front of a statement's rows."""
    return event(events.ANNOTATE, text.encode())


def query(text, schema="s"):
    """Return a statement in the log."""
    body = struct.pack("<IIBHH", 1, 0, len(schema), 0, 0) + schema.encode() + b"\0"
    return event(events.QUERY, body + text.encode())


def commit():
    """Return the end of a transaction."""
    return event(events.XID, bytes(8))


def table_map(name, *names, number=1, key=1, schema="s"):
    """Return a table map of integer columns, some of which may be NULL."""
    text = b"".join(bytes([len(n)]) + n.encode() for n in names)
    body = number.to_bytes(6, "little") + b"\1\0"
    for each in (schema, name):
        body += bytes([len(each)]) + each.encode() + b"\0"
    count = len(names)
    body += bytes([count]) + b"\3" * count + b"\0" + b"\xff" * ((count + 7) // 8)
    body += b"\1\1\0" + bytes([4, len(text)]) + text
    return event(events.TABLE_MAP, body + bytes([8, key, *range(key)]))


def image(values):
    """Return the bytes of a row of integers."""
    nulls = sum(1 << n for n, value in enumerate(values) if value is None)
    data = nulls.to_bytes((len(values) + 7) // 8, "little")
    return data + b"".join(struct.pack("<i", value) for value in values if value is not None)


def rows(kind, *images, number=1, flags=1):
    """Return an event with rows; of an update, alternately those before and after it."""
    count = len(images[0])
    present = bytes([(1 << count) - 1])
    body = number.to_bytes(6, "little") + struct.pack("<H", flags) + bytes([count])
    body += present * (2 if kind == UPDATE else 1)
    return event(kind, body + b"".join(image(values) for values in images))


def table(name, *names, schema="s", **more):
    """Return a table of integers, whose first column is the key."""
    columns = {each: LoggedColumn(name=each, type="int") for each in names}
    return LoggedTable(schema=schema, name=name, columns=columns, key=[names[0]], **more)


class Catalogue:
    """The definitions of tables, which the test may change as DDL does."""

    def __init__(self, *tables, foreign=()):
        self.tables = {(each.schema, each.name): each for each in tables}
        self.foreign = list(foreign)

    def observes(self, schema):
        """Return whether the tables of a database are observed."""
        return schema == "s"

    def load(self):
        """Definitions are already as the test wants them."""


def foreign(child, column, parent, parents="id", *, on_delete="CASCADE", on_update="CASCADE"):
    """Return a foreign key of one column."""
    return Foreign(
        table=("s", child), columns=[column], parent=("s", parent), parents=[parents],
        on_delete=on_delete, on_update=on_update,
    )  # fmt: skip


def rows_of(table, values):
    """Return rows by their keys."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in values]
    return {table.key_of(row): row for row in rows}


class Log:
    """A log that is replayed on the rows of tables of integers."""

    def __init__(self, catalogue, *, ahead=None, **contents):
        self.catalogue = catalogue
        self._assembler = Assembler()
        initial: Rows = {}
        for name, each in catalogue.tables.items():
            if not each.why:
                initial[name] = rows_of(each, contents.get(name[1], ()))
        look_ahead = ahead or (lambda _: (None, []))
        self.transactions = Transactions(
            catalogue, initial, lambda _: ("utf8mb4", "utf8mb4_bin"), look_ahead
        )
        self.replay = self.transactions.replay

    def read(self, *sequence):
        """Return the groups that end in events."""
        groups = []
        for each in sequence:
            transaction = self._assembler.feed(each)
            if transaction is not None:
                groups.append(self.transactions.apply(transaction, position("log.000001", 4)))
        return groups

    def contents(self, name):
        """Return a table's rows as tuples, in the order of their keys."""
        table_rows = self.replay.rows.get(("s", name), {})
        return [tuple(table_rows[key].values()) for key in sorted(table_rows)]

    def audit(self, **contents):
        """Compare the rows with those of tables, and return the kinds of all problems."""
        actual = {}
        for (schema, name), each in self.replay.tables.items():
            actual[schema, name] = rows_of(each, contents.get(name, ()))
        for problem in self.replay.differences(actual):
            self.replay.problems.store(problem)
        return dict(self.replay.problems.counts)
