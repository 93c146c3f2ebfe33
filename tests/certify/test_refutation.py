"""Refutations by hand: each wrong claim is refused, by both checkers and for its own reason."""

import random
import time

import pytest
from support.certify import (
    PL1,
    PSI,
    SER,
    SI,
    SSER,
    acyclic,
    decide,
    history,
    prefix_holds,
    refute,
    rw,
    so,
    spec,
    txn,
    verdicts_of_both,
    ww,
)

from isolang._native import verify_refutation
from isolang.api import load_spec
from isolang.certify.errors import CertificateRejected
from isolang.certify.native import native_checks
from isolang.certify.proofs import Refutation, Witness
from isolang.certify.propagation import Propagation
from isolang.certify.refutation import check_refutation
from isolang.history import History, Transaction
from isolang.language.meaning.core import Seq, Union

# T0 is number 3. Operations: 0 r(x,nil), 1 w(x,1) | 2 r(x,nil), 3 w(x,2) | 4 r(x,1) 5 r(x,2)
LOST = history(
    txn("r(x,nil) w(x,1)", 1), txn("r(x,nil) w(x,2)", 2), txn("r(x,1)", 3), name="lost-update"
)
FIRST = ("cycle", "c0", [("ww", 0, 1, 0, -1, -1), ("rw", 1, 0, 0, 2, 3)])
SECOND = ("cycle", "c0", [("ww", 1, 0, 0, -1, -1), ("rw", 0, 1, 0, 0, 3)])
EITHER = [FIRST, SECOND, ("rup", [])]


def reason(h, s, steps):
    """Why both checkers refuse."""
    native = verify_refutation(h.columns, native_checks(s), steps)
    assert native, "the native checker accepts"
    with pytest.raises(CertificateRejected) as caught:
        check_refutation(h, s, steps)
    return f"{caught.value} / {native}"


def test_a_case_split_is_a_refutation():
    assert verdicts_of_both(LOST, SI, EITHER) == ("accepted", "accepted")
    assert verdicts_of_both(LOST, PSI, EITHER) == ("accepted", "accepted")


def test_a_walk_begins_at_any_of_its_edges():
    """SI reads its words from the edge before the `rw` on."""
    name, check, (ww_edge, rw_edge) = FIRST
    assert verdicts_of_both(LOST, SI, [(name, check, [rw_edge, ww_edge]), *EITHER[1:]]) == (
        "accepted",
        "accepted",
    )


def test_an_edge_may_say_more_than_it_must():
    """Two writers of one key, one after the other in a session: what `so` alone asks for."""
    h = history(txn("w(x,1)", 1), txn("w(x,2)", 1), txn("r(x,1)", 2), txn("r(x,2)", 3))
    cycle = [("so[W,W]", 0, 1, -1, -1, -1), ("ww", 1, 0, 0, -1, -1)]
    forward = ("rup", [(True, ("before", 0, 0, 1))])
    assert reason(h, SER, [("cycle", "c0", cycle), forward]).count("last step") == 2


def test_a_step_that_is_missing():
    for i, said in ((0, "rup"), (1, "rup"), (2, "last step")):
        assert said in reason(LOST, SI, EITHER[:i] + EITHER[i + 1 :])


def test_the_last_step_must_be_empty():
    assert "last step" in reason(LOST, SI, [*EITHER, FIRST])
    assert "no steps" in reason(LOST, SI, [])


