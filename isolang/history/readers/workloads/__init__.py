"""Histories of Jepsen's workloads whose operations are not written as reads and writes of keys.

A bank, a set, a counter, comments, and inserts in a row: each is translated into equivalent reads
and writes of keys, as far as these exist. ``operations`` pairs invocations with completions; one
file for each kind of workload translates them; ``read`` detects the kind.
"""
