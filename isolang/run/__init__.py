"""Runs workloads on real databases, and judges the recorded histories.

An adapter for a database imports the modules in this folder: ``target`` defines the protocols that
adapters implement, ``adapter`` their base classes, ``operation`` the operations of transactions,
``outcome`` how transactions end and what errors mean, and ``address`` how users name a database.
``settings`` defines the options of a run.

The folders, from bottom to top: ``marks`` leaves marks of a run in a database, ``record`` records
the clients' transactions, ``drivers`` supports known client packages, and ``servers`` starts
servers. ``sql`` and ``families`` provide base classes for the adapters in ``targets``.
``workloads`` defines the transactions, ``play`` plays them, and ``judge`` judges their history.
``litmus`` plays litmus tests, and ``survey`` runs all workloads at all levels.
"""