@pytest.mark.parametrize(
    ("edge", "said"),
    [
        (("ww", 0, 0, 0, -1, -1), "itself"),
        (("ww", 0, 2, 0, -1, -1), "no writer"),
        (("ww", 0, 7, 0, -1, -1), "no writer"),
        (("ww", 0, -1, 0, -1, -1), "no writer"),
        (("ww", 0, 1, 1, -1, -1), "no key"),
        (("ww", 0, 1, -1, -1, -1), "no key"),
        (("ww", 0, 1, 0, 2, -1), "not used"),
        (("ww", 0, 1, 0, -1, 3), "not used"),
        (("so", 0, 1, -1, -1, -1), "does not say so"),
        (("so", 0, 1, 0, -1, -1), "not used"),
        (("rt", 0, 1, -1, -1, -1), "does not say so"),
        (("init", 0, 1, -1, -1, -1), "does not say so"),
        (("wr", 0, 1, 0, 2, -1), "no candidate"),
        (("wr", 3, 1, 0, 0, -1), "not a read of that key by"),
        (("wr", 3, 1, 0, 1, -1), "no external read"),
        (("wr", 3, 1, 0, 99, -1), "no external read"),
        (("wr", 3, 1, 0, -1, -1), "no external read"),
        (("wr", 3, 1, 1, 2, -1), "not a read of that key"),
        (("rw", 0, 1, 0, 0, 1), "no candidate"),
        (("rw", 0, 0, 0, 0, 3), "identity"),
        (("rw", 0, 1, 0, 2, 3), "not a read of that key by"),
        (("co", 0, 1, -1, -1, -1), "unknown relation"),
    ],
)
def test_an_edge_that_is_not_there(edge, said):
    back = ("so", edge[2], edge[1], -1, -1, -1)
    assert said in reason(LOST, SI, [("cycle", "c0", [edge, back]), SECOND, ("rup", [])])


def test_a_walk_must_close_and_spell_a_word():
    assert "next begins" in reason(LOST, SI, [("cycle", "c0", [FIRST[2][0]])])
    assert "no edges" in reason(LOST, SI, [("cycle", "c0", [])])
    assert "no check" in reason(LOST, SI, [("cycle", "other", FIRST[2])])
    both_rw = [("rw", 0, 1, 0, 0, 3), ("rw", 1, 0, 0, 2, 3)]
    assert "no word" in reason(LOST, SI, [("cycle", "c0", both_rw), ("rup", [])])
    # Every edge a fact, as T0 precedes all: under SER this one cycle is the whole refutation.
    assert verdicts_of_both(LOST, SER, [("cycle", "c0", both_rw)]) == ("accepted", "accepted")


def test_irreflexive_needs_one_word_not_several():
    h = history(
        txn("w(x,1)", 1), txn("w(y,1)", 2), txn("r(x,1) r(y,nil)", 3), txn("r(x,nil) r(y,1)", 4)
    )
    edges = [
        ("wr", 0, 2, 0, 2, -1),
        ("rw", 2, 1, 1, 3, 4),
        ("wr", 1, 3, 1, 5, -1),
        ("rw", 3, 0, 0, 4, 4),
    ]
    assert verdicts_of_both(h, SI, [("cycle", "c0", edges)]) == ("accepted", "accepted")
    assert "no word" in reason(h, PSI, [("cycle", "c0", edges)])


def test_session_order_ends_at_a_maybe_transaction():
    h = history(txn("w(x,1)", 1, "maybe"), txn("r(x,nil) w(y,1)", 1), txn("r(y,1) r(x,1)", 2))
    edges = [("so", 0, 1, -1, -1, -1), ("rw", 1, 0, 0, 1, 3)]
    assert "does not say so" in reason(h, SER, [("cycle", "c0", edges)])
    assert isinstance(decide(h, SER)[0].source, list)


def test_real_time_is_strict():
    h = history(
        txn("w(x,1)", 1, begin=0, end=2),
        txn("r(x,nil)", 2, begin=2, end=3),
        txn("r(x,nil)", 3, begin=3, end=4),
    )
    touching = [("rt", 0, 1, -1, -1, -1), ("rw", 1, 0, 0, 1, 3)]
    apart = [("rt", 0, 2, -1, -1, -1), ("rw", 2, 0, 0, 2, 3)]
    assert "does not say so" in reason(h, SSER, [("cycle", "c0", touching)])
    assert verdicts_of_both(h, SSER, [("cycle", "c0", apart)]) == ("accepted", "accepted")


