"""Histories of Jepsen's workloads whose operations are not written as reads and writes of keys.

A bank, a set, a counter, comments, and inserts in a row: each is translated into reads and writes
that say the same, as far as a history of keys can say it. ``operations`` pairs invocations with
completions; one file for each kind of workload says what they mean; ``read`` tells which it is.
"""
