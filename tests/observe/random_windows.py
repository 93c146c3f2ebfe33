"""Random transactions of a small database, recorded twice: with all reads, and without some."""

from itertools import chain, combinations, permutations
from random import Random

from isolang.history.not_seen import unseen_line
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.orders import write_orders
from isolang.observe.history.seen import RowVersion, ScannedRows, UnseenRead, WrittenRow
from isolang.observe.sql.catalogue import Table

TABLES = [
    Table(oid=n, where=name, name=name, columns={}, quoted={"id": "id"}, key=("id",))
    for n, name in enumerate("xy", 9)
]


class LostError(Exception):
    """A statement that the database refuses."""


class Client:
    """One transaction: its actions, and how far the current one has got."""

    def __init__(self, number, random, *, keeps, reads):
        self.number, self.keeps, self.random = number, keeps, random
        self.actions = [
            ("read", random.sample(TABLES, random.choice((1, 1, 2)))) if random.random() < reads
            else ("write", random.choice(TABLES), random.choice("12"), random.random() < 0.2)
            for _ in range(random.randint(1, 3))
        ]  # fmt: skip
        self.actions.append(("commit" if random.random() < 0.9 else "rollback",))
        self.loses = random.random() < 0.1  # the connection, with COMMIT
        self.phase, self.snapshot, self.written = "sent", None, {}
        self.at, self.versions, self.result = 0, 0, None
        self.seen = []  # per history, its transaction
        self.outcome = None
        self.log = []  # for the brute force: reads and writes