def test_real_time_without_times_is_not_certified():
    h = history(txn("w(x,1)", 1))
    assert verdicts_of_both(h, SSER, [("rup", [])]) == ("not certified", "not certified")
    assert verdicts_of_both(h, SSER, Witness.of([-1], [0, 1], [0])) == (
        "not certified",
        "not certified",
    )


def test_a_step_in_time_begins_at_a_statement_of_the_session():
    """Behind session order, which says of no statement, as behind a step that does."""
    level = load_spec("consistent-read-by-statement")
    for sent, verdict in ((13, "accepted"), (12, "rejected")):
        h = History.from_transactions(
            [
                Transaction([("w", "x", 1)], session=0, begin=0, end=99, times=[(1, 2)], commit=3),
                Transaction([("r", "y", None)], session=0, begin=4, end=30, times=[(5, 12)]),
                Transaction([("r", "x", None)], session=1, begin=6, end=30, times=[(sent, 20)]),
            ]
        )
        edges = [
            ("so", 0, 1, -1, -1, -1),
            ("answered-before", 1, 2, -1, 2, -1),
            ("rw", 2, 0, 0, 2, 3),
        ]
        steps = [("choice", 2), ("cycle", "snapshot", edges), ("rup", [])]
        assert verdicts_of_both(h, level, steps) == (verdict, verdict)


def test_a_statement_leads_to_its_own_commit_only():
    """A step from a statement to another transaction's COMMIT would close any walk."""
    level = load_spec("pl-msr")
    h = history(txn("r(x,2) w(y,1)", 1), txn("r(y,1) w(x,2)", 2))
    circle = [
        ("wr", 0, 1, 1, 2, -1), ("tx", 1, 1, -1, 2, -1),
        ("wr", 1, 0, 0, 0, -1), ("tx", 0, 0, -1, 0, -1),
    ]  # fmt: skip
    steps = [("choice", 2), ("choice", 0), ("cycle", "G-MSR", circle), ("rup", [])]
    assert verdicts_of_both(h, level, steps) == ("accepted", "accepted")
    h = history(txn("w(y,1)", 1), txn("r(y,1)", 2))
    forged = [("wr", 0, 1, 0, 1, -1), ("tx", 1, 0, -1, 1, -1)]
    steps = [("choice", 1), ("cycle", "G-MSR", forged), ("rup", [])]
    assert verify_refutation(h.columns, native_checks(level), steps)
    with pytest.raises(CertificateRejected, match="does not say so"):
        check_refutation(h, level, steps)


def test_a_choice_has_all_candidates():
    h = history(txn("w(x,1)", 1), txn("w(x,1)", 2), txn("r(x,1)", 3))
    steps = [("choice", 2), ("rup", [(True, ("source", 2, 0)), (True, ("source", 2, 1))])]
    assert "last step" in reason(h, SER, steps)  # and no earlier step
    assert "rup" in reason(h, SER, [("choice", 2), ("rup", [(True, ("source", 2, 0))])])
    assert "no candidate" in reason(h, SER, [("rup", [(True, ("source", 2, 3))])])
    assert "no external read" in reason(h, SER, [("choice", 0)])
    one_source = [("rup", [(False, ("source", 2, 0)), (False, ("source", 2, 1))])]
    assert "last step" in reason(h, SER, one_source)


def test_an_order_step_is_a_cycle_of_writers():
    h = history(txn("w(x,1)", 1), txn("w(x,2)", 2), txn("w(x,3)", 3))
    forward = [
        (False, ("before", 0, 0, 1)),
        (False, ("before", 0, 1, 2)),
        (False, ("before", 0, 2, 0)),
    ]
    assert "last step" in reason(h, SER, [("order", 0, [0, 1, 2]), ("rup", forward)])
    assert "rup" in reason(h, SER, [("order", 0, [0, 2, 1]), ("rup", forward)])
    assert "fewer" in reason(h, SER, [("order", 0, [0])])
    assert "last step" in reason(h, SER, [("order", 0, [0, 1])])


