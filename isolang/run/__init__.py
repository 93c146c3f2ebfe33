"""Runs workloads on real databases, and judges the histories that they record.

An adapter of a database imports the modules of this folder: ``target`` has the protocols that an
adapter implements, ``adapter`` its base classes, ``operation`` the operations of transactions,
``outcome`` the meaning of errors, and ``address`` the user's name of a database. ``settings`` has
the options of a run. The folders, from the bottom up: ``marks`` that runs leave in a database,
``record`` for what clients did, ``drivers`` of known packages and ``servers`` that isocheck starts;
``sql`` and ``families`` of databases, and their ``targets``; ``workloads``; ``play``, ``judge``,
and on top ``litmus`` and ``survey``.
"""
