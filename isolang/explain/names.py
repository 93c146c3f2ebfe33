"""Names anomalies as in ``docs/anomalies.md``; a name depends only on the cycle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from isolang.language.vocabulary import COMPARING_TIMES, relation_of
from isolang.problem.anomalies import AnomalyKind

if TYPE_CHECKING:
    from isolang.certify.steps import AnomalyStep, Edge

INTRINSIC: Final = {
    AnomalyKind.THIN_AIR_READ: "thin-air read",
    AnomalyKind.ABORTED_READ: "G1a",
    AnomalyKind.INTERMEDIATE_READ: "G1b",
    AnomalyKind.FUTURE_READ: "future read",
    AnomalyKind.NOT_OWN_WRITE: "not my own write",
    AnomalyKind.NOT_LAST_OWN_WRITE: "not my last write",
    AnomalyKind.INCOMPATIBLE_ORDER: "incompatible order",
    AnomalyKind.DUPLICATE_ELEMENT: "duplicate element",
    AnomalyKind.SPLIT_APPEND: "G0",
    AnomalyKind.TWO_VALUES: "two values",
    AnomalyKind.CONTRADICTING_VERSIONS: "contradicting versions",
}

MEANING: Final = {
    "thin-air read": "a transaction read a value that no transaction wrote",
    "G1a": "aborted read: a transaction read a value that only aborted transactions wrote",
    "G1b": "intermediate read: a transaction read a value that its writer replaced before it ended",
    "future read": "a transaction read its own write before making it",
    "not my own write": "a transaction wrote a value and then read another one back",
    "not my last write": "a transaction read a value of its own that it had already replaced",
    "incompatible order": "two reads show the elements of a list in contradictory orders",
    "duplicate element": "a list shows an element more often than it was appended",
    "two values": "one version was read with two values, or with a value that was not written",
    "contradicting versions": "the database's account of versions contradicts its answers",
    "G0": "write cycle: the writes of transactions are interleaved",
    "G1c": "circular information flow: transactions depend on each other in a circle",
    "lost update": "a transaction overwrote a key that it had read, without seeing a "
    "write in between",
    "non-monotonic read": "a transaction saw one write of another transaction and then "
    "missed a second one",
    "fractured read": "a transaction saw one write of another transaction and missed a second one",
    "phantom": "a transaction missed rows that match its predicate, and then saw their writer",
    "causality violation": "a transaction saw an effect and missed its cause",
    "G-single": "a transaction missed a write that it should have seen (read skew)",
    "write skew": "two transactions each read a value that the other one then overwrote",
    "predicate write skew": "two transactions each read a value that the other one then "
    "overwrote, at least one of them with a predicate",
    "long fork": "readers saw writes in contradictory orders",
    "no order": "no order of the transactions explains what they read (no cycle shows it)",
    "G2": "anti-dependency cycle: no order of the transactions explains what they read",
    "no model": "a solver found no model, but there is no proof that none exists",
    "no assignment": "no choice of the relations in the specification satisfies its checks",
}
"""The meaning of each name in one line.

Name suffixes add *by a predicate read*, *counting the order of its session*, and *counting real
time* to the meaning.
"""

# Anomaly names, sorted so that anomalies forbidden only by strong levels come last. If an argument
# has several cycles, in its cases or its lemmas, we do not know which of them happened. The
# violation then gets the last of their names, which is correct whichever cycle happened.
SEVERITY: Final = ("G0", "G1c", "lost update", "non-monotonic read", "fractured read", "phantom",
                   "causality violation", "G-single", "long fork", "write skew",
                   "predicate write skew", "G2")  # fmt: skip

_PREDICATE = "-predicate"
_SUFFIXES = ("-session", "-realtime")


class Reads(Protocol):
    """A history, or the facts about one, with answers to questions about operations."""

    def of_predicate(self, op: int) -> bool:
        """Return whether an operation is one of a predicate read's set-reads."""

    def reads_first(self, op: int, later: int) -> bool:
        """Return whether ``op`` precedes ``later`` in the same transaction."""


def name_of_step(step: AnomalyStep) -> str:
    """Return the name of an intrinsic anomaly."""
    return INTRINSIC[AnomalyKind(step.kind)]


