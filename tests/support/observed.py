"""An application on MariaDB behind the proxy, and what was recorded of it."""

import struct
from contextlib import contextmanager

import isolang
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.observer import MariaDBObserver
from isolang.observe.unseen import HARMFUL_KINDS, kind_of

SCHEMA = (
    "CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)",
    "INSERT INTO account VALUES (0, 100), (1, 100)",
    "CREATE TABLE room (id INT PRIMARY KEY, name VARCHAR(20))",
    "INSERT INTO room VALUES (0, 'r0'), (1, 'r1')",
    "CREATE TABLE booking (id INT AUTO_INCREMENT PRIMARY KEY, room INT NOT NULL, KEY (room))",
    "INSERT INTO booking (room) VALUES (0), (0), (0), (0)",
)


class Application:
    """An application's way to the database, and what was recorded of it."""

    def __init__(self, observer, path):
        self.observer, self.path = observer, path

    def connect(self, level="REPEATABLE READ", **more):
        """Open a connection through the proxy."""
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.observer.port, database="test_log",
            user=more.pop("user", "root"),
            init_command=f"SET SESSION TRANSACTION ISOLATION LEVEL {level}",
            local_infile=True, ssl_disabled=True, **more,
        )  # fmt: skip

    def stop(self):
        """End the observation, and keep the kinds that may matter, with their counts."""
        counts = self.observer.stop()
        self.all = dict(counts)
        self.unseen = {what: n for what, n in counts.items() if kind_of(what) in HARMFUL_KINDS}

    def outcome(self, spec):
        """The outcome of a check of the history, of which nothing unseen is accepted."""
        return isolang.check(isolang.load_history(self.path), spec).outcome

    def accepted_outcome(self, spec):
        """The outcome of a check that accepts everything unseen."""
        history = isolang.load_history(self.path, allow_unseen=HARMFUL_KINDS)
        return isolang.check(history, spec).outcome


@contextmanager
def observed(mariadb, path, schema=SCHEMA):
    """Observe applications on a new database."""
    mariadb.fresh(*schema)
    observer = MariaDBObserver(
        MariaDBAddress(host=mariadb.socket), path, listen=("127.0.0.1", 0), most_rows=1000
    )
    observer.start()
    application = Application(observer, path)
    stopped = []
    original, application.stop = application.stop, lambda: (stopped.append(1), original())
    try:
        yield application
    finally:
        if not stopped:
            application.stop()


def run(connection, text, values=None):
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall()


class Raw:
    """A connection whose answers are kept as they come."""

    def __init__(self, flags, **where):
        import pymysql

        self._raw = pymysql.connect(
            user="root",
            database="test_log",
            autocommit=True,
            client_flag=flags,
            ssl_disabled=True,
            **where,
        )
        self._has_no_eof = bool(flags & 1 << 24)

    def _packet(self):
        head = self._raw._read_bytes(4)
        data = self._raw._read_bytes(int.from_bytes(head[:3], "little"))
        self.packets.append(head[3:] + data)
        return data

    def _status(self, data):
        at = 1
        for _ in range(2):
            at += {0xFC: 3, 0xFD: 4, 0xFE: 9}.get(data[at], 1)
        return int.from_bytes(data[at : at + 2], "little")

    def answer(self, command, data):
        """The packets of the answer to a command."""
        self.packets = []
        self._raw._execute_command(command, data)
        while True:
            first = self._packet()
            if first[0] == 0xFF:
                return self.packets
            if first[0] == 0 and command == 22:
                columns, parameters = struct.unpack_from("<HH", first, 5)
                for size in (parameters, columns):
                    for _ in range(size + (not self._has_no_eof and size > 0)):
                        self._packet()
                self.statement = self.packets[0][2:6]
                self.packets[0] = self.packets[0][:2] + self.packets[0][6:]
                return self.packets
            status = self._status(first) if first[0] == 0 else self._rows(first[0])
            if status is None or not status & 8:
                return self.packets

    def _rows(self, columns):
        for _ in range(columns + (not self._has_no_eof)):
            self._packet()
        while True:
            data = self._packet()
            if data[0] == 0xFF:
                return None
            if data[0] == 0xFE and len(data) < 9:
                plain = int.from_bytes(data[3:5], "little")
                return self._status(data) if self._has_no_eof else plain
