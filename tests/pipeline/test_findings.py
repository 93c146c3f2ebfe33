"""Every kind of anomaly that a history has, none hidden by another."""

import pytest
from support.paths import ROOT

import isolang
from isolang import History, Transaction
from isolang.history.before import with_initial
from isolang.options import Options
from isolang.pipeline.findings import findings_of
from isolang.simulator.generate import generate
from isolang.simulator.workload import Workload

T = Transaction
SHAPES = {
    "thin-air read": [T([("r", "z", 77)])],
    "G1a": [T([("w", "a", 1)], status="aborted"), T([("r", "a", 1)])],
    "G1b": [T([("w", "b", 1), ("w", "b", 2)]), T([("r", "b", 1)])],
    "not my own write": [T([("w", "o", 1), ("r", "o", None)])],
    "G1c": [T([("r", "q", 5), ("w", "p", 5)]), T([("r", "p", 5), ("w", "q", 5)])],
    "lost update": [
        T([("w", "x", 1)]),
        T([("r", "x", 1), ("w", "x", 2)]),
        T([("r", "x", 1), ("w", "x", 3)]),
    ],
    "fractured read": [T([("w", "m", 1), ("w", "n", 1)]), T([("r", "m", None), ("r", "n", 1)])],
    "causality violation": [
        T([("w", "c", 1)]),
        T([("r", "c", 1), ("w", "d", 1)]),
        T([("r", "d", 1), ("r", "c", None)]),
    ],
    "write skew": [T([("r", "u", None), ("w", "v", 1)]), T([("r", "v", None), ("w", "u", 1)])],
    "long fork": [
        T([("w", "f", 1)]),
        T([("w", "g", 1)]),
        T([("r", "f", 1), ("r", "g", None)]),
        T([("r", "f", None), ("r", "g", 1)]),
    ],
}
WEAKEST = {
    "thin-air read": "pl-2",
    "G1a": "pl-2",
    "G1b": "pl-2",
    "not my own write": "pl-2",
    "G1c": "pl-2",
    "lost update": "psi-nosession",
    "fractured read": "ra-nosession",
    "causality violation": "cc-nosession",
    "write skew": "ser-nosession",
    "long fork": "pc-nosession",
}


def findings(*names, times=1):
    txns = []
    for _ in range(times):
        txns += [txn for name in names for txn in SHAPES[name]]
    return findings_of(History.from_transactions(txns), Options(timeout=60))


@pytest.mark.parametrize("name", SHAPES)
def test_each_kind_alone(name):
    """It is found, certified, and told by the weakest level that forbids it."""
    (one,) = findings(name).anomalies
    assert (one.anomaly, one.count, one.level, one.certified) == (name, 1, WEAKEST[name], True)


def test_all_kinds_beside_each_other():
    """Neither do reads that are wrong hide cycles, nor milder anomalies worse ones."""
    found = findings(*SHAPES)
    assert {one.anomaly for one in found.anomalies} == set(SHAPES)
    assert all(one.certified for one in found.anomalies)
    assert found.weakest_violated == ("pl-2",)
    assert {"ser", "si", "rc", "pl-3"} <= set(found.also_violated)
    assert found.not_finished == ""


def test_counts_say_of_what():
    """Reads that are wrong are counted one by one, cycles by their components."""
    txns = [txn for i in range(3) for txn in _renamed(SHAPES["write skew"], i)]
    txns += [T([("r", "z", i + 1)]) for i in range(4)]
    found = findings_of(History.from_transactions(txns))
    assert {(one.anomaly, one.count, one.counted) for one in found.anomalies} == {
        ("write skew", 3, "components"),
        ("thin-air read", 4, "reads"),
    }


def _renamed(txns, number):
    return [T([(kind, f"{key}{number}", value) for kind, key, value in t.ops]) for t in txns]


def test_examples_are_the_smallest():
    """Two transactions of a skew, and three of a lost update, whatever else is there."""
    found = {one.anomaly: one.violation for one in findings(*SHAPES).anomalies}
    assert len(found["write skew"].transactions) == 2
    assert len(found["lost update"].transactions) == 3


def test_sessions_count_where_nothing_else_shows_it():
    """A stale read of one's own session is told with its suffix."""
    history = History.from_transactions(
        [T([("w", "x", 1)], session=1), T([("r", "x", None)], session=1)]
    )
    (one,) = findings_of(history).anomalies
    assert one.anomaly.endswith("-session")
    assert one.certified


def test_a_valid_history_has_none():
    """And nothing is violated."""
    history = isolang.load_history(ROOT / "examples" / "three.txt")
    found = findings_of(history)
    assert (found.anomalies, found.weakest_violated, found.also_violated) == ((), (), ())


def test_the_time_ends_the_search_and_is_said():
    """What was found by then is given."""
    history = isolang.load_history(ROOT / "examples" / "on-call.edn")
    assert "time limit was reached" in findings_of(history, Options(timeout=1e-6)).not_finished


def test_a_cycle_is_counted_once():
    """What happened once is one component, whichever relations its cycles are looked for by."""
    bugs = ("fractured read", "long fork", "write skew", "lost update")
    workload = Workload(transactions=600, keys=200, rule="snapshot", bugs=bugs, seed=3)
    found = {one.anomaly: one.count for one in findings_of(generate(workload)).anomalies}
    assert found == dict.fromkeys(bugs, 1)


def test_behind_thin_air_reads_is_what_overwrote_them():
    """Of a database that had rows: the lost update of what was there, not only the reads."""
    history = History.from_transactions(
        [
            Transaction([("r", "x", 7), ("w", "x", 1)]),
            Transaction([("r", "x", 7), ("w", "x", 2)]),
            Transaction([("r", "y", 8)]),
        ]
    )
    found = findings_of(history)
    assert [one.anomaly for one in found.anomalies] == ["thin-air read"]
    (lost,) = found.behind
    assert (lost.anomaly, lost.certified) == ("lost update", True)
    assert {t.name for t in lost.violation.transactions} == {"T1", "T2"}
    assert findings_of(with_initial(history, unwritten=True)).behind == ()
