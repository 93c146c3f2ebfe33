"""python FILE "host=… dbname=…": needs psycopg 3; creates a table."""

import sys

import psycopg


def connect():
    connection = psycopg.connect(sys.argv[1])
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return connection


first, second = connect(), connect()
first.execute("DROP TABLE IF EXISTS finding")
first.execute("CREATE TABLE finding (name text PRIMARY KEY, on_call bool)")
first.execute("INSERT INTO finding VALUES ('alice', true), ('bob', true)")
first.commit()
for connection in (first, second):
    connection.execute("SET enable_seqscan = off")  # the rows are updated by the primary key
    connection.commit()

rows = "SELECT * FROM finding WHERE ctid >= '(0,0)' AND ctid < '(1000,0)'"
print("first reads: ", first.execute(rows).fetchall())
print("second reads:", second.execute(rows).fetchall())
first.execute("UPDATE finding SET on_call = false WHERE name = 'alice'")
second.execute("UPDATE finding SET on_call = false WHERE name = 'bob'")
first.commit()
second.commit()
print("both committed:", first.execute("SELECT * FROM finding").fetchall())
