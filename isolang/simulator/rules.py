"""Defines the rules of the simulated database, each with a proof that it guarantees its level.

Time is a counter of events. A transaction begins at b, takes effect at c and is answered at e,
where b < c < e and all times are different. Its writes become versions of their keys at c.
Therefore all arguments use the order of the times c as the version order ``ww`` and as the
arbitration ``ar``. The rule determines what a transaction reads. The next transaction of a session
begins after the answer e to the previous transaction.

The arguments use the definitions in ``docs/levels.md``. *Not …* names a level that the rule does
not guarantee, because it permits an anomaly. A history may contain this anomaly by chance, or
because :mod:`isolang.simulator.anomalies` plants it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

RuleName: TypeAlias = Literal[
    "strict-serializable",
    "serializable",
    "strong-snapshot",
    "snapshot",
    "prefix",
    "causal",
    "read-atomic",
    "read-committed",
]


class Rule(Struct, frozen=True, kw_only=True):
    """A rule for the reads of transactions, and the level guaranteed by the rule.

    Attributes:
        level: the strongest level that every history under the rule satisfies.
        reads: the mechanism by which reads choose versions (``Reads`` in
            ``native/simulator/workload.hpp``).
        exclusive: whether the snapshot of a transaction contains the newest version of each key
            that the transaction writes.
        stale: whether a snapshot may be older than the beginning of the transaction that reads it.
        causal: whether replicas learn of transactions in causal order.
        argument: the proof that the rule guarantees the level, and in general no stronger level.
    """

    name: RuleName
    level: str
    reads: Literal["instant", "snapshot", "moving", "replica"]
    exclusive: bool = False
    stale: bool = False
    causal: bool = False
    argument: str


RULES: Final[dict[str, Rule]] = {
    rule.name: rule
    for rule in (
        Rule(
            name="strict-serializable",
            level="sser",
            reads="instant",
            argument="All reads and writes happen at c, between begin and answer: the order of c "
            "is serial and respects sessions and real time.",
        ),
        Rule(
            name="serializable",
            level="ser",
            reads="instant",
            stale=True,
            argument="As strict-serializable, but a read-only transaction reads at an instant s "
            "that may lie before b, not before its session's last instant. The order of instants "
            "is serial and respects sessions. Not SSER: s may miss what ended before b.",
        ),
        Rule(
            name="strong-snapshot",
            level="strong-si",
            reads="snapshot",
            exclusive=True,
            argument="Reads at a snapshot s, b <= s < c, that is not older than the newest "
            "version of any key it writes, as if it had waited for those keys' locks before: "
            "nobody else writes them between s and c, and so, rt, wr, ww lead from a c to a later "
            "s. Not SER: two such transactions may each miss the other's write (write skew).",
        ),
        Rule(
            name="snapshot",
            level="si",
            reads="snapshot",
            exclusive=True,
            stale=True,
            argument="As strong-snapshot, but s may lie before b, not before its session's last "
            "c. Then rt need not lead from c to s, but so still does. Not strong SI: stale "
            "snapshots. Not SER: write skew.",
        ),
        Rule(
            name="prefix",
            level="pc",
            reads="snapshot",
            stale=True,
            argument="As snapshot without the condition on written keys: so and wr lead from a c "
            "to a later s, rw from an s to a later c, ww from a c to a later c, so that (so | wr) "
            "; rw? and ww go up. Not SI: two may read a version and both replace it (lost "
            "update).",
        ),
        Rule(
            name="causal",
            level="cc",
            reads="replica",
            causal=True,
            argument="A session stays at one replica and reads, at c, of each key the last "
            "version (by c) known there. A transaction is known at its own replica at once, at "
            "another only after all that its own replica knew: visibility is transitive and "
            "contains so and wr. Not PC: two replicas may know two transactions in different "
            "orders (long fork).",
        ),
        Rule(
            name="read-atomic",
            level="ra",
            reads="replica",
            argument="As causal, but transactions, still whole, become known in any order: "
            "visibility contains so and wr but is not transitive. Not CC: a transaction may be "
            "seen without what it had read from.",
        ),
        Rule(
            name="read-committed",
            level="rc",
            reads="moving",
            argument="Each read happens at an instant of its own, b <= s1 <= s2 <= … < c, and "
            "returns the version that is newest then. Who has read from T finds, later, T's "
            "version of another key or a newer one. Not RA: between two reads a transaction may "
            "write both keys (fractured read).",
        ),
    )
}
