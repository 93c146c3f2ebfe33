"""Observes applications on MariaDB: their reads from the wire, all writes from the server's log.

A proxy of the MySQL protocol adds to each SELECT the whole rows that it read, and to the front of
each other statement a comment that the server's log repeats. At the end, the log names every write
in the order of each row's versions, also those of other clients; the comments place the writes
among the reads.
"""
