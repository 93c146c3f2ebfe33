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


def is_there(connection, key):
    try:
        with connection.transaction():  # a savepoint
            connection.execute("INSERT INTO finding_unique_violation VALUES (%s)", [key])
    except psycopg.errors.UniqueViolation:
        return True


first, second = connect(), connect()
first.execute("CREATE TABLE finding_unique_violation (k text PRIMARY KEY)")
first.execute("INSERT INTO finding_unique_violation VALUES ('x'), ('y')")
first.commit()


@atexit.register
def drop():
    list(map(psycopg.Connection.close, (first, second)))
    psycopg.connect(sys.argv[1], autocommit=True).execute("DROP TABLE finding_unique_violation")


first.execute("SELECT 1"), second.execute("SELECT 1")  # both have begun
print("first finds x:", is_there(first, "x"), " second finds y:", is_there(second, "y"))
first.execute("DELETE FROM finding_unique_violation WHERE k = 'y'")
second.execute("DELETE FROM finding_unique_violation WHERE k = 'x'")
first.commit(), second.commit()
print("both committed; left:", first.execute("SELECT k FROM finding_unique_violation").fetchall())
