"""python duckdb-index-beside-updates.py: DuckDB 2.0.1 stops with a FATAL error within seconds."""

import threading

import duckdb

db = duckdb.connect()
db.execute("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
db.execute("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")


def client(*statements: str) -> None:
    c = db.cursor()
    for _ in range(3000):
        for sql in statements:
            try:
                c.execute(sql)
            except duckdb.FatalException as error:
                print(error)
                return
            except duckdb.Error:  # a conflict
                pass


index = ("DROP INDEX IF EXISTS i", "CREATE INDEX i ON t (v)")
every = [index, *[(f"UPDATE t SET v = v + 1 WHERE k = {1 + i % 3}",) for i in range(6)]]
for one in (clients := [threading.Thread(target=client, args=sql) for sql in every]):
    one.start()
