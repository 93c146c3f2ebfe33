"""The options of a workload, checked against each other."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Literal, TypeAlias

from msgspec import Struct

from isolang.errors import HistoryError
from isolang.workload.anomalies import BUGS
from isolang.workload.rules import RULES

KeyDistribution: TypeAlias = Literal["uniform", "zipfian", "hotspot", "exponential"]
KEY_DISTRIBUTIONS = ("uniform", "zipfian", "hotspot", "exponential")


class Workload(Struct, frozen=True, kw_only=True):
    """Options of a random workload; equal options give equal histories, on every machine.

    Attributes:
        rule: what the database guarantees, a name from :data:`isolang.workload.RULES`.
        bugs: what goes wrong once, names from :data:`isolang.workload.BUGS`, spread evenly over the
            history.
        sessions: clients that run at the same time, each one transaction after the other.
        transactions: how many begin, those of bugs not counted.
        operations: operations of each transaction.
        read_share: the share of reads among all operations.
        keys: how many keys.
        key_distribution: how operations choose keys: ``uniform``; ``zipfian`` with ``theta``;
            ``hotspot``: ``hot_share`` of the operations on ``hot_keys`` of the keys;
            ``exponential``: 95 % of the operations on the first 6/7 of the keys, as in YCSB.
        theta: the exponent of ``zipfian``: key i is chosen proportionally to 1 / i^theta.
        hot_keys: the share of the keys that is hot.
        hot_share: the share of the operations that goes to hot keys.
        values: 0: the writes of each key have the values 1, 2, 3, …; else each write has one of
            the values 1 … ``values``, so that reads have several writes to come from.
        value_theta: the exponent of a zipfian choice of values; 0 is uniform.
        read_modify_write: the share of writes that follow a read of their key in the transaction
            (reads count in ``read_share``, so that this needs a share of at least m / (1 + m)); 0
            is blind writes.
        mini_transactions: one or two keys in each transaction, each read and then perhaps written
            (``operations`` and ``read_modify_write`` do not matter then).
        lists: appends and list reads in place of writes and reads.
        appends: with ``lists``: the number of appends after which a fresh key replaces a key.
        info_rate: the share of transactions whose outcome their client does not learn; half of them
            take effect. The client goes on in a new session.
        abort_rate: the share of transactions that abort.
        session_each: every transaction is a session of its own; still only ``sessions`` run at a
            time.
        lag: events (three for each transaction) by which a stale snapshot or a replica may lag
            behind; 0 is 8 for each session.
        replicas: with the rules ``causal`` and ``read-atomic``.
        seed: of all random choices.
    """

    rule: str = "serializable"
    bugs: tuple[str, ...] = ()
    sessions: int = 10
    transactions: int = 100
    operations: int = 8
    read_share: float = 0.5
    keys: int = 100
    key_distribution: KeyDistribution = "uniform"
    theta: float = 0.99
    hot_keys: float = 0.2
    hot_share: float = 0.8
    values: int = 0
    value_theta: float = 0.0
    read_modify_write: float = 0.0
    mini_transactions: bool = False
    lists: bool = False
    appends: int = 32
    info_rate: float = 0.0
    abort_rate: float = 0.0
    session_each: bool = False
    lag: int = 0
    replicas: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse names that mean nothing; numbers are checked by the simulator.

        Raises:
            HistoryError: naming what is wrong.
        """
        _one_of("rule", self.rule, RULES)
        _one_of("key distribution", self.key_distribution, KEY_DISTRIBUTIONS)
        for bug in self.bugs:
            _one_of("bug", bug, BUGS)
        if len(set(self.bugs)) < len(self.bugs):
            raise HistoryError(f"workload: a bug twice (got {', '.join(self.bugs)})")


def _one_of(what: str, name: str, names: Collection[str]) -> None:
    if name in names:
        return
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    msg = f"workload: unknown {what} (got {name!r}, expected one of {', '.join(names)}){hint}"
    raise HistoryError(msg)
