"""Runs workloads on real databases, and judges the histories that they record.

An adapter of a database imports the modules beside this one: ``target`` is what it must offer,
``adapter`` what all adapters share, ``operation`` what a transaction asks of a database,
``outcome`` what its errors mean, ``address`` how a user names it; ``settings`` are the options of a
run. The folders, from the bottom up: ``marks`` in the database, ``record`` of what clients did,
``drivers`` of known packages and ``servers`` started here; ``sql`` and ``families`` of databases,
and their ``targets``; ``workloads``; ``play``, ``judge``, and on top ``litmus`` and ``survey``.
"""
