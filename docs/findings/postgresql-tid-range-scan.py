"""python FILE "host=… dbname=…": needs psycopg 3; creates a table, and drops it."""

import atexit
import sys

import psycopg


def connect():
    connection = psycopg.connect(sys.argv[1])
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return connection


first, second = connect(), connect()
first.execute("CREATE TABLE finding_tid_scan (name text PRIMARY KEY, on_call bool)")
first.execute("INSERT INTO finding_tid_scan VALUES ('alice', true), ('bob', true)")
first.commit()


@atexit.register
def drop():
    list(map(psycopg.Connection.close, (first, second)))
    psycopg.connect(sys.argv[1], autocommit=True).execute("DROP TABLE finding_tid_scan")


for connection in (first, second):
    connection.execute("SET enable_seqscan = off")  # the rows are updated by the primary key
    connection.commit()

rows = "SELECT * FROM finding_tid_scan WHERE ctid >= '(0,0)' AND ctid < '(1000,0)'"
print("first reads: ", first.execute(rows).fetchall())
print("second reads:", second.execute(rows).fetchall())
first.execute("UPDATE finding_tid_scan SET on_call = false WHERE name = 'alice'")
second.execute("UPDATE finding_tid_scan SET on_call = false WHERE name = 'bob'")
first.commit()
second.commit()
print("both committed:", first.execute("SELECT * FROM finding_tid_scan").fetchall())
