"""python firebird-savepoint-not-undone.py: needs Firebird 3.0 and firebird-driver."""

import os
import tempfile
import threading
import time

from firebird.driver import DatabaseError, Isolation, connect, create_database, tpb

os.environ["FIREBIRD_LOCK"] = folder = tempfile.mkdtemp()
with create_database(path := f"{folder}/test.fdb") as one:
    one.execute_immediate("CREATE TABLE t (k INT PRIMARY KEY, v INT, pad VARCHAR(30000))")
    one.commit()
    pad = "".join(chr(33 + (7919 * i * i + 31 * i) % 90) for i in range(9000))  # two pages
    one.cursor().execute("INSERT INTO t VALUES (1, 0, ?)", (pad,))
    one.commit()
level, found, until = tpb(Isolation.SNAPSHOT, 3), {0: 0, -1: 0}, time.time() + 60


def client() -> None:
    with connect(path) as one:
        while time.time() < until and not found[-1]:
            one.begin(level)
            try:
                for sql in ("SAVEPOINT s", "UPDATE t SET v = -1", "ROLLBACK TO SAVEPOINT s"):
                    one.cursor().execute(sql)
                found[one.cursor().execute("SELECT v FROM t").fetchone()[0]] += 1
                one.commit()
            except DatabaseError:  # two updates of the row
                one.rollback()


clients = [threading.Thread(target=client) for _ in range(6)]
for do in (threading.Thread.start, threading.Thread.join):
    list(map(do, clients))
print(f"{found[0]} times the update was undone, {found[-1]} times it was not")
