"""python ladybug-failed-commit.py: needs the package ladybug."""

import ladybug

database = ladybug.Database(":memory:", enable_multi_writes=True)
first, second = ladybug.Connection(database), ladybug.Connection(database)


def ask(connection, query):
    return list(connection.execute(query))


ask(first, "CREATE NODE TABLE Item (k STRING PRIMARY KEY, v INT64)")
for connection, value in ((first, 1), (second, 2)):
    ask(connection, "BEGIN TRANSACTION")
    ask(connection, f"CREATE (:Item {{k: 'b', v: {value}}})")
ask(first, "COMMIT")
try:
    ask(second, "COMMIT")
except RuntimeError as error:
    print("second, v = 2:", error)
ask(first, "CREATE (:Item {k: 'a', v: 3})")
print("both committed: b = 1 and a = 3; left:", ask(first, "MATCH (n:Item) RETURN n.k, n.v"))
print("key a:", ask(first, "MATCH (n:Item {k: 'a'}) RETURN n.k, n.v"))
