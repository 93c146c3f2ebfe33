"""What pruning refutes by itself, without a search: one history for each of its inferences.

No verdict depends on these, for the search would find the same; without them it takes longer.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.certify import TOO_MANY_BY_DEFINITION, verdicts_of_both

from isolang.certify.proofs import Refutation, Witness
from isolang.history import History, Transaction
from isolang.language.classify.event_graph import classify
from isolang.language.load import load_spec
from isolang.problem import build_problem
from isolang.simulator import Workload, generate
from isolang.solvers.engine import solve

SER = classify(load_spec("ser"))


def parse(text: str) -> History:
    """Transactions, one a line: ``session: w x 1, r y nil``; ``?`` before the session: maybe."""
    given = []
    for line in filter(None, map(str.strip, text.splitlines())):
        session, ops = line.split(":")
        fields = [op.split() for op in ops.split(",")]
        given.append(
            Transaction(
                ops=[(kind, key, None if v == "nil" else int(v)) for kind, key, v in fields],
                session=session.strip("? "),
                status="maybe" if session.startswith("?") else "committed",
            )
        )
    return History.from_transactions(given)


CASES = {
    # The session orders the versions 1 and 2 of x, so that the reader of 1 precedes the writer of
    # 2, from which it reads y.
    "a version order that sessions force, and the anti-dependency that follows": """
        a: w x 1
        a: w x 2, w y 1
        b: r y 1, r x 1
    """,
    # x=1 before x=2 would put the reader of 1 before the writer of 2, from which it reads y;
    # the other way round the same with z.
    "version orders that readers force": """
        a: w x 1, w z 1
        b: w x 2, w y 1
        c: r x 1, r y 1
        d: r x 2, r z 1
    """,
    # One source comes later in the session, the other one after the initial y that was read.
    "sources that the reader precedes": """
        a: r x 1, r y nil
        a: w x 1
        b: w x 1, w y 1
    """,
    # Both sources were overwritten before the read.
    "sources that were overwritten before the read": """
        a: w x 1
        a: w x 1
        a: w x 2
        a: r x 1
    """,
    # Sources become known in the first pass only (c is no source: u), after the orders of x and y;
    # then p and q miss each other's writes.
    "anti-dependencies of sources that became known later": """
        a: w x 1, w y 1, w z 1
        c: w x 1, w y 1, w u 1
        p: r z 1, r x 1, r u nil, w y 2
        q: r z 1, r y 1, r u nil, w x 2
    """,
    # The other source comes later in the session; so m is in, and what it read itself came later
    # still.
    "an indeterminate transaction that must be in has reads too": """
        ? m: r y 5, w x 1
        a: r x 1
        a: w x 1, w y 5
    """,
    # The other source comes later in the session; so m is in, which saw half of what d wrote.
    "an indeterminate transaction that must be in contradicts itself": """
        ? m: r y 1, r z nil, w x 1
        d: w y 1, w z 1
        a: r x 1
        a: w x 1
    """,
    # b1 < a1 and b2 < a2 are forced by c1 and c2; then s1 → a1 → s2 → a2 → s1. Each s stands right
    # after its b, whose own edge to a does not imply that of s.
    "anti-dependencies of the neighbour of a forced version order": """
        a1: w x 1, w p 1
        a2: w y 1, w q 1
        b1: w x 2, w v 1
        b1: r x 2, r q 1
        b2: w y 2, w w 1
        b2: r y 2, r p 1
        c1: r x 1, r v 1
        c2: r y 1, r w 1
    """,
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_refuted_without_search(text):
    """The statistics have no search in them, and both checkers accept the refutation."""
    history = parse(text)
    problem = build_problem(history)
    assert problem.anomalies() == []
    result = solve(history.columns, problem.native, SER.automata, seconds=60, strategy="cdcl")
    assert "variables" not in result.statistics
    proof = result.result
    assert verdicts_of_both(history, SER.spec, proof) == ("accepted", "accepted")


def test_chains_of_updates_need_no_search():
    """Read-modify-write settles all version orders: nothing is left to choose."""
    ops = [[("r", k, i or None), ("w", k, i + 1)] for i in range(50) for k in range(4)]
    given = [Transaction(ops=op, session=i % 7) for i, op in enumerate(ops)]
    history = History.from_transactions(given)
    result = solve(history.columns, build_problem(history).native, SER.automata, seconds=60)
    assert result.statistics["variables"] == 0


HOT = 500  # writers of one key: so many that pruning goes along the chains of their sessions


def updates(count: int, sessions: int = 7, skip: int = 0) -> list[Transaction]:
    """Read-modify-writes of one key by turns; the one in the middle misses the `skip` before it."""
    read = [i or None for i in range(count)]
    read[count // 2] = count // 2 - skip
    return [
        Transaction(ops=[("r", "x", read[i]), ("w", "x", i + 1)], session=i % sessions)
        for i in range(count)
    ]


def solved(given: list[Transaction]):
    """What the engine says of them under SER, which is certified, with its statistics."""
    history = History.from_transactions(given)
    result = solve(history.columns, build_problem(history).native, SER.automata, seconds=60)
    said = verdicts_of_both(history, SER.spec, result.result)
    assert said == ("accepted", "accepted") or (
        isinstance(result.result, Witness) and said == TOO_MANY_BY_DEFINITION
    )
    return result.result, result.statistics


def test_the_chains_of_a_hot_key_need_no_search():
    """One pass of pruning finds the order of many updates, and adds two edges for each."""
    says, statistics = solved(updates(HOT))
    assert list(says.order_txn) == list(range(HOT))
    assert (statistics["variables"], statistics["prune_passes"]) == (0, 1)
    assert statistics["edges_after_pruning"] <= 3 * HOT


def test_a_lost_update_of_a_hot_key():
    """Pruning finds that two of many updates overwrote the same version."""
    says, statistics = solved(updates(HOT, skip=5))
    assert isinstance(says, Refutation)
    assert "variables" not in statistics


def test_a_session_against_the_chain_of_a_hot_key():
    """A session that does its two updates the other way round."""
    given = updates(HOT)
    late, early = HOT // 2 + 7, HOT // 2
    given[early], given[late] = given[late], given[early]
    says, _ = solved(given)
    assert isinstance(says, Refutation)


def test_blind_writes_and_reads_of_a_hot_key():
    """Sessions order their own blind writes; what others read of them orders the rest."""
    given, value = [], None
    for i in range(HOT + HOT // 4):
        ops = [("r", "x", value)] if i % 8 else []
        if i % 5:
            value = i + 1
            ops.append(("w", "x", value))
        given.append(Transaction(ops=ops, session=i % 6))
    says, _ = solved(given)
    assert isinstance(says, Witness)


@pytest.mark.parametrize("level", ["ser", "si"])
def test_random_histories_of_hot_keys(level):
    """What pruning says of two keys with many writers is certified, whatever the histories are."""
    target, said = classify(load_spec(level)), set()
    for seed in range(12):
        rule = "serializable" if seed % 2 else "snapshot"
        workload = Workload(
            rule=rule, transactions=120, sessions=2, keys=2, read_share=0.7, seed=seed
        )
        transactions = list(generate(workload).transactions())
        late = transactions[100]
        if seed % 3 == 0:  # the last operations of a session come before its first ones
            transactions[0] = replace(late, session=transactions[0].session)
            del transactions[100]
        history = History.from_transactions(transactions)
        problem = build_problem(history)
        result = solve(history.columns, problem.native, target.automata, seconds=60).result
        said.add(type(result))
        assert verdicts_of_both(history, target.spec, result)[0] == "accepted"
    assert said == {Refutation, Witness}


def test_long_rows_of_clocks_are_more_work():
    """A limit of work holds, too, where nearly all of the time goes into rows with many columns."""
    target = classify(load_spec("pc-nosession"))

    def work(stale: bool) -> int:
        sources = [(i // 4 if stale else i - 1) or None for i in range(1, 2001)]
        given = [
            Transaction(ops=[("r", "x", source), ("w", "x", i)], session=i)
            for i, source in enumerate(sources, 1)
        ]
        history = History.from_transactions(given)
        return solve(
            history.columns, build_problem(history).native, target.automata, seconds=60
        ).work

    assert work(stale=True) > 3 * work(stale=False)
