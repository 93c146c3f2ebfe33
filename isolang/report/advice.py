"""Advises database engineers on what to do about a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isolang.language.vocabulary import MOMENTS, OF_STATEMENTS

if TYPE_CHECKING:
    from isolang.verdict import Verdict

# For each anomaly, the database levels that forbid it, and what an application can do if the
# database level stays the same.
_BY_ANOMALY: Final = {
    "lost update": (
        "Parallel snapshot isolation, snapshot isolation and serializability forbid a lost update; "
        "read committed and causal consistency allow it.",
        "In the application: lock the row when reading it (SELECT … FOR UPDATE), let the database "
        "compute the new value (UPDATE t SET v = v + 1), or compare a version before writing.",
    ),
    "write skew": (
        "Serializability forbids write skew; snapshot isolation (REPEATABLE READ in PostgreSQL) "
        "allows it.",
        "In the application: let one of the two transactions update the row that the other one "
        "writes, even without a change (UPDATE t SET v = v), or let both lock it (SELECT … FOR "
        "UPDATE, or FOR SHARE). A lock in only one of them does not prevent it; isocheck robust "
        "finds the reads to change.",
    ),
    "long fork": (
        "Prefix consistency, snapshot isolation and serializability forbid a long fork; parallel "
        "snapshot isolation and causal consistency allow it.",
        "Look at replicas: two readers saw two writes in opposite orders, which happens if each of "
        "them reads from another node.",
    ),
    "fractured read": (
        "Read atomic and every stronger level forbid fractured reads; read committed allows them.",
        "In the application: read all that belongs together in one statement, or at a level that "
        "reads from a snapshot.",
    ),
    "non-monotonic read": (
        "Read committed in the sense of the literature, and every stronger level, forbid it.",
        "A transaction read an older state than before: look for statements that went to different "
        "replicas or read from different snapshots.",
    ),
    "causality violation": (
        "Causal consistency and every stronger level forbid it.",
        "A transaction saw an effect without its cause: look for reads from a replica that lags "
        "behind, and for sessions that switch nodes.",
    ),
    "G-single": (
        "Snapshot isolation and serializability forbid read skew; read committed allows it.",
        "In the application: read at a level that reads from one snapshot (REPEATABLE READ in "
        "PostgreSQL).",
    ),
    "G2": (
        "Serializability forbids it; snapshot isolation allows it.",
        "In the application: update a row that was read, even without a change (UPDATE t SET v = "
        "v), where isocheck robust says so. Locks (SELECT … FOR UPDATE) prevent it for only a few "
        "reads.",
    ),
    "phantom": (
        "Snapshot isolation and serializability forbid it; read committed allows it.",
        "In the application: search and read at a level that reads from one snapshot (REPEATABLE "
        "READ in PostgreSQL).",
    ),
    "predicate write skew": (
        "Serializability forbids it; snapshot isolation (REPEATABLE READ in PostgreSQL) allows it.",
        "In the application: let both transactions lock or update one row that stands for the set, "
        "such as the parent row, or let a constraint of the database state the rule. A lock on the "
        "found rows does not prevent it, because the new row is not among them.",
    ),
    "G0": (
        "Every level forbids interleaved writes, so no other level helps: the database is at "
        "fault.",
    ),
    "G1a": (
        "Read committed forbids reading rolled-back writes; only read uncommitted allows it.",
    ),
    "G1b": (
        "Read committed forbids reading a value that its writer replaced; only read uncommitted "
        "allows it.",
    ),
    "G1c": (
        "Read committed forbids it: two transactions saw each other's writes.",
    ),
    "two values": (
        "Every level except PL-1, which ignores reads, forbids it, because a version has only one "
        "value. Check that the log names the right source.",
    ),
    "contradicting versions": (
        "No level allows it: the versions that the database states contradict each other. Check "
        "that they come from the same server as the answers. --ignore-versions checks only the "
        "answers.",
    ),
    "future read": (
        "Every level except PL-1, which ignores reads, forbids it: the " "database is at fault.",
    ),
    "not my own write": (
        "At every level except PL-1, which ignores reads, a transaction reads its own writes. "
        "Check that all its statements used the same connection.",
    ),
    "not my last write": (
        "At every level except PL-1, which ignores reads, a transaction reads its own last write.",
    ),
    "incompatible order": (
        "Every level forbids it: two reads show the elements of a list in contradictory orders. "
        "Look for lost or reordered writes in replication.",
    ),
    "duplicate element": (
        "Every level except PL-1, which ignores reads, forbids it. Look for a write that was "
        "retried after a timeout.",
    ),
    "thin-air read": (
        "A read returned a value that no recorded transaction wrote. Check that the recording "
        "contains every writer, including those that loaded the data and those that received no "
        "answer. If it does, the database is at fault at any level.",
    ),
}  # fmt: skip

# The meaning of each anomaly, for somebody new to the field.
_MEANS: Final = {
    "lost update": "Two transactions read the same value, and each wrote a new one: "
    "one of the two changes is lost.",
    "write skew": "Each of two transactions read what the other one changed, and both committed: "
    "a rule about both values can be broken although each transaction checked it.",
    "predicate write skew": "Each of two transactions searched for rows and missed the row that "
    "the other one added or changed: a rule about all rows, such as at most five, can be broken "
    "although each transaction checked it.",
    "long fork": "Two transactions saw two independent changes in opposite orders, "
    "which no single order of events explains.",
    "fractured read": "A transaction saw one part of another transaction's changes and missed "
    "another part.",
    "phantom": "A transaction searched for rows, missed one that matches, and then saw another "
    "change of the transaction that had added it.",
    "non-monotonic read": "A transaction saw another transaction's change, and then, in a later "
    "read, the state before it.",
    "causality violation": "A transaction saw the effect of a change and missed the change itself.",
    "G-single": "A transaction saw parts of two states of the database: the values "
    "that it read never existed at the same time.",
    "G2": "Several transactions each read a value that the next one changed: "
    "no serial order of them explains these reads.",
    "G0": "Two transactions wrote the same keys in opposite orders: the result mixes the changes "
    "of both.",
    "G1a": "A transaction read a value whose writer was rolled back, so it "
    "relied on a change that never happened.",
    "G1b": "A transaction read a value that its writer replaced before "
    "committing, so it relied on an intermediate state.",
    "G1c": "Transactions saw each other's changes in a circle: each of them would have to run "
    "before itself.",
    "two values": "Reads of one version of a key returned different values.",
    "contradicting versions": "The versions that the database states contradict each other.",
    "future read": "A transaction read a value that it only wrote later.",
    "not my own write": "A transaction wrote a key, read it back, and got another value.",
    "not my last write": "A transaction wrote a key twice, and then read the first of the "
    "two values.",
    "incompatible order": "Two reads of one list show its elements in contradictory orders.",
    "duplicate element": "A list contains an element more often than it was appended: a "
    "write took effect twice.",
    "thin-air read": "A transaction read a value that no recorded transaction wrote.",
    "no order": "No order of the writes gives every read the value that it returned.",
    "no assignment": "No choice of the level's relations gives every read the value that it "
    "returned.",
    "no model": "The solver found no explanation of the history, and no checker confirms it.",
}
_SESSION: Final = " This uses the order in which each client ran its transactions."
_REAL_TIME: Final = " This uses real time: one transaction had ended before another one began."

_ANY: Final = (
    "Stronger levels forbid it; isocheck levels shows which levels "
    "this history satisfies. If the database promises the violated "
    "level, report the smallest part and the certificate to its "
    "developers; if not, request a stronger level where the "
    "application needs it.",
)

_TIMES: Final = (
    "The argument uses real time: a read was stale although the write "
    "had already been acknowledged. Check that all recorded times come "
    "from one clock. Reads from replicas and caches are often stale in "
    "this way."
)

_MOMENTS: Final = (
    "The argument needs the times of operations. It holds if the "
    "clocks were right (--clock-error allows for errors) and if the "
    "database works as the profile's text assumes."
)
_CLOCKS: Final = frozenset((*MOMENTS, *OF_STATEMENTS))


def meaning(verdict: Verdict) -> str:
    """Return the meaning of a violation in a sentence or two; empty without a violation."""
    from isolang.verdict import Invalid

    if not isinstance(verdict, Invalid):
        return ""
    name = verdict.violation.anomaly
    base = name.removesuffix("-realtime").removesuffix("-session")
    about = verdict.violation.meaning
    sentence = _MEANS.get(base, f"{about[:1].upper()}{about[1:]}.")
    more = _REAL_TIME * name.endswith("-realtime") + _SESSION * name.endswith("-session")
    return sentence + more


def advice(verdict: Verdict) -> tuple[str, ...]:
    """Return paragraphs of advice to a database engineer about a verdict."""
    from isolang.verdict import Invalid, Unknown

    if isinstance(verdict, Unknown):
        return (
            "Allow more time (--timeout) or memory (--memory), or record a history that is easier "
            "to check: more distinct values, fewer blind writes, lists instead of registers.",
        )
    if not isinstance(verdict, Invalid):
        return ()
    violation = verdict.violation
    edges = [edge for _, cycle in violation.cycles() for edge in cycle.edges]
    if _CLOCKS & {edge.relation.partition("[")[0] for edge in edges}:
        return (_MOMENTS,)
    name = violation.anomaly
    base = name.removesuffix("-realtime").removesuffix("-session")
    paragraphs = _BY_ANOMALY.get(base, _ANY)
    return (*paragraphs, _TIMES) if name.endswith("-realtime") else paragraphs
