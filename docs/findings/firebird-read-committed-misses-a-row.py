"""python firebird-read-committed-misses-a-row.py: needs Firebird 3.0 and firebird-driver."""

import os
import tempfile
import threading
import time

from firebird.driver import DatabaseError, Isolation, connect, create_database, driver_config, tpb

os.environ["FIREBIRD_LOCK"] = folder = tempfile.mkdtemp()
driver_config.server_defaults.user.value = "sysdba"
with create_database(path := f"{folder}/test.fdb") as one:
    for sql in ("CREATE TABLE t (k INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0)"):
        one.execute_immediate(sql)
        one.commit()
level, found, until = tpb(Isolation.READ_COMMITTED_RECORD_VERSION, 3), [0, 0], time.time() + 60


def client(sql: str) -> None:
    with connect(path) as one:
        while time.time() < until and not found[1]:
            one.begin(level)
            try:
                cursor = one.cursor().execute(sql)
                if "SELECT" in sql:
                    found[cursor.fetchone() == (0,)] += 1
                one.commit()
            except DatabaseError:  # two updates of the row
                one.rollback()


every = ["UPDATE t SET v = v + 1 WHERE k = 1"] * 6 + ["SELECT COUNT(*) FROM t"] * 4
clients = [threading.Thread(target=client, args=(sql,)) for sql in every]
for do in (threading.Thread.start, threading.Thread.join):
    list(map(do, clients))
print(f"{found[0]} times the table had its row, {found[1]} times it had none")
