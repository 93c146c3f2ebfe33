"""Times of operations: what clients of a database at work note is allowed, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from oracle import moments, relational, semantics, timed_axioms
from oracle.history import History, Txn, parse, show
from oracle.levels import DATABASES, LEVELS, STATEMENTS
from oracle.moments import KINDS, Moment, precedes
from oracle.predicates import lower
from oracle.simulate import disturbed, partly_noted, timed_history


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


# --- times of some operations ---

#: What is known of moments, and which of ``done``, ``late`` and ``locked`` the first transaction is
#: to the second one, by hand.
PARTLY = [
    # A transaction without times of its own did everything between its begin and its end.
    ("w(x,1) @0-3 || w(x,2) @4-9", "done late locked"),
    ("w(x,1) @0-3 || w(x,2) @4-9:5-6:7", "done late locked"),
    ("w(x,1) @0-3:1-2:2 || w(x,2) @4-9", "done late locked"),
    ("w(x,1) @0-4 || w(x,2) @4-9", ""),
    ("w(x,1) @0-4:1-2:3 || w(x,2) @4-9", "late locked"),
    # COMMIT is sent after its own sending, all sendings, and the begin.
    ("w(x,1) @0-5:1-2:3 || w(x,2) @1-9:nil:6", "done late locked"),
    ("w(x,1) @0-5:1-2:3 || w(x,2) r(y,nil) @1-9:nil,6-nil:", "done late locked"),
    ("w(x,1) @0-5:1-2:3 || w(x,2) r(y,nil) @1-9:6-7,nil:", "done late locked"),
    ("w(x,1) @0-5:1-2:3 || w(x,2) r(y,nil) @1-9:nil-6,nil:", ""),
    ("w(x,1) @0-5:1-2:3 || w(x,2) @1-9:2-8:2", ""),
    ("w(x,1) @0-5:1-2:3 || w(x,2) @1-9:2-8:3", "late locked"),
    # An operation is answered before its own answer, all later ones, and the end.
    ("r(y,nil) w(x,1) @0-9:nil,1-2: || w(x,2) @1-9:nil:3", "late locked"),
    ("r(y,nil) w(x,1) @0-9:1-2,nil: || w(x,2) @1-9:nil:3", "late"),
    ("r(y,nil) w(x,1) @0-9:1-nil,nil: || w(x,2) @1-9:nil:3", ""),
    ("w(x,1) w(x,3) @0-9:nil,nil-2: || w(x,2) @1-9:nil:3", "late locked"),
    ("w(x,1) @0-9:nil:2 || w(x,2) @1-9:nil:3", ""),
    # Only a file says when COMMIT was answered, or has begins and ends of another clock.
    ("w(x,1) @0-9:nil:1/2 || w(x,2) @1-9:nil:3", "done late locked"),
    ("w(x,1) @@0-2:nil: || w(x,2) @@3-4:nil:8/9", ""),
    ("w(x,1) @@0-2:nil:6/7 || w(x,2) @@1-4:nil:8/9", "done late locked"),
    ("w(x,1) @@0-2:1-2:8/9 || w(x,2) @@9-9:3-4:/9", "late locked"),
    ("w(x,1) @@0-2:1-2:8/9 || w(x,2) @@9-9:nil:", ""),
    # Whose outcome is not known was never answered; but what it sent, it sent.
    ("?w(x,1) @0-3:1-2: || w(x,2) @4-9:5-6:7", ""),
    ("w(x,1) @0-3:1-2:2 || ?w(x,2) @-:nil:4", "done late locked"),
    ("w(x,1) @0-3:1-2:2 || ?w(x,2) @-:4-nil:", "done late locked"),
    ("w(x,1) @0-3:1-2:2 || ?w(x,2) @-:nil-4:", ""),
    # One that did nothing began with its COMMIT.
    (" @0-3::2 || w(x,2) @0-9:nil:4", "done late"),
]


@pytest.mark.parametrize(("text", "expected"), PARTLY)
def test_what_is_known_of_each_moment(text: str, expected: str) -> None:
    history = parse(text)
    found = moments.relations(history, [0, 1])
    assert {name for name, pairs in found.items() if (0, 1) in pairs} == set(expected.split())
    assert parse(show(history)) == history


_HORIZON = 7


def _instants(t: Txn) -> Iterator[tuple[int, ...]]:
    """When the operations and COMMIT may have had their effects: in this order, each between its
    sending and its answer, and none before the begin or after the end.
    """

    def bounds(low: int | None, high: int | None) -> tuple[int, int]:
        return -1 if low is None else low, _HORIZON if high is None else high

    spans = [bounds(*(pair or (None, None))) for pair in t.times or (None,) * len(t.ops)]
    begin, end = bounds(None if t.by_lines else t.begin, None if t.by_lines else t.end)
    spans.append(bounds(t.commit, t.answered))
    for at in product(*(range(max(low, begin), min(high, end) + 1) for low, high in spans)):
        if list(at) == sorted(at):
            yield at


def _random_times(rng: random.Random, t: Txn) -> Txn:
    """Any that are known, or not."""

    def pair() -> tuple[int | None, int | None] | None:
        a, b = sorted(rng.randint(0, 6) for _ in range(2))
        whole = (a, b), (a, b), (a, None), (None, b), None, None
        return rng.choice(whole)

    begin, end = pair() or (None, None)
    commit, answered = pair() or (None, None)
    times = tuple(pair() for _ in t.ops)
    by_lines = rng.random() < 0.2
    return replace(
        t, begin=begin, end=end, times=times, commit=commit, answered=answered, by_lines=by_lines
    )


def test_relations_are_what_holds_of_all_instants() -> None:
    """One moment precedes another one iff it does wherever both can have been."""
    rng = random.Random(4)
    found: Counter[tuple[str, bool]] = Counter()
    for text in ("r(y,nil) w(x,1) || w(x,2) r(y,nil)", "w(x,1) w(z,1) w(x,3) || w(x,2)") * 400:
        first, second = history = tuple(_random_times(rng, t) for t in parse(text))
        ones, others = [*_instants(first)], [*_instants(second)]
        if not ones or not others:
            continue  # the times contradict one another
        given = moments.relations(history, [0, 1])
        write = next(j for j, op in enumerate(first.ops) if op[:2] == ("w", "x"))
        for name, place in (("done", -1), ("late", 0), ("locked", write)):
            always = max(at[place] for at in ones) < min(at[-1] for at in others)
            assert ((0, 1) in given[name]) == always, (name, show(history))
            found[name, always] += 1
    assert len(found) == 6, found
    assert min(found.values()) > 10, found


@pytest.mark.parametrize("name", KINDS)
def test_who_notes_less_is_allowed_no_less(name: str) -> None:
    """What a database does is allowed, whatever its clients note of the times; and so say the
    relations between transactions.
    """
    levels = [DATABASES[of] for of in MECHANISMS[name]]
    for number in range(120):
        rng = random.Random(4_000 + number)
        error = rng.choice((0, 0, 2, 5))
        history = timed_history(rng, KINDS[name], error=error, rows=rng.random() < 0.4)
        less = partly_noted(rng, history)
        assert moments.satisfied(less, KINDS[name], error=error), show(less)
        assert all(semantics.satisfied(lower(less), levels, error=error)), show(less)


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
        history = partly_noted(rng, history) if number % 3 == 0 else history
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
        history = partly_noted(rng, history) if number % 3 == 0 else history
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
        history = partly_noted(rng, history) if number % 3 == 0 else history
        if moments.satisfied(history, KINDS[name], error=error):
            allowed = semantics.satisfied(lower(history), specs, error=error)
            assert all(allowed), (dict(zip(MECHANISMS[name], allowed, strict=True)), show(history))
