"""python ladybug-write-skew.py: needs the package ladybug."""

import ladybug

database = ladybug.Database(":memory:", enable_multi_writes=True)
alice, bob = ladybug.Connection(database), ladybug.Connection(database)


def ask(connection, query):
    return list(connection.execute(query))


ask(alice, "CREATE NODE TABLE Doctor (name STRING PRIMARY KEY, on_call INT64)")
ask(alice, "CREATE (:Doctor {name: 'Alice', on_call: 1}), (:Doctor {name: 'Bob', on_call: 1})")
for connection in (alice, bob):
    ask(connection, "BEGIN TRANSACTION")
    print(ask(connection, "MATCH (d:Doctor) RETURN d.name, d.on_call"))
ask(alice, "MATCH (d:Doctor {name: 'Alice'}) SET d.on_call = 0")
ask(bob, "MATCH (d:Doctor {name: 'Bob'}) SET d.on_call = 0")
ask(alice, "COMMIT")
ask(bob, "COMMIT")
print("both committed; left:", ask(alice, "MATCH (d:Doctor) RETURN d.name, d.on_call"))
