"""Histories of Jepsen's workloads whose operations are not written as reads and writes of keys.

The operations of a bank, a set, a counter, comments, and sequential inserts are translated into
equivalent reads and writes of keys, as far as these exist. ``operations`` pairs invocations with
completions, and ``read`` detects the kind of workload. There is one file for each kind, which
translates its operations.
"""
