"""python duckdb-delete-beside-update.py: needs the package duckdb."""

import duckdb

database = duckdb.connect()
database.execute("CREATE TABLE account (id INT, balance INT)")
database.execute("INSERT INTO account VALUES (1, 0)")
first, second = database.cursor(), database.cursor()
first.begin()
second.begin()

empty = "SELECT balance FROM account WHERE id = 1"
print("first reads: ", first.execute(empty).fetchall())
print("second reads:", second.execute(empty).fetchall())
deposit = first.execute("UPDATE account SET balance = 100 WHERE id = 1")
print("rows that the deposit has changed:", deposit.fetchall())
close = second.execute("DELETE FROM account WHERE id = 1 AND balance = 0")
print("rows that closing the account has deleted:", close.fetchall())
first.commit()
second.commit()
print("both committed; left:", database.execute("SELECT * FROM account").fetchall())
