"""python arcadedb-index-returns-other-rows.py: needs the package arcadedb-embedded."""

import tempfile
from concurrent.futures import ThreadPoolExecutor

import arcadedb_embedded

database = arcadedb_embedded.create_database(tempfile.mkdtemp() + "/d")
reader, writer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)  # a transaction is its thread's


def run(thread, call, *values):
    return thread.submit(call, *values).result()


def change(command):
    with database.transaction():
        database.command("sql", command)


database.command("sql", "CREATE DOCUMENT TYPE Item")
database.command("sql", "CREATE PROPERTY Item.v LONG")
database.command("sql", "CREATE INDEX ON Item (v) NOTUNIQUE")
for number in range(3):
    run(writer, change, f"INSERT INTO Item SET k = {number}, v = 1")
run(reader, database.begin)
rows = run(reader, lambda: iter(database.query("sql", "SELECT FROM Item WHERE v < 10")))
print("first row: v =", run(reader, lambda: next(rows).get("v")))
run(writer, change, "UPDATE Item SET v = 77")
print("other rows of WHERE v < 10: v =", run(reader, lambda: [row.get("v") for row in rows]))
run(reader, database.commit)
print("both committed")