def name_of_cycle(edges: Sequence[Edge], writes: Callable[[int, int], bool], reads: Reads) -> str:
    """Return the name of a cycle.

    >>> from isolang import History, Transaction
    >>> from isolang.certify.steps import Edge
    >>> writer = Transaction([("w", "x", 1), ("w", "y", 1)])
    >>> reader = Transaction([("r", "y", None), ("r", "x", 1)])
    >>> history = History.from_transactions([writer, reader])
    >>> cycle = [Edge("wr", 0, 1, 0, 3), Edge("rw", 1, 0, 1, 2, 1)]
    >>> name_of_cycle(cycle, lambda txn, key: txn == 0, history)
    'fractured read'
    """
    edges = [edge for edge in edges if edge.relation not in _INSIDE]
    relations = [relation_of(edge.relation) for edge in edges]
    name = _plain_name(edges, relations, writes, reads)
    of_predicate = [
        edge.relation
        for edge in edges
        if edge.relation in ("wr", "rw") and reads.of_predicate(edge.op)
    ]
    if "rw" in of_predicate and name in _OF_PREDICATES and not _in_one_statement(edges, reads):
        name = _OF_PREDICATES[name]
    elif of_predicate:
        name += _PREDICATE
    return name + relation_suffix(relations)


_INSIDE: Final = ("po", "tx")
"""The relations between the beginning, the statements and the COMMIT of a single transaction."""


def relation_suffix(relations: Collection[str]) -> str:
    """Return the suffix for the name of a cycle with these relations.

    The suffix is ``-realtime`` if a relation compares times, otherwise ``-session`` if ``so`` is
    one of the relations, otherwise empty.
    """
    if set(relations) & COMPARING_TIMES:
        return "-realtime"
    return "-session" if "so" in relations else ""


_OF_PREDICATES: Final = {"fractured read": "phantom", "write skew": "predicate write skew"}
"""The usual names for cycles in which an anti-dependency belongs to a predicate read."""


def _in_one_statement(edges: Sequence[Edge], reads: Reads) -> bool:
    """Return whether one predicate read both saw and missed effects of the same transaction.

    Such a cycle is not a phantom.
    """
    (first, second) = (edge for edge in edges if edge.relation in ("wr", "rw"))
    saw = {first.relation, second.relation} == {"wr", "rw"}
    return saw and not any(
        reads.reads_first(a.op, b.op) for a, b in ((first, second), (second, first))
    )


def _plain_name(
    edges: Sequence[Edge],
    relations: list[str],
    writes: Callable[[int, int], bool],
    reads: Reads,
) -> str:
    anti = relations.count("rw")
    if anti == 0:
        return "G1c" if "wr" in relations else "G0"
    if anti == 1:
        return _single_rw_name(edges, relations, writes, reads)
    if anti == 2 and len(edges) == 2:
        # Either both transactions read and wrote one key and missed each other's write, or each
        # missed the other's write of a different key.
        return "lost update" if edges[0].key == edges[1].key else "write skew"
    following = (*relations[1:], relations[0])
    adjacent = any(a == b == "rw" for a, b in zip(relations, following, strict=True))
    return "G2" if adjacent else "long fork"


def _single_rw_name(
    edges: Sequence[Edge],
    relations: list[str],
    writes: Callable[[int, int], bool],
    reads: Reads,
) -> str:
    (missed,) = (edge for edge in edges if edge.relation == "rw")
    rest = [relation for relation in relations if relation != "rw"]
    if rest == ["wr"]:
        (seen,) = (edge for edge in edges if edge.relation == "wr")
        return "non-monotonic read" if reads.reads_first(seen.op, missed.op) else "fractured read"
    if "wr" in rest and set(rest) <= {"wr", "so"}:
        return "causality violation"
    # A path back through other transactions does not count as a lost update, because levels that
    # allow lost updates may forbid such a path.
    if writes(missed.a, missed.key) and (rest == ["ww"] or set(rest) <= {"so", *COMPARING_TIMES}):
        return "lost update"
    return "G-single"


def weakest(names: Sequence[str]) -> str:
    """Return the name of a violation whose cycles have the given names.

    This is the weakest of the names, which is correct whichever cycle happened.
    """

    def rank(name: str) -> tuple[int, bool, int]:
        timeless = strip_suffix(name)
        place = SEVERITY.index(plain) if (plain := base_name(name)) in SEVERITY else -1
        order = _SUFFIXES.index(name[len(timeless) :]) + 1 if name != timeless else 0
        return place, timeless != plain, order

    return max(names, key=rank)


def strip_suffix(name: str) -> str:
    """Return the name without ``-session`` or ``-realtime``."""
    for end in _SUFFIXES:
        name = name.removesuffix(end)
    return name


def base_name(name: str) -> str:
    """Return the name without any suffix, not even the one for predicate reads."""
    return strip_suffix(name).removesuffix(_PREDICATE)


def meaning(name: str) -> str:
    """Return the meaning of an anomaly's name, with its suffixes, in one line."""
    timeless = strip_suffix(name)
    more = {"-session": ", counting the order of its session", "-realtime": ", counting real time"}
    rows = ", by a predicate read" if timeless != base_name(name) else ""
    return MEANING[base_name(name)] + rows + more.get(name[len(timeless) :], "")