def test_literals_that_are_facts():
    h = history(txn("a(x,1)", 1), txn("a(x,2)", 2), txn("a(x,3)", 3), txn("r(x,[2 1])", 4))
    for literal in (("before", 0, 4, 0), ("before", 0, 1, 0), ("before", 0, 0, 2), ("in", 0)):
        positive, negative = [("rup", [(True, literal)])], [("rup", [(False, literal)])]
        assert "last step" in reason(h, SER, positive), literal
        assert "step 0: rup" in reason(h, SER, negative), literal


def test_a_list_order_of_a_maybe_reader_holds_if_it_is_included():
    h = history(txn("a(x,1)", 1), txn("a(x,2)", 2), txn("r(x,[2 1]) w(y,1)", 3, "maybe"))
    before = (True, ("before", 0, 1, 0))
    assert "step 0: rup" in reason(h, SER, [("rup", [before])])
    assert "last step" in reason(h, SER, [("rup", [(False, ("in", 2)), before])])


def test_one_that_is_left_out_stands_last():
    h = history(txn("w(x,1)", 1, "maybe"), txn("w(x,2)", 2), txn("w(x,1)", 3), txn("r(x,1)", 4))
    included, first = (True, ("in", 0)), ("before", 0, 0, 1)
    assert "last step" in reason(h, SER, [("rup", [included, (False, first)])])
    assert "step 0: rup" in reason(h, SER, [("rup", [(False, first)])])
    assert "last step" in reason(h, SER, [("rup", [(False, ("source", 3, 0)), included])])
    assert "never included" in reason(h, SER, [("rup", [(True, ("in", 9))])])


@pytest.mark.parametrize(
    ("ops", "kind", "others"),
    [
        (["r(x,9)"], 0, {0}),
        (["r(x,1)", "!w(x,1)"], 1, {1}),
        (["r(x,1)", "w(x,1) w(x,2)"], 2, {2}),
        (["r(x,1) w(x,1)"], 3, {3}),
        (["w(x,1) r(x,2)", "w(x,2)"], 4, {4}),
        (["w(x,1) w(x,2) r(x,1)"], 5, {4, 5}),
        (["r(x,[1 1])", "a(x,1)"], 7, {2, 7, 8}),
        (["r(x,[1 2 3])", "a(x,1) a(x,3)", "a(x,2)"], 8, {2, 8}),
    ],
)
def test_anomalies_are_only_those_that_are_there(ops, kind, others):
    h = history(*(txn(text, i) for i, text in enumerate(ops)))
    op = next(i for i, k in enumerate(h.columns.op_kind) if k in (0, 3))
    for claimed in range(-1, 10):
        steps = [("anomaly", claimed, 0, op, -1, -1)]
        expected = "accepted" if claimed in others else "rejected"
        assert verdicts_of_both(h, SER, steps) == (expected, expected), claimed
    assert kind in others
    assert "not of transaction" in reason(h, SER, [("anomaly", kind, 5, op, -1, -1)])
    assert "not of transaction" in reason(h, SER, [("anomaly", kind, 0, op, 0, 99)])


def test_incompatible_lists_need_two_that_are():
    h = history(
        txn("a(x,1)", 1),
        txn("a(x,2)", 2),
        txn("r(x,[1])", 3),
        txn("r(x,[2])", 4),
        txn("r(x,[])", 5),
    )
    assert verdicts_of_both(h, SER, [("anomaly", 6, 3, 3, 2, 2)]) == ("accepted", "accepted")
    assert "prefix" in reason(h, SER, [("anomaly", 6, 3, 3, 4, 4)])
    assert "shows none" in reason(h, SER, [("anomaly", 6, 3, 3, -1, -1)])


