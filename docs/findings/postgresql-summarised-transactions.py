"""python FILE "host=… dbname=…": needs psycopg 3; creates two tables."""

import sys

import psycopg


def connect():
    connection = psycopg.connect(sys.argv[1])
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    connection.execute("SET enable_seqscan = off")  # a scan of all would lock the whole table
    connection.commit()
    return connection


alice, bob, others = connect(), connect(), connect()
alice.execute("DROP TABLE IF EXISTS finding, noise")
alice.execute("CREATE TABLE finding (name text PRIMARY KEY, on_call bool)")
alice.execute("INSERT INTO finding VALUES ('alice', true), ('bob', true)")
alice.execute("CREATE TABLE noise (k int)")
alice.commit()

check = "SELECT on_call FROM finding WHERE name = %s"
leave = "UPDATE finding SET on_call = false WHERE name = %s"
print("alice reads bob:", alice.execute(check, ["bob"]).fetchone())
print("bob reads alice:", bob.execute(check, ["alice"]).fetchone())
bob.execute(leave, ["bob"])
bob.commit()
for number in range(5000):
    others.execute("INSERT INTO noise VALUES (%s)", [number])
    others.commit()
alice.execute(leave, ["alice"])
alice.commit()
print("both committed:", alice.execute("SELECT * FROM finding").fetchall())
