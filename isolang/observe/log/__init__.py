"""Reads the writes of an observed MariaDB server from its binary log.

``tables`` knows the tables, and which text stands for each value. ``values`` and ``events`` decode
the log into the same texts. ``stream`` reads it while the server writes it. ``replay`` applies it
to the rows of a snapshot, with the cascades of foreign keys, which no log contains. ``mariadb``
yields committed transactions, and compares the replayed rows with the tables at the end.
"""
