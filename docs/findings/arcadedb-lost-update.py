"""python arcadedb-lost-update.py: needs the package arcadedb-embedded."""

import tempfile
from concurrent.futures import ThreadPoolExecutor

import arcadedb_embedded

database = arcadedb_embedded.create_database(tempfile.mkdtemp() + "/d")
first, second = ThreadPoolExecutor(1), ThreadPoolExecutor(1)  # a transaction is its thread's


def run(thread, call, *values):
    return thread.submit(call, *values).result()


def read():
    return [row.get("v") for row in database.query("sql", "SELECT FROM Item WHERE k = 'x'")]


def write(value):
    list(database.command("sql", f"UPDATE Item SET v = {value} WHERE k = 'x'"))


database.command("sql", "CREATE DOCUMENT TYPE Item")
with database.transaction():
    database.command("sql", "INSERT INTO Item SET k = 'x', v = 10")
for thread in (first, second):
    run(thread, database.begin)
    print("read x =", run(thread, read))
for thread, value in ((second, 11), (first, 12)):
    run(thread, write, value)
    run(thread, database.commit)  # the first one's is documented to fail
print("both committed; left:", read())
