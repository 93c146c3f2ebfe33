"""python FILE "host=… dbname=…": needs psycopg 3; makes two large objects, and removes them."""

import sys

import psycopg


def connect():
    connection = psycopg.connect(sys.argv[1])
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return connection


def read(connection, number):
    return connection.execute("SELECT lo_get(%s)", [number]).fetchone()[0]


first, second = connect(), connect()
x, y = (first.execute("SELECT lo_from_bytea(0, 'here')").fetchone()[0] for _ in "xy")
first.commit()

print("first reads x:", read(first, x), " second reads y:", read(second, y))
first.execute("SELECT lo_put(%s, 0, 'gone')", [y])
second.execute("SELECT lo_put(%s, 0, 'gone')", [x])
first.commit()
second.commit()
print("both committed:", read(first, x), read(first, y))
first.execute("SELECT lo_unlink(%s), lo_unlink(%s)", [x, y])
first.commit()
