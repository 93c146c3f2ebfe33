"""The given relations of a whole history, row by row, against the same relations pair by pair."""

import random

import pytest
from support.certify import history, txn

from isolang.certify.facts import Facts
from isolang.certify.world import ConcreteInterpretation
from isolang.history import History, Transaction
from isolang.history.clock_error import with_clock_error

NAMES = ("done", "late", "locked", "rt", "so")
OF_STATEMENTS = ("committed-before", "committed-after", "answered-before", "statement")


def timed(rng, clock_error):
    rows = []
    for t in range(8):
        at = rng.randint(0, 20)
        ops, times = [], []
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice("rw")
            ops.append((kind, rng.choice("xy"), None if kind == "r" else 10 * t + len(ops)))
            sent = at + rng.randint(0, 2)
            at = sent + rng.randint(0, 2)
            times.append((sent, at))
        end = at + rng.randint(0, 4)
        rows.append(
            Transaction(
                ops, session=t % 3, begin=times[0][0], end=end, times=times,
                commit=rng.randint(at, end),
            )
        )  # fmt: skip
    made = History.from_transactions(rows)
    return with_clock_error(made, clock_error) if clock_error else made


@pytest.mark.parametrize("clock_error", ["", "3ns"])
@pytest.mark.parametrize("seed", range(20))
def test_rows_of_moments_are_their_pairs(seed, clock_error):
    """Also where the clock of each session may be wrong, and its own moments are compared by it."""
    facts = Facts(timed(random.Random(seed), clock_error))
    assert facts.has_own_clocks == bool(clock_error)
    world = ConcreteInterpretation(facts, range(facts.n), {}, events=True)
    for name in NAMES:
        rows = world.relation(name)
        for a in range(facts.n):
            for b in range(facts.n):
                expected = facts.relates(name, a, b)
                assert bool(rows.get(a, 0) >> b & 1) == expected, (name, a, b)
    reads = [op for op in range(facts.operations) if facts.is_external(op) and facts.candidates(op)]
    assert reads
    for name in OF_STATEMENTS:
        rows = world.relation(name)

        def related(a, b, rows=rows):
            return bool(rows.get(a, 0) >> b & 1)

        for op in reads:
            event = facts.n + 1 + op
            if name == "committed-before":
                for t in range(facts.n):
                    assert related(t, event) == facts.committed_before(t, op)
            elif name == "committed-after":
                for t in range(facts.n):
                    assert related(event, t) == facts.committed_after(op, t)
            else:
                holds = facts.one_statement if name == "statement" else facts.answered_before
                for other in reads:
                    assert related(event, facts.n + 1 + other) == holds(op, other)


def test_t0_and_what_has_no_times_is_in_no_relation_of_moments():
    facts = Facts(history(txn("w(x,1)", 1), txn("r(x,1)", 2)))
    world = ConcreteInterpretation(facts, range(facts.n), {1: 0})
    assert not any(any(world.relation(name).values()) for name in ("done", "late", "locked"))
