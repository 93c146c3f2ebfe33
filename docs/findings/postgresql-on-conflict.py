"""python FILE "host=… dbname=…": needs psycopg 3; creates a table, and drops it."""

import atexit
import sys

import psycopg


def connect():
    connection = psycopg.connect(sys.argv[1])
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    connection.execute("SET enable_seqscan = off")  # a scan of all would lock the whole table
    connection.commit()
    return connection


first, second = connect(), connect()
first.execute("CREATE TABLE finding_on_conflict (k text PRIMARY KEY)")
first.execute("INSERT INTO finding_on_conflict VALUES ('x'), ('y')")
first.commit()


@atexit.register
def drop():
    list(map(psycopg.Connection.close, (first, second)))
    psycopg.connect(sys.argv[1], autocommit=True).execute("DROP TABLE finding_on_conflict")


insert = "INSERT INTO finding_on_conflict VALUES (%s) ON CONFLICT DO NOTHING"
print("first finds x:", first.execute(insert, ["x"]).rowcount == 0)
print("second finds y:", second.execute(insert, ["y"]).rowcount == 0)
first.execute("DELETE FROM finding_on_conflict WHERE k = 'y'")
second.execute("DELETE FROM finding_on_conflict WHERE k = 'x'")
first.commit()
second.commit()
print("both committed; left:", first.execute("SELECT k FROM finding_on_conflict").fetchall())
