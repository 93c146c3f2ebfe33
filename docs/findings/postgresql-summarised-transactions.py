"""python FILE "host=… dbname=…": needs psycopg 3; creates two tables, and drops them."""

import atexit
import sys

import psycopg


def connect():  # A scan of all rows would lock the whole table.
    connection = psycopg.connect(sys.argv[1], options="-c enable_seqscan=off")
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return connection


alice, bob, others = connect(), connect(), connect()
alice.execute("CREATE TABLE finding_noise (k int)")
alice.execute("CREATE TABLE finding_calls (name text PRIMARY KEY, on_call bool)")
alice.execute("INSERT INTO finding_calls VALUES ('alice', true), ('bob', true)")
alice.commit()


@atexit.register
def drop():
    list(map(psycopg.Connection.close, (alice, bob, others)))
    database = psycopg.connect(sys.argv[1], autocommit=True)
    database.execute("DROP TABLE IF EXISTS finding_calls, finding_noise")


check = "SELECT on_call FROM finding_calls WHERE name = %s"
leave = "UPDATE finding_calls SET on_call = false WHERE name = %s"
print("alice reads bob:", alice.execute(check, ["bob"]).fetchone())
print("bob reads alice:", bob.execute(check, ["alice"]).fetchone())
bob.execute(leave, ["bob"])
bob.commit()
for number in range(5000):
    others.execute("INSERT INTO finding_noise VALUES (%s)", [number])
    others.commit()
alice.execute(leave, ["alice"])
alice.commit()
print("both committed:", alice.execute("SELECT * FROM finding_calls").fetchall())