def test_an_anomaly_of_a_maybe_transaction_only_leaves_it_out():
    h = history(txn("r(x,9) w(y,1)", 1, "maybe"), txn("r(y,1)", 2), txn("w(y,1)", 3))
    step = ("anomaly", 0, 0, 0, -1, -1)
    assert "last step" in reason(h, SER, [step])
    assert "last step" in reason(h, SER, [step, ("choice", 2), ("rup", [(True, ("source", 2, 2))])])
    without = history(txn("r(x,9) w(y,1)", 1, "maybe"), txn("r(y,1)", 2))
    assert verdicts_of_both(without, SER, [step]) == (
        "accepted",
        "accepted",
    )  # it must be in: nobody else wrote 1


def test_a_spec_without_reads_has_only_anomalies_of_order():
    assert "ignores reads" in reason(history(txn("r(x,9)", 1)), PL1, [("anomaly", 0, 0, 0, -1, -1)])
    assert "ignores reads" in reason(history(txn("r(x,9)", 1)), PL1, [("choice", 0)])
    forks = history(txn("a(x,1)", 1), txn("a(x,2)", 2), txn("r(x,[1])", 3), txn("r(x,[2])", 4))
    assert verdicts_of_both(forks, PL1, [("anomaly", 6, 3, 3, 2, 2)]) == ("accepted", "accepted")
    own = history(txn("a(x,1) a(x,2)", 1), txn("r(x,[2 1])", 3))
    assert "vo is an order" in reason(own, PL1, [("anomaly", 8, 1, 2, -1, -1)])
    assert verdicts_of_both(own, PL1, Witness.of([-1] * 3, [0, 1], [0])) == ("accepted", "accepted")


@pytest.mark.parametrize(
    "step",
    [
        None, 1, "rup", [], ["rup"], ["rup", 1], ["rup", [1]], ["rup", [[True]]],
        ["rup", [[1, ["in", 0]]]], ["rup", [[True, ["in"]]]], ["rup", [[True, ["in", True]]]],
        ["rup", [[True, ["in", "0"]]]], ["rup", [[True, ["out", 0]]]], ["rup", [[True, []]]],
        ["rup", [[True, ["in", 1.0]]]], ["choice"], ["choice", None], ["choice", 1, 2],
        ["anomaly", 0], ["order", 0], ["order", 0, 1], ["cycle", "c0"], ["cycle", 0, []],
        ["cycle", "c0", [1]], ["cycle", "c0", [["ww", 0, 1]]],
        ["cycle", "c0", [[0, 0, 1, 0, -1, -1]]], ["what", 1], [["rup"], []], ["choice", 2**70],
        ["choice", -(2**63)], ["in", 0], {"rup": []},
        ["rup", [[True, ["source", 2**62, -(2**62)]]]],
        ["rup", [[True, ["before", 2**40, 0, 1]]]], ["rup", [[False, ["before", 0, 2**40, 1]]]],
        ["rup", [[True, ["in", 2**40]]]],
        ["cycle", "c0", [["rw", 2**40, -5, 2**35, 2**62, 2**50]] * 2],
        ["anomaly", 2**40, 2**40, 2**40, 2**40, 2**40], ["order", 2**40, [2**40, -1]],
    ],
)  # fmt: skip
def test_malformed_steps_are_refused(step):
    assert verdicts_of_both(LOST, SI, [step, *EITHER]) == ("rejected", "rejected")


# --- unit propagation ---


def satisfiable(clauses, variables):
    for bits in range(2**variables):
        if all(any((bits >> (lit >> 1)) & 1 != lit & 1 for lit in clause) for clause in clauses):
            return True
    return False


def test_what_propagation_shows_does_follow():
    """SOUND on random clauses, and stable: a refused clause leaves nothing behind."""
    rng = random.Random(5)
    shown = refused = 0
    for _ in range(150):
        rules = Propagation()
        variables = [rules.variable() for _ in range(5)]
        number = {lit: 2 * i for i, lit in enumerate(variables)}
        clauses = []
        for _ in range(rng.randint(3, 25)):
            clause = [rng.choice(variables) ^ rng.randint(0, 1) for _ in range(rng.randint(1, 3))]
            plain = [number[lit & ~1] | (lit & 1) for lit in clause]
            if rng.random() < 0.4:
                follows = not satisfiable([*clauses, *([lit ^ 1] for lit in plain)], 5)
                if rules.implies(clause):
                    assert follows
                    shown += 1
                else:
                    refused += 1
            else:
                rules.add(clause)
                clauses.append(plain)
                assert not rules.contradictory or not satisfiable(clauses, 5)
    assert shown > 100
    assert refused > 100


