"""Histories of more sessions than the clocks have columns for: clients that lost a connection."""

import pytest
from support.certify import check_natively

import isolang
from isolang.api import load_spec
from isolang.certify.errors import CertificateRejected
from isolang.simulator import Workload, generate


def many_sessions(*bugs):
    """Each unknown outcome ends a session: there are some 1,200, most of a few transactions."""
    return generate(
        Workload(
            rule="serializable",
            bugs=bugs,
            transactions=3000,
            keys=60,
            operations=6,
            info_rate=0.4,
            seed=5,
        )
    )


@pytest.mark.parametrize(
    ("bug", "violated", "held"),
    [
        ("write skew", "ser", "si"),
        ("long fork", "si", "psi"),
        ("lost update", "psi", "cc"),
        ("lost session guarantee", "cc", "cc-nosession"),
        ("fractured read", "cc-nosession", "pl-2"),
    ],
)
def test_what_is_planted_is_found(bug, violated, held):
    """And the witness of a level that holds is none of the one that does not."""
    history = many_sessions(bug)
    verdict = isolang.check(history, violated)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    verdict = isolang.check(history, held)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    with pytest.raises(CertificateRejected):
        check_natively(history, load_spec(violated), verdict.witness)


@pytest.mark.parametrize("level", ["ser", "psi", "pl-3"])
def test_chains_go_on_at_whatever_their_ends_reach(level):
    """There are fewer of them than of sessions, and what they tell is right."""
    verdict = isolang.check(many_sessions(), level)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.statistics["chains"] <= 512


def causally_consistent(history):
    """Whether `so`, `wr` and the orders that reads force have no cycle, by sets of transactions."""
    transactions = list(history.transactions())
    writer, reads, last = {}, [], {}
    successors = [set() for _ in transactions]
    for t, transaction in enumerate(transactions):
        if transaction.session in last:
            successors[last[transaction.session]].add(t)
        last[transaction.session] = t
        writer |= {(key, value): t for kind, key, value in transaction.ops if kind == "w"}
    for t, transaction in enumerate(transactions):
        written = set()
        for kind, key, value in transaction.ops:
            if kind == "w":
                written.add(key)
            elif key not in written:
                reads.append((t, key, writer.get((key, value))))
                if (key, value) in writer:
                    successors[writer[key, value]].add(t)
    order = topological(successors)
    before = [0] * len(successors)
    for t in order:
        for s in successors[t]:
            before[s] |= before[t] | 1 << t
    writers = {}
    for (key, _), t in writer.items():
        writers.setdefault(key, set()).add(t)
    for t, key, source in reads:
        for other in writers.get(key, ()):
            if other != source and before[t] >> other & 1:
                if source is None:
                    return False
                successors[other].add(source)
    return len(topological(successors)) == len(successors)


def topological(successors):
    """Return the nodes in order, without those on cycles and behind them (Kahn)."""
    waiting = [0] * len(successors)
    for some in successors:
        for s in some:
            waiting[s] += 1
    order = [t for t, count in enumerate(waiting) if not count]
    for t in order:
        for s in successors[t]:
            waiting[s] -= 1
            if not waiting[s]:
                order.append(s)
    return order


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("causal", {"session_each": True}),
        ("causal", {"sessions": 300, "lag": 4000, "replicas": 40}),
        ("read-atomic", {"sessions": 300, "lag": 4000, "replicas": 40}),
        ("strict-serializable", {"sessions": 300}),
    ],
)
def test_walks_past_many_chains(rule, options):
    """CC asks for thousands of walks at once: none that closes is missed, none is made up."""
    history = generate(Workload(rule=rule, transactions=1500, keys=60, seed=3, **options))
    verdict = isolang.check(history, "cc")
    assert verdict.certified
    assert (verdict.outcome == "valid") == causally_consistent(history)