class Play:
    """A database with two tables of two rows, and its clients."""

    def __init__(self, seed, folder, clients=4):
        self.random = random = Random(seed)
        self.histories = [ObservedHistory(folder / f"{name}{seed}.edn") for name in ("all", "some")]
        self.commits = 0
        # For each row, its committed versions: (the number, the value, the number of the commit).
        self.rows = {(table.name, key): [] for table in TABLES for key in "12"}
        self.locked = {}
        initial = []
        for table in TABLES:
            for key in "12":
                if random.random() < 0.7:
                    version = RowVersion(key, f"0({table.name}{key})")
                    self.rows[table.name, key].append((version.number, 0, 0))
                    initial.append((table, version, {"v": 0}, None))
        self.start = {row: versions[-1][0] for row, versions in self.rows.items() if versions}
        for history in self.histories:
            history.write_initial_rows(initial)
        keeps, reads = random.random() < 0.5, random.choice((0.3, 0.6))
        self.clients = [Client(n, random, keeps=keeps, reads=reads) for n in range(1, clients + 1)]

    def run(self):
        """Let the clients go on in a random order, until all have ended."""
        while left := [client for client in self.clients if client.outcome is None]:
            ready = [client for client in left if not self.waits(client)]
            if ready:
                self.step(self.random.choice(ready))
            else:  # a deadlock
                self.end(left[0], "fail")

    def waits(self, client):
        """Whether a client's write waits for another client."""
        action = client.actions[client.at]
        holder = self.locked.get((action[1].name, action[2])) if action[0] == "write" else None
        return client.phase == "effect" and holder not in (None, client.number)

    def step(self, client):
        """Send the client's statement, let the server execute it, or answer it."""
        if client.phase == "sent":
            client.tickets = [history.ticket() for history in self.histories]
            if not client.seen:
                for history, ticket in zip(self.histories, client.tickets, strict=True):
                    made = history.begin(history.process(), ticket)
                    made.level = "repeatable read" if client.keeps else "read committed"
                    client.seen.append(made)
            client.phase = "effect"
        elif client.phase == "effect":
            client.phase = "answered"
            try:
                self.execute(client, *client.actions[client.at])
            except LostError:
                self.end(client, "fail")
        else:
            client.phase = "sent"
            self.answer(client, client.actions[client.at][0])
            client.at += 1

    def version_of(self, client, row):
        """The version of a row that a client sees."""
        if row in client.written:
            return client.written[row]
        limit = client.snapshot if client.keeps else self.commits
        return next((v for v in reversed(self.rows[row]) if v[2] <= limit), None)

    def execute(self, client, what, *more):
        """Execute a statement on the database."""
        if client.snapshot is None:
            client.snapshot = self.commits
        if what == "read":
            rows_read = {}
            for table in more[0]:
                for key in "12":
                    version = self.version_of(client, (table.name, key))
                    if version is not None and version[1] is not None:
                        rows_read[table.name, key] = version
            client.result = more[0], rows_read
        elif what == "write":
            self.write(client, *more)
        elif what == "commit" and not (client.loses and self.random.random() < 0.5):
            self.commits += 1
            for row, (number, value, _) in client.written.items():
                self.rows[row].append((number, value, self.commits))
            self.unlock(client)

    def write(self, client, table, key, deletes):
        """Write a row, as SET v = n does, or INSERT or DELETE it."""
        row = table.name, key
        newest = client.written.get(row) or (self.rows[row] or [None])[-1]
        if (
            client.keeps
            and row not in client.written
            and newest is not None
            and newest[2] > client.snapshot
        ):
            raise LostError
        self.locked[row] = client.number
        there = newest is not None and newest[1] is not None
        old = RowVersion(key, newest[0]) if there else None
        if deletes and not there:
            client.result = None
            return
        client.versions += 1
        number = f"{client.number}({client.versions})"
        new = None if deletes else RowVersion(key, number)
        client.written[row] = number, None if deletes else client.number * 10 + client.versions, -1
        written = None if deletes else {"v": client.written[row][1]}
        client.result = WrittenRow(table, new, written, old, "UPDATE", inserts=old is None)
        client.log.append(("w", row, None if deletes else number))

    def answer(self, client, what):
        """Record what the server answered."""
        if what == "commit":
            for made, ticket in zip(client.seen, client.tickets, strict=True):
                made.commit_sent = ticket[0]
            self.end(client, "info" if client.loses else "ok")
            return
        if what == "rollback":
            self.end(client, "fail")
            return
        if what == "read":
            tables, rows_read = client.result
            client.log.append(
                ("r", tuple(t.name for t in tables), {row: v[0] for row, v in rows_read.items()})
            )
        positions = [history.ticket()[0] for history in self.histories]
        unseen = what == "read" and self.random.random() < 0.6
        for n, made in enumerate(client.seen):
            if client.keeps and made.snapshot < 0:
                made.snapshot = positions[n]
            if what == "write":
                if client.result is not None:
                    made.write(client.result)
            elif unseen and n == 1:
                sent = made.begin if client.keeps else client.tickets[n][0]
                answered = made.snapshot if client.keeps else positions[n]
                names = tuple(table.name for table in tables)
                made.unseen_reads.append(
                    UnseenRead("conditions", f"T{client.number}", "", names, sent, answered)
                )
                self.histories[n].unseen.note("conditions", f"T{client.number}")
            else:
                for table in tables:
                    rows = tuple(
                        RowVersion(key, version[0])
                        for (name, key), version in rows_read.items() if name == table.name
                    )  # fmt: skip
                    made.operations.append(ScannedRows(table, ":true", rows, "SELECT"))

    def end(self, client, outcome):
        """End a transaction."""
        client.outcome = outcome
        if outcome == "fail":
            self.unlock(client)
        for history, made in zip(self.histories, client.seen, strict=True):
            history.end(made, outcome)

    def unlock(self, client):
        """Let others write the client's rows."""
        self.locked = {row: n for row, n in self.locked.items() if n != client.number}

    def recorded(self):
        """The files of both histories, and whether all unseen reads are decided."""
        whole, partial = self.histories
        whole.close()
        partial.close()
        path = partial._lines._path
        decided = partial.windows.decide((), ())
        into = path.with_suffix(".orders")
        if decided.orders:
            write_orders(path, decided, into)
        noted = sum(len(client.seen[1].unseen_reads) for client in self.clients if client.seen)
        whole_path = whole._lines._path
        without = into if decided.orders else path
        for recording in (whole_path, without):
            with recording.open("a") as file:
                file.write(unseen_line({}))
        return whole_path, without, noted, len(decided.reads)

    def is_serializable(self):
        """Whether an order of the committed transactions gives each read its answer."""
        sure = [client for client in self.clients if client.outcome == "ok"]
        perhaps = [client for client in self.clients if client.outcome == "info"]
        more = chain.from_iterable(combinations(perhaps, n) for n in range(len(perhaps) + 1))
        return any(self._explains(order) for some in more for order in permutations([*sure, *some]))

    def _explains(self, order):
        state = dict(self.start)
        for client in order:
            for what, of, value in client.log:
                if what == "w":
                    state[of] = value
                elif value != {row: n for row, n in state.items() if n and row[0] in of}:
                    return False
        return True
