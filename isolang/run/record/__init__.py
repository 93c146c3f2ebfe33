"""Recording: the recorder of transactions, and the lines of its file.

``recorder`` writes each transaction into a history while its client waits; ``lines`` spells the
lines, ``steps`` lets threads and coroutines record by the same code. ``database_log`` rewrites a
history that is complete with what the log of the database says: the order of its versions.
"""
