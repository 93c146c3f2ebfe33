"""Short cycles of what a history shows by itself, and what explanations make of them."""

import pytest

import isolang
from isolang import History, Transaction
from isolang.explain.known import KnownGraph
from isolang.problem import build_problem

DEPENDENCIES = frozenset(("ww", "wr", "rw"))
MUCH = 1_000_000


def missed(length):
    """T1 writes x, and is seen, through others, by one who misses it."""
    txns = [Transaction([("w", "x", 1), ("w", "a0", 1)])]
    txns += [Transaction([("r", f"a{i}", 1), ("w", f"a{i + 1}", 1)]) for i in range(length - 2)]
    return [*txns, Transaction([("r", f"a{length - 2}", 1), ("r", "x", None)])]


SKEW = [
    Transaction([("r", "p", None), ("w", "q", 1)]),
    Transaction([("r", "q", None), ("w", "p", 1)]),
]


def cycle_of(transactions, spec):
    verdict = isolang.check(History.from_transactions(transactions), spec)
    assert verdict.certified
    ((_, cycle),) = verdict.violation.cycles()
    return verdict.violation.anomaly, [edge.relation for edge in cycle.edges]


def test_a_short_cycle_of_two_rw_before_a_long_one_of_one():
    """Nobody follows 22 edges where two show the same."""
    assert cycle_of([*missed(22), *SKEW], "ser-nosession") == ("write skew", ["rw", "rw"])


def test_a_short_cycle_of_one_rw_before_two():
    """Of two cycles as long, the one with less rw: people follow reads-from more easily."""
    unseen = [
        Transaction([("w", "x", 1), ("w", "y", 1)]),
        Transaction([("r", "y", 1), ("r", "x", None)]),
    ]
    name, relations = cycle_of([*SKEW, *unseen], "ser-nosession")
    assert (name, relations) == ("non-monotonic read", ["wr", "rw"])


def test_a_level_that_allows_the_short_cycle_shows_the_long_one():
    """Write skew is no violation of snapshot isolation."""
    name, relations = cycle_of([*missed(22), *SKEW], "si-nosession")
    assert (name, len(relations)) == ("causality violation", 22)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_cycles_are_closed_and_the_shortest_come_first(length):
    """Each edge begins where the one before it ends."""
    problem = build_problem(History.from_transactions([*missed(length), *SKEW]))
    found, complete = KnownGraph(problem, effort=MUCH).short_cycles(
        DEPENDENCIES, most=100, effort=MUCH
    )
    cycles = [one.edges for one in found]
    assert cycles
    assert complete
    for cycle in cycles:
        ends = [edge.b for edge in cycle]
        assert [edge.a for edge in cycle] == ends[-1:] + ends[:-1]
    lengths = [len(cycle) for cycle in cycles]
    assert lengths == sorted(lengths)
    assert {2, length} <= set(lengths)


def test_components_are_those_of_the_relations():
    """Without rw nothing is in a circle here; with it, the two halves of the skew are."""
    problem = build_problem(History.from_transactions([*missed(3), *SKEW]))
    graph = KnownGraph(problem, effort=MUCH)
    assert graph.short_cycles(frozenset(("ww", "wr")), most=100, effort=MUCH) == ([], True)
    found, _ = graph.short_cycles(DEPENDENCIES, most=100, effort=MUCH)
    members = {}
    for cycle in found:
        members.setdefault(cycle.component, set()).update(edge.a for edge in cycle.edges)
    assert sorted(map(sorted, members.values())) == [[0, 1, 2], [3, 4]]


def test_the_search_ends_by_what_it_did_and_says_so():
    """Fewer cycles, or less effort, than there would be is not complete."""
    problem = build_problem(History.from_transactions([*missed(5), *SKEW]))
    graph = KnownGraph(problem, effort=MUCH)
    some, complete = graph.short_cycles(DEPENDENCIES, most=1, effort=MUCH)
    assert (len(some), complete) == (1, False)
    some, complete = graph.short_cycles(DEPENDENCIES, most=100, effort=0)
    assert ([len(one.edges) for one in some], complete) == ([2], False)
    _, complete = KnownGraph(problem, effort=1).short_cycles(DEPENDENCIES, most=9, effort=MUCH)
    assert not complete


def test_a_pair_that_either_edge_may_close_is_given_once():
    """Two anti-dependencies between two transactions are one cycle."""
    problem = build_problem(History.from_transactions(SKEW))
    graph = KnownGraph(problem, effort=MUCH)
    found, _ = graph.short_cycles(DEPENDENCIES, most=100, effort=MUCH)
    assert len(found) == 1
    found, _ = graph.short_cycles(DEPENDENCIES, closing=frozenset(["rw"]), most=100, effort=MUCH)
    assert len(found) == 1


def test_an_order_shown_by_whoever_overwrote_what_he_read():
    """T3 read what T2 wrote over what T1 had written: the reader of T1's version missed T3."""
    problem = build_problem(
        History.from_transactions(
            [
                Transaction([("w", "x", 1)]),
                Transaction([("r", "x", 1), ("w", "x", 2)]),
                Transaction([("r", "x", 2), ("w", "x", 3), ("w", "y", 1)]),
                Transaction([("r", "y", 1), ("r", "x", 1)]),
            ]
        )
    )
    (pair, *_), _ = KnownGraph(problem, effort=MUCH).short_cycles(
        DEPENDENCIES, most=100, effort=MUCH
    )
    assert pair.shown == (1, 3)
    assert {(edge.relation, edge.a, edge.b) for edge in pair.edges} == {("wr", 2, 3), ("rw", 3, 2)}
