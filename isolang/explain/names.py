"""The name of an anomaly: a function of its cycle alone, by the table of ``docs/anomalies.md``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from isolang.language.meaning.core import relation_of
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
}

MEANING: Final = {
    "thin-air read": "a transaction read a value that nobody wrote",
    "G1a": "aborted read: a transaction read what only aborted ones wrote",
    "G1b": "intermediate read: a transaction read a value that its writer replaced before it ended",
    "future read": "a transaction read its own write before making it",
    "not my own write": "a transaction read something else than what it had just written itself",
    "not my last write": "a transaction read an own write that it had replaced",
    "incompatible order": "two reads show a list in orders that contradict each other",
    "duplicate element": "a list shows an element more often than it was appended",
    "G0": "write cycle: the writes of transactions are interleaved",
    "G1c": "circular information flow: transactions depend on each other in a circle",
    "lost update": "a transaction wrote what it had read before, without seeing a write in between",
    "non-monotonic read": "a transaction saw one write of another one and then missed another",
    "fractured read": "a transaction saw one write of another transaction and missed another",
    "causality violation": "a transaction saw an effect and missed its cause",
    "G-single": "a transaction missed a write that it should have seen (read skew)",
    "write skew": "two transactions each read what the other one then overwrote",
    "long fork": "readers saw writes in orders that contradict each other",
    "no order": "no order of the transactions explains what they read (no cycle shows it)",
    "G2": "anti-dependency cycle: no order of the transactions explains what they read",
    "no model": "a solver found no model, which nobody has proved",
    "no assignment": "no choice of the relations that the specification asks for meets its checks",
}
"""What each name says, in a line; the suffixes add *across a session* and *in real time*."""

# From the weakest promise broken to the strongest. Where a case split has several cycles, at least
# the anomaly that stands last here happened, whichever case is the true one: it names the
# violation.
SEVERITY: Final = ("G0", "G1c", "lost update", "non-monotonic read", "fractured read",
                   "causality violation", "G-single", "long fork", "write skew", "G2")  # fmt: skip

_SUFFIXES = ("-session", "-realtime")


def name_of_step(step: AnomalyStep) -> str:
    """The name of an intrinsic anomaly."""
    return INTRINSIC[AnomalyKind(step.kind)]


def name_of_cycle(edges: Sequence[Edge], writes: Callable[[int, int], bool]) -> str:
    """The name of a cycle.

    Args:
        edges: the cycle.
        writes: whether a transaction writes a key.

    >>> from isolang.certify.steps import Edge
    >>> cycle = [Edge("wr", 1, 2, 0, 8), Edge("rw", 2, 1, 1, 7, 9)]
    >>> name_of_cycle(cycle, lambda txn, key: False)
    'fractured read'
    >>> name_of_cycle([Edge("so", 1, 2), Edge("rw", 2, 1, 1, 8, 9)], lambda txn, key: False)
    'G-single-session'
    """
    relations = [relation_of(edge.relation) for edge in edges]
    return _plain_name(edges, relations, writes) + suffix(relations)


def suffix(relations: Collection[str]) -> str:
    """``-realtime`` if there is an edge by time, else ``-session`` if there is an so edge."""
    if set(relations) & {"rt", "done", "late", "locked"}:
        return "-realtime"
    return "-session" if "so" in relations else ""


def _plain_name(
    edges: Sequence[Edge], relations: list[str], writes: Callable[[int, int], bool]
) -> str:
    anti = relations.count("rw")
    if anti == 0:
        return "G1c" if "wr" in relations else "G0"
    if anti == 1:
        return _one_rw(edges, relations, writes)
    if anti == 2 and len(edges) == 2:
        # Each read and wrote one key and missed the other's write, or they crossed over two keys.
        return "lost update" if edges[0].key == edges[1].key else "write skew"
    following = (*relations[1:], relations[0])
    adjacent = any(a == b == "rw" for a, b in zip(relations, following, strict=True))
    return "G2" if adjacent else "long fork"


def _one_rw(edges: Sequence[Edge], relations: list[str], writes: Callable[[int, int], bool]) -> str:
    (missed,) = (edge for edge in edges if edge.relation == "rw")
    rest = [relation for relation in relations if relation != "rw"]
    if rest == ["wr"]:
        (seen,) = (edge for edge in edges if edge.relation == "wr")
        return "non-monotonic read" if seen.op < missed.op else "fractured read"
    if "wr" in rest and set(rest) <= {"wr", "so"}:
        return "causality violation"
    # A way back by way of others is one that levels forbid which allow lost updates.
    if writes(missed.a, missed.key) and (rest == ["ww"] or set(rest) <= {"so", "rt"}):
        return "lost update"
    return "G-single"


def weakest(names: Sequence[str]) -> str:
    """The name of a violation whose cases have these names: what happened at least."""

    def rank(name: str) -> tuple[int, int]:
        plain = strip_suffix(name)
        place = SEVERITY.index(plain) if plain in SEVERITY else -1
        return place, _SUFFIXES.index(name[len(plain) :]) + 1 if name != plain else 0

    return max(names, key=rank)


def strip_suffix(name: str) -> str:
    """The name without ``-session`` or ``-realtime``."""
    for end in _SUFFIXES:
        name = name.removesuffix(end)
    return name


def meaning(name: str) -> str:
    """What a name says, in a line."""
    plain = strip_suffix(name)
    more = {"-session": ", counting the order of its session", "-realtime": ", counting real time"}
    return MEANING[plain] + more.get(name[len(plain) :], "")
