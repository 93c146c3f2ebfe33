"""python FILE "host=… dbname=…": needs psycopg 3; creates a table, and drops it."""

import atexit
import sys

import psycopg


def connect():
    connection = psycopg.connect(sys.argv[1])
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return connection


user, cleaner = connect(), connect()
user.execute("CREATE TABLE finding_login (name text PRIMARY KEY, until int)")
user.execute("CREATE INDEX ON finding_login (until)")
user.execute("INSERT INTO finding_login SELECT 'user' || i, i FROM generate_series(0, 2000) i")
user.execute("ANALYZE finding_login")
user.commit()


@atexit.register
def drop():
    list(map(psycopg.Connection.close, (user, cleaner)))
    psycopg.connect(sys.argv[1], autocommit=True).execute("DROP TABLE finding_login")


read, expired = "SELECT * FROM finding_login WHERE name = 'user0'", "finding_login WHERE until = 0"
print("the user reads:   ", user.execute(read).fetchall())
print("the cleaner reads:", cleaner.execute(f"SELECT * FROM {expired}").fetchall())
print("and deletes:      ", cleaner.execute(f"DELETE FROM {expired}").rowcount)
cleaner.commit()
user.execute("INSERT INTO finding_login VALUES ('user0', 5000)")
print("the user inserts, and reads:", user.execute(read).fetchall())
user.commit()
print("both committed; left:", user.execute(read).fetchall())