def test_at_most_one_of_a_group():
    rules = Propagation()
    group = []
    a, b, c = (rules.variable(group) for _ in range(3))
    assert rules.implies([a ^ 1, b ^ 1])
    assert not rules.implies([a, b, c])
    rules.add([b])
    assert rules.implies([c ^ 1])
    assert rules.implies([rules.variable(group) ^ 1])


@pytest.mark.slow
def test_thousands_of_clauses():
    """Eight thousand clauses that hold but refute nothing; propagation stays near-linear."""
    writers = 90
    h = history(*(txn(f"w(x,{i})", i) for i in range(writers)), txn("r(x,nil) w(y,1)", 0))
    s = acyclic(Seq((Union((so, ww)), ww)))
    steps = []
    for i in range(writers - 2):
        for j in range(i + 1, writers - 1):
            steps.append(("order", 0, [i, j, j + 1]))
            literals = [("before", 0, i, j), ("before", 0, j, j + 1), ("before", 0, j + 1, i)]
            steps.append(("rup", [(False, literal) for literal in literals]))
    began = time.process_time()
    reason_native = verify_refutation(h.columns, native_checks(s), steps)
    native = time.process_time() - began
    assert reason_native == "the last step is not the empty clause"
    assert native < 1
    with pytest.raises(CertificateRejected, match="last step"):
        check_refutation(h, s, steps)


def test_refutations_of_the_tiny_solver_lose_no_step_that_matters():
    """Dropping any one of the steps of a minimal refutation makes it wrong."""
    h = history(
        txn("w(x,1)", 1),
        txn("w(x,1) w(y,1)", 2),
        txn("r(y,1) r(x,1)", 3),
        txn("r(x,nil) r(y,1)", 3),
    )
    world, cycles = decide(h, SER)
    assert world is None
    steps = refute(h, SER, cycles, prefix_holds(h, SER))
    i = 0
    while i < len(steps):  # minimise
        fewer = steps[:i] + steps[i + 1 :]
        if verdicts_of_both(h, SER, fewer) == ("accepted", "accepted"):
            steps = fewer
        else:
            i += 1
    for i in range(len(steps)):
        assert verdicts_of_both(h, SER, steps[:i] + steps[i + 1 :]) == ("rejected", "rejected"), (
            steps[i]
        )
    assert verdicts_of_both(h, SER, Refutation.of(steps)) == ("accepted", "accepted")


def test_out_of_time_is_not_certified():
    h = history(*(txn(f"w(x,{i})", i) for i in range(300)))
    steps = [("order", 0, [i, i + 1, (i * 7) % 50]) for i in range(50, 250)] * 300
    reason_native = verify_refutation(h.columns, native_checks(spec(("acyclic", rw))), steps, 1e-4)
    assert reason_native == "not certified: timeout"


@pytest.mark.parametrize(
    ("level", "check"),
    [
        ("consistent-read-by-statement", "snapshot"),
        ("postgresql-read-committed", "commit-order"),
    ],
)
def test_a_statement_that_read_what_nobody_wrote(level, check):
    """Its times count like those of any other statement, for both checkers."""
    h = history(
        txn("r(x,1) r(y,2)", 0, begin=0, end=3),
        txn("w(x,1)", 1, begin=4, end=9),
    )
    walk = [
        ("wr", 1, 0, 0, 0, -1),
        ("po", 0, 0, -1, 1, -1),
        ("committed-after", 0, 1, -1, 1, -1),
    ]
    steps = [("cycle", check, walk), ("rup", [])]
    assert verdicts_of_both(h, load_spec(level), steps) == ("accepted", "accepted")
