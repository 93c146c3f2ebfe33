"""Times of operations: what clients of a database at work note is allowed, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from oracle import moments, relational, semantics, timed_axioms
from oracle.history import History, Txn, parse, show
from oracle.levels import DATABASES, LEVELS, STATEMENTS
from oracle.moments import KINDS, Moment, precedes
from oracle.predicates import lower
from oracle.simulate import disturbed, timed_history


def timed(text: str, *times: tuple[list[tuple[int, int]], int, int]) -> History:
    """A history and of each transaction the times of its operations, of COMMIT, and its end."""
    out: list[Txn] = []
    for t, (of, sent, end) in zip(parse(text), times, strict=True):
        out.append(replace(t, begin=of[0][0], times=tuple(of), commit=sent, end=end))
    return tuple(out)


# --- facts ---


def test_moments_are_ordered_by_more_than_the_error() -> None:
    """Equal times are no order; within one clock no error counts."""
    early, late = Moment(0, 5, 0), Moment(5, 9, 1)
    assert not precedes(early, late)
    assert precedes(early, late._replace(low=6))
    assert not precedes(early, late._replace(low=7), 2)
    assert precedes(early, late._replace(low=8), 2)
    assert precedes(early, late._replace(low=6, session=0), 2)
    assert not precedes(early, late._replace(low=8), {0: 2, 1: 1})
    assert precedes(early, late._replace(low=9), {0: 2, 1: 1})


#: What was observed, its times, and the kinds of database that cannot have answered so.
FACTS = [
    # x is read first, then y, which was written by a transaction that began COMMIT only later: no
    # snapshot of the first statement has it.
    (
        timed("r(x,nil) r(y,1) || w(y,1)", ([(0, 1), (6, 7)], 8, 9), ([(2, 3)], 4, 5)),
        {"bounded-si", "postgresql-repeatable-read", "innodb-repeatable-read"},
    ),
    # The same with a COMMIT that was on its way already.
    (timed("r(x,nil) r(y,1) || w(y,1)", ([(0, 5), (6, 7)], 8, 9), ([(2, 3)], 4, 5)), set()),
    # A version is read whose COMMIT had not been sent.
    (timed("r(x,1) || w(x,1)", ([(0, 1)], 2, 3), ([(0, 1)], 4, 5)), set(KINDS)),
    # Two blind writers of a row certainly overlap: no lock is held twice, no snapshot is current.
    (
        timed("w(x,1) || w(x,2)", ([(0, 1)], 10, 11), ([(2, 3)], 12, 13)),
        {
            "bounded-si",
            "postgresql-repeatable-read",
            "postgresql-read-committed",
            "innodb-repeatable-read",
        },
    ),
    # The second write was answered only after the first committed: it may have waited for the lock.
    (timed("w(x,1) || w(x,2)", ([(0, 1)], 10, 11), ([(2, 11)], 12, 13)), set()),
    # So with a read before it: then the snapshot was taken too early.
    (
        timed("w(x,1) || r(y,nil) w(x,2)", ([(0, 1)], 10, 11), ([(1, 2), (2, 11)], 12, 13)),
        {"bounded-si", "postgresql-repeatable-read"},
    ),
    # Versions come in the order of commits: the later statement must see the later one.
    (
        timed("w(x,1) || w(x,2) || r(x,1)", ([(0, 1)], 2, 3), ([(4, 5)], 6, 7), ([(8, 9)], 10, 11)),
        set(KINDS),
    ),
    # A stale statement in an old transaction: its snapshot allows it, a snapshot of its own not.
    (
        timed("r(y,nil) r(x,nil) || w(x,1)", ([(0, 1), (6, 7)], 8, 9), ([(2, 3)], 4, 5)),
        {"statement-rc", "postgresql-read-committed"},
    ),
    # The first read takes the snapshot, not the write before it.
    (
        timed("w(y,1) r(x,1) || w(x,1)", ([(0, 1), (6, 7)], 8, 9), ([(2, 3)], 4, 5)),
        {"bounded-si", "postgresql-repeatable-read"},
    ),
]


@pytest.mark.parametrize(("history", "forbidding"), FACTS)
def test_facts_by_hand(history: History, forbidding: set[str]) -> None:
    """Executions and axioms both forbid what was found by hand, and nothing else."""
    for decide in (moments.satisfied, timed_axioms.satisfied):
        found = {name for name, kind in KINDS.items() if not decide(history, kind)}
        assert found == forbidding, show(history)


def test_an_error_of_the_clocks_allows_what_it_may_explain() -> None:
    """A read two ticks too late, of another clock."""
    history = timed("w(x,1) || r(x,nil)", ([(0, 1)], 2, 3), ([(5, 6)], 7, 8))
    allowed = {e: moments.satisfied(history, KINDS["bounded-si"], error=e) for e in (0, 1, 2, 3)}
    assert allowed == {0: False, 1: False, 2: True, 3: True}
    (strict, wide) = (semantics.satisfied(history, [LEVELS["sser"]], error=e)[0] for e in (1, 2))
    assert (strict, wide) == (False, True)


# --- databases at work ---


@pytest.mark.parametrize("name", KINDS)
def test_what_a_database_does_is_allowed(name: str) -> None:
    """Executions and axioms allow every history of a database of the kind, with its clocks off."""
    for number in range(120):
        rng = random.Random(number)
        error = rng.choice((0, 0, 2, 5))
        history = timed_history(rng, KINDS[name], error=error, rows=rng.random() < 0.4)
        for decide in (moments.satisfied, timed_axioms.satisfied):
            assert decide(history, KINDS[name], error=error), show(history)


@pytest.mark.parametrize("name", KINDS)
def test_executions_and_axioms_agree(name: str) -> None:
    """Instants can be found iff dependencies and the order of moments have no cycle."""
    found: Counter[bool] = Counter()
    for number in range(150):
        rng = random.Random(1_000 + number)
        error = rng.choice((0, 0, 2))
        history = timed_history(rng, KINDS[name], error=error, rows=rng.random() < 0.4, fault=True)
        for _ in range(rng.choice((0, 1, 2))):
            history = disturbed(rng, history)
        allowed = moments.satisfied(history, KINDS[name], error=error)
        assert timed_axioms.satisfied(history, KINDS[name], error=error) == allowed, show(history)
        found[allowed] += 1
    assert min(found[True], found[False]) >= 5, found


#: What of the databases each kind is an execution of.
MECHANISMS = {
    "bounded-si": ("consistent-read", "first-updater-wins"),
    "statement-rc": (),
    "postgresql-repeatable-read": (
        *("consistent-read", "first-updater-wins", "mutual-exclusion"),
        *("postgresql-repeatable-read", "innodb-repeatable-read"),
    ),
    "postgresql-read-committed": ("mutual-exclusion",),
    "innodb-repeatable-read": ("innodb-repeatable-read", "mutual-exclusion"),
}


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        ("consistent-read-by-statement", "statement-rc"),
        ("postgresql-read-committed", "postgresql-read-committed"),
    ],
)
def test_instants_of_statements_are_relations_of_reads(level: str, kind: str) -> None:
    """``committed-before``, ``committed-after`` and ``answered-before`` say all of them."""
    spec = relational.over_versions(STATEMENTS[level])
    found: Counter[bool] = Counter()
    for number in range(60):
        rng = random.Random(f"{kind} {number}")
        error = rng.choice((0, 0, 2))
        source = KINDS[rng.choice((kind, "bounded-si"))]
        history = timed_history(rng, source, error=error, rows=rng.random() < 0.4, fault=True)
        if rng.random() < 0.5:
            history = disturbed(rng, history)
        if any(t.status == "maybe" for t in history):
            continue
        allowed = moments.satisfied(history, KINDS[kind], error=error)
        found[allowed] += 1
        assert relational.satisfied(lower(history), spec, error=error) == allowed, show(history)
    assert min(found[True], found[False]) >= 3, found


@pytest.mark.parametrize("name", [name for name, allowing in MECHANISMS.items() if allowing])
def test_relations_between_transactions_are_sound(name: str) -> None:
    """``done``, ``late`` and ``locked`` beside real time allow every execution of the kind."""
    specs = [DATABASES[of] for of in MECHANISMS[name]]
    for number in range(120):
        rng = random.Random(2_000 + number)
        error = rng.choice((0, 0, 2, 5))
        history = timed_history(rng, KINDS[name], error=error, rows=rng.random() < 0.4, fault=True)
        if moments.satisfied(history, KINDS[name], error=error):
            allowed = semantics.satisfied(lower(history), specs, error=error)
            assert all(allowed), (dict(zip(MECHANISMS[name], allowed, strict=True)), show(history))
