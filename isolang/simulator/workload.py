"""The options of a simulated workload, with checks of their values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal, TypeAlias

from isolang.declared import NUMBER, SEED, About, CheckedOptions
from isolang.errors import HistoryError, OptionError, none_of
from isolang.simulator.anomalies import BUGS
from isolang.simulator.rules import RULES

KeyDistribution: TypeAlias = Literal["uniform", "zipfian", "hotspot", "exponential"]
KEY_DISTRIBUTIONS = ("uniform", "zipfian", "hotspot", "exponential")


_SIZE, _KEYS, _RULE = "Size", "Keys and values", "What the database does"


def _count(text: str, panel: str) -> About:
    return About(text, "N", panel, bounds=NUMBER)


class Workload(CheckedOptions, frozen=True, kw_only=True):
    """Options of a random workload; equal options give equal histories, on every machine.

    Attributes:
        rule: the guarantee of the database: a name from :data:`isolang.simulator.RULES`.
        bugs: names from :data:`isolang.simulator.BUGS`; each occurs once, spread evenly over the
            history.
        sessions: the number of concurrent clients, each of which runs one transaction at a time.
        transactions: the number of transactions, without those of bugs.
        key_distribution: the distribution of keys over operations: ``uniform``; ``zipfian`` with
            ``theta``; ``hotspot``: ``hot_share`` of the operations on ``hot_keys`` of the keys;
            ``exponential``: 95 % of the operations on the first 6/7 of the keys, as in YCSB.
        theta: the exponent of ``zipfian``: key i is chosen proportionally to 1 / i^theta.
        values: 0: the writes of each key have the values 1, 2, 3, …; else each write has one of
            the values 1 … ``values``, so that reads have several writes to come from.
        read_modify_write: the share of writes that follow a read of their key in the transaction
            (these reads count in ``read_share``, which must be at least m / (1 + m)); 0 for blind
            writes.
        mini_transactions: each transaction reads one or two keys and perhaps writes each afterwards
            (``operations`` and ``read_modify_write`` have no effect then).
        appends: with ``lists``: the number of appends after which a fresh key replaces a key.
        info_rate: the share of transactions whose outcome their client does not learn; half of them
            take effect. The client goes on in a new session.
        session_each: every transaction is a session of its own; still, only ``sessions`` of them
            run at a time.
        lag: events (three for each transaction) by which a stale snapshot or a replica may lag
            behind; 0 is 8 for each session.
    """

    rule: Annotated[str, About(f"What it guarantees: {', '.join(RULES)}.", "RULE", _RULE)] = (
        "serializable"
    )
    bugs: Annotated[
        tuple[str, ...],
        About(f"What goes wrong once: {', '.join(BUGS)}; may be repeated.", "BUG", _RULE, "--bug"),
    ] = ()
    lag: Annotated[int, _count("Events that snapshots and replicas may lag; 0: 8 N.", _RULE)] = 0
    replicas: Annotated[int, _count("Of causal and read-atomic.", _RULE)] = 3
    info_rate: Annotated[float, About("Unknown outcomes.", "P", _RULE)] = 0.0
    abort_rate: Annotated[float, About("Aborts.", "P", _RULE)] = 0.0
    sessions: Annotated[int, _count("Clients at a time.", _SIZE)] = 10
    transactions: Annotated[int, _count("Transactions.", _SIZE)] = 100
    operations: Annotated[int, _count("Operations of each.", _SIZE)] = 8
    session_each: Annotated[bool, About("Each is a session of its own.", "", _SIZE)] = False
    mini_transactions: Annotated[
        bool, About("One or two keys, read before written.", "", _SIZE)
    ] = False
    keys: Annotated[int, _count("Keys.", _KEYS)] = 100
    key_distribution: Annotated[
        KeyDistribution, About("How operations choose keys.", "", _KEYS)
    ] = "uniform"
    theta: Annotated[float, About("Of zipfian keys.", "X", _KEYS)] = 0.99
    hot_keys: Annotated[float, About("Share of hot keys.", "P", _KEYS)] = 0.2
    hot_share: Annotated[float, About("Their share of operations.", "P", _KEYS)] = 0.8
    values: Annotated[int, _count("Different values of a key; 0: all different.", _KEYS)] = 0
    value_theta: Annotated[float, About("Zipfian values; 0 is uniform.", "X", _KEYS)] = 0.0
    read_share: Annotated[float, About("Reads among operations.", "P", _KEYS)] = 0.5
    read_modify_write: Annotated[
        float, About("Writes that follow a read of their key.", "P", _KEYS)
    ] = 0.0
    lists: Annotated[bool, About("Appends and list reads; EDN only.", "", _KEYS)] = False
    appends: Annotated[int, _count("With --lists: to each key.", _KEYS)] = 32
    seed: Annotated[int, About("Of all random choices.", "N", bounds=SEED)] = 0

    def __post_init__(self) -> None:
        """Check names and bounds; the simulator checks numbers against each other.

        Raises:
            HistoryError: a value is wrong.
        """
        _one_of("rule", self.rule, RULES)
        _one_of("key distribution", self.key_distribution, KEY_DISTRIBUTIONS)
        for bug in self.bugs:
            _one_of("bug", bug, BUGS)
        if len(set(self.bugs)) < len(self.bugs):
            raise HistoryError(f"workload: a bug twice (got {', '.join(self.bugs)})")
        try:
            super().__post_init__()
        except OptionError as error:
            raise HistoryError(f"workload: {error}") from None


def _one_of(what: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise HistoryError(f"workload: unknown {what} {none_of(name, names)}")
