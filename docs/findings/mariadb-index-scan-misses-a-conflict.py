"""python FILE PORT: needs PyMySQL; creates a table in the database test, and drops it."""

import sys

import pymysql


def connect():
    more = {"init_command": "SET innodb_snapshot_isolation = ON", "database": "test"}
    return pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", **more)


def run(connection, text):
    cursor = connection.cursor()
    count = cursor.execute(text)
    return cursor.fetchall() if cursor.description else count


worker, other = connect(), connect()
run(worker, "CREATE OR REPLACE TABLE job (id INT PRIMARY KEY, state INT NOT NULL, KEY (state))")
run(worker, "INSERT INTO job SELECT seq, IF(seq < 4, 0, seq) FROM seq_1_to_2000")
worker.commit()
print("the worker reads:", run(worker, "SELECT id FROM job WHERE id = 1"))
print("another takes:   ", run(other, "UPDATE job SET state = 1 WHERE id = 2"))
other.commit()
print("the worker locks:", run(worker, "SELECT id FROM job WHERE state = 0 FOR UPDATE"))
print("the worker reads:", run(worker, "SELECT id FROM job WHERE state = 0"))
worker.commit()
print("both committed")
run(worker, "DROP TABLE job")
