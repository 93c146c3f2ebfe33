"""python duckdb-update-of-a-key.py: needs the package duckdb."""

import duckdb

database = duckdb.connect()
database.execute("CREATE TABLE counter (id INT PRIMARY KEY, n INT)")
database.execute("INSERT INTO counter VALUES (1, 0)")
first, second = database.cursor(), database.cursor()
first.begin()
second.begin()

read = "SELECT n FROM counter WHERE id = 1"
print("first reads: ", first.execute(read).fetchall())
print("second reads:", second.execute(read).fetchall())
add = first.execute("UPDATE counter SET id = 1, n = 1 WHERE id = 1")  # all columns, as ORMs do
print("rows that the first has changed: ", add.fetchall())
add = second.execute("UPDATE counter SET n = 10 WHERE id = 1")
print("rows that the second has changed:", add.fetchall())
first.commit()
second.commit()
print("both committed; left:", database.execute("SELECT * FROM counter").fetchall())
