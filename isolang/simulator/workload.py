"""The options of a simulated workload, with checks of their values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal, TypeAlias

from isolang.declared import NUMBER, SEED, About, CheckedOptions
from isolang.errors import HistoryError, OptionError, unknown_name_details
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

    rule: Annotated[
        str, About(f"What the database guarantees: {', '.join(RULES)}.", "RULE", _RULE)
    ] = "serializable"
    bugs: Annotated[
        tuple[str, ...],
        About(
            f"Plant this anomaly once: {', '.join(BUGS)}; may be repeated.", "BUG", _RULE, "--bug"
        ),
    ] = ()
    lag: Annotated[
        int,
        _count(
            "By how many events snapshots and replicas may lag; 0: eight for each session.", _RULE
        ),
    ] = 0
    replicas: Annotated[
        int, _count("The number of replicas, with --rule causal or read-atomic.", _RULE)
    ] = 3
    info_rate: Annotated[
        float, About("The share of transactions with an unknown outcome.", "P", _RULE)
    ] = 0.0
    abort_rate: Annotated[float, About("The share of transactions that abort.", "P", _RULE)] = 0.0
    sessions: Annotated[int, _count("The number of concurrent clients.", _SIZE)] = 10
    transactions: Annotated[int, _count("The number of transactions.", _SIZE)] = 100
    operations: Annotated[int, _count("The operations in each transaction.", _SIZE)] = 8
    session_each: Annotated[
        bool, About("Give each transaction a session of its own.", "", _SIZE)
    ] = False
    mini_transactions: Annotated[
        bool,
        About(
            "Let each transaction read one or two keys, and write only keys that it has read.",
            "",
            _SIZE,
        ),
    ] = False
    keys: Annotated[int, _count("The number of keys.", _KEYS)] = 100
    key_distribution: Annotated[
        KeyDistribution, About("How operations choose their keys.", "", _KEYS)
    ] = "uniform"
    theta: Annotated[float, About("The exponent of the zipfian distribution.", "X", _KEYS)] = 0.99
    hot_keys: Annotated[
        float, About("With hotspot: the share of keys that are hot.", "P", _KEYS)
    ] = 0.2
    hot_share: Annotated[
        float, About("With hotspot: the share of operations on hot keys.", "P", _KEYS)
    ] = 0.8
    values: Annotated[
        int,
        _count(
            "The number of different values for each key; 0: every write has a new value.", _KEYS
        ),
    ] = 0
    value_theta: Annotated[
        float, About("The exponent of a zipfian distribution of values; 0: uniform.", "X", _KEYS)
    ] = 0.0
    read_share: Annotated[float, About("The share of operations that read.", "P", _KEYS)] = 0.5
    read_modify_write: Annotated[
        float, About("The share of writes whose transaction reads the key first.", "P", _KEYS)
    ] = 0.0
    lists: Annotated[
        bool, About("Append to lists and read lists instead of registers; EDN only.", "", _KEYS)
    ] = False
    appends: Annotated[
        int,
        _count(
            "With --lists: how many appends a key receives before a new key replaces it.", _KEYS
        ),
    ] = 32
    seed: Annotated[int, About("The seed for all random choices.", "N", bounds=SEED)] = 0

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
            raise HistoryError(
                f"workload: each bug may be named only once (got {', '.join(self.bugs)})"
            )
        try:
            super().__post_init__()
        except OptionError as error:
            raise HistoryError(f"workload: {error}") from None


def _one_of(what: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise HistoryError(f"workload: unknown {what} {unknown_name_details(name, names)}")
