"""Implicit set-reads: made where an order contradicts one, and nowhere else."""

import io
import json
import random

import numpy as np
import pytest
from msgspec.structs import replace
from oracle.generate_rows import equal_row_history, row_history
from oracle.pipeline import Levels, to_tool

from isolang import History, Transaction, check, load_history, load_spec, pipeline
from isolang.certify.certificate import Certificate, verify
from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Refutation, Witness, check_proof
from isolang.certify.steps import CycleStep
from isolang.comparison.normal import normal
from isolang.comparison.vacuity import possible_violations
from isolang.errors import HistoryError
from isolang.history.columns import READ, WRITE
from isolang.history.values import encode
from isolang.language.classify.route import native_plan
from isolang.pipeline.findings import findings_of
from isolang.pipeline.implicit import Implicit
from isolang.pipeline.levels import levels_of
from isolang.pipeline.pair_run import PairRun
from isolang.pipeline.views import replay_views
from isolang.problem import build_problem
from isolang.solvers import engine

LEVELS = ("ser", "si", "pc", "ra", "pl-2-99", "psi", "cc")
PARTIAL = (
    "pl-cs",
    "ryw",
    "mr",
    "mw",
    "wfr",
    "rc",
    "pram",
    "processor",
    "per-key-sequential",
    "pl-2l",
)
SCAN = (">", "value", 0)


def implied(history):
    columns = history.columns.implied()
    assert columns is not None
    return replace(history, columns=columns)


def rows(*transactions, **more):
    return implied(History.from_transactions(transactions, **more))


def txn(session, *ops):
    return Transaction(list(ops), session=session)


#: One writes rows one after the other; another sees the first, and then both.
GROWING = rows(
    txn("a", ("w", "x", 1)),
    txn("b", ("scan", SCAN, {"x": 1})),
    txn("a", ("w", "y", 2)),
    txn("b", ("scan", SCAN, {"x": 1, "y": 2})),
)
#: It sees the second row alone; those before it saw what there was.
PHANTOM = rows(
    *[txn("d", ("scan", SCAN, {}))] * 4,
    txn("a", ("w", "x", 1)),
    txn("b"),
    txn("a", ("w", "y", 2)),
    txn("b", ("scan", SCAN, {"y": 2})),
    txn("c", ("w", "z", 3)),
    txn("c", ("w", "z", -3)),
)


def proves(history, spec, proof):
    """By both checkers."""
    for judge in (check_natively, check_proof):
        judge(history, spec, proof)


def accepted(verdict, spec):
    """Natively, and by definition."""
    proves(verdict.history, load_spec(spec), verdict.certificate().proof)


@pytest.mark.parametrize("spec", LEVELS)
def test_what_no_order_contradicts_stays_implicit(spec):
    """As it was recorded, each predicate read returned the rows that were there."""
    verdict = check(GROWING, spec)
    assert verdict.outcome == "valid"
    assert verdict.certified
    accepted(verdict, spec)
    assert verdict.history.columns.implicit
    assert not verdict.history.set_reads


@pytest.mark.parametrize("spec", ["ser", "si", "pc", "psi", "cc"])
def test_a_phantom_needs_the_set_read_that_tells_of_it(spec):
    """Of the three keys whose rows match, only the one that was missed becomes an operation."""
    verdict = check(PHANTOM, spec)
    assert verdict.outcome == "invalid"
    assert verdict.certified
    accepted(verdict, spec)
    x = next(k for k in range(3) if PHANTOM.key(k) == "x")
    assert verdict.history.set_reads == ((4, x),)


NO_ROWS = np.zeros((0, 2), np.int32)
#: Two transactions write equal rows, so that a row of ``x`` has two possible sources.
EQUAL_ROWS = rows(
    txn("a", ("w", "x", 1), ("w", "y", 2)),
    txn("b", ("scan", SCAN, {"x": 1, "y": 2})),
    txn("a", ("w", "x", 3)),
    txn("b", ("scan", SCAN, {"x": 3, "y": 2})),
    txn("a", ("w", "x", 1)),
    txn("b", ("scan", SCAN, {"x": 1, "y": 2})),
)


def omitted(history, kept=NO_ROWS):
    """Return the keys of the rows that the problem omits."""
    ops = build_problem(history, rows=np.array(kept, np.int32)).native.omitted
    return [history.key(k) for k in history.columns.op_key[ops].tolist()]


def test_rows_with_one_source_and_rows_that_are_kept_are_part_of_the_problem():
    """Only the two rows of ``x`` that two transactions may have written are omitted."""
    x = next(k for k in range(2) if EQUAL_ROWS.key(k) == "x")
    assert omitted(EQUAL_ROWS) == ["x", "x"]
    assert omitted(EQUAL_ROWS, [(0, x)]) == omitted(EQUAL_ROWS, [(2, -1)]) == ["x"]
    assert omitted(EQUAL_ROWS, [(0, 1 - x), (1, x)]) == ["x", "x"]
    assert omitted(EQUAL_ROWS.written_out()) == []
    assert len(build_problem(EQUAL_ROWS).native.omitted) == 0


def test_a_row_that_shows_whether_a_transaction_committed_is_part_of_the_problem():
    """A transaction of unknown outcome is included only if a read takes it as its source."""
    unknown = Transaction([("w", "x", 1)], session="d", status="indeterminate")
    history = rows(
        txn("a", ("w", "x", 1)),
        unknown,
        txn("a", ("w", "x", 2)),
        txn("b", ("scan", SCAN, {"x": 1})),
    )
    assert omitted(history) == []
    assert check(history, "ser").certified


def test_a_row_that_its_transaction_read_before_is_part_of_the_problem():
    """Both reads have one source, and the first read is of a key."""
    twice = txn("b", ("r", "x", 1), ("scan", SCAN, {"x": 1}))
    history = rows(txn("a", ("w", "x", 1)), txn("a", ("w", "x", 1)), twice)
    assert omitted(history) == []
    accepted(check(history, "ser"), "ser")


@pytest.mark.parametrize("spec", [*LEVELS, "rc", "pl-2", "pl-2l"])
def test_the_order_chooses_the_sources_of_equal_rows(spec):
    """Each read of a row takes the version that is there in the order of the history."""
    verdict = check(EQUAL_ROWS, spec)
    assert verdict.certified
    accepted(verdict, spec)
    ops = build_problem(EQUAL_ROWS, rows=NO_ROWS).native.omitted
    assert verdict.certificate().proof.source[ops].tolist() == [0, 4]


@pytest.mark.parametrize("spec", ["ser", "si", "cc", "rc"])
def test_a_row_that_an_order_contradicts_is_decided_like_any_read(spec, monkeypatch):
    """The reader stands behind a version that it did not see."""
    history = rows(
        *[txn("d", ("scan", SCAN, {}))] * 4,
        txn("a", ("w", "x", 1)),
        txn("b"),
        txn("a", ("w", "x", 1)),
        txn("a", ("w", "x", 2)),
        txn("b", ("scan", SCAN, {"x": 1})),
    )
    restarted = []
    restart = PairRun.restart
    monkeypatch.setattr(Implicit, "_serial", lambda *_: None)
    monkeypatch.setattr(
        PairRun, "restart", lambda run, *given: (restarted.append(given), restart(run, *given))
    )
    verdict = check(history, spec)
    assert verdict.outcome == "valid"
    accepted(verdict, spec)
    assert verdict.history.columns.implicit
    assert [kept.tolist() for _, kept in restarted] == [[], [[4, 0]]]


def status_column(rng, *, late, rows_of_table=100, values=4, transactions=200, sessions=6):
    """Rows of few values in one serial order, and lines that come up to ``late`` places late."""
    now = {f"x{i}": rng.randrange(values) for i in range(rows_of_table)}
    begin = txn("t", *[("w", key, value) for key, value in now.items()])
    lines, last = [], {}
    for i in range(transactions):
        session = f"s{i % sessions}"
        if i % 2:
            wanted = rng.randrange(values)
            found = {key: value for key, value in now.items() if value == wanted}
            op = [("scan", ("=", "value", wanted), found)]
        else:
            op = [("w", key, rng.randrange(values)) for key in rng.sample(sorted(now), 2)]
            now |= {key: value for _, key, value in op}
        last[session] = max(last.get(session, 0), i + rng.random() * late)
        lines.append((last[session], i, txn(session, *op)))
    return rows(begin, *[line for *_, line in sorted(lines, key=lambda one: one[:2])])


@pytest.mark.parametrize("spec", ["ser", "si", "psi", "cc"])
@pytest.mark.parametrize("late", [3, 5])
def test_lines_near_the_order_need_no_set_read(spec, late, monkeypatch):
    """Neighbours that changed places change back: no set-read becomes an operation."""

    def write_out(*_):
        raise AssertionError("set-reads became operations")

    monkeypatch.setattr(Implicit, "_write_out", write_out)
    verdict = check(status_column(random.Random(late), late=late), spec)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    accepted(verdict, spec)
    assert not verdict.history.set_reads


def test_a_serial_order_gives_each_read_what_it_returned():
    """Replayed row by row, in the order of each session; of a phantom there is none."""
    history = status_column(random.Random(5), late=6)
    columns = history.columns
    lines = np.arange(columns.transactions(), dtype=np.int32)
    found = columns.serial_order_near(lines)
    assert found is not None
    commits, source = found
    assert sorted(commits.tolist()) == lines.tolist()
    assert commits.tolist() != lines.tolist()
    for session in np.unique(columns.txn_session):
        own = [t for t in commits.tolist() if columns.txn_session[t] == session]
        assert own == sorted(own)
    now, writer, scans = {}, {}, 0
    for t in commits.tolist():
        ops = range(columns.op_start[t], columns.op_start[t + 1])
        reads = [op for op in ops if columns.op_kind[op] == READ]
        assert all(now[columns.op_key[op]] == columns.op_value[op] for op in reads)
        assert all(writer[columns.op_key[op]] == source[op] for op in reads)
        if reads:
            scans += 1
            wanted = columns.op_value[reads[0]]
            assert len(reads) == sum(value == wanted for value in now.values())
        for op in ops:
            if columns.op_kind[op] == WRITE:
                now[columns.op_key[op]], writer[columns.op_key[op]] = columns.op_value[op], t
    assert scans > 50
    phantom = np.arange(PHANTOM.columns.transactions(), dtype=np.int32)
    assert PHANTOM.columns.serial_order_near(phantom) is None


def test_equal_rows_that_no_source_explains_violate_a_level():
    """The reader saw the version that came last, and then an earlier one."""
    history = rows(
        *(txn("a", ("w", "x", value)) for value in (1, 1, 2)),
        *(txn("b", ("scan", SCAN, {"x": value})) for value in (2, 1)),
    )
    for spec in ("ser", "si", "cc"):
        verdict = check(history, spec)
        assert (verdict.outcome, verdict.certified) == ("invalid", True)
        accepted(verdict, spec)
    assert check(history, "rc").outcome == "valid"


def timed():
    """Each transaction is over before the next one begins; all are of one group."""
    operations = [("w", "x", 1), ("scan", SCAN, {"x": 1})]
    operations += [("w", "y", 2), ("scan", SCAN, {"x": 1, "y": 2})]
    return rows(
        *(
            Transaction([op], session="ab"[i % 2], group="g", begin=2 * i, end=2 * i + 1)
            for i, op in enumerate(operations)
        )
    )


def test_a_level_that_no_order_decides_is_judged_with_all_set_reads():
    """An order says nothing of times of single statements."""
    verdict = check(timed(), "consistent-read-by-statement")
    assert verdict.certified
    assert verdict.history.set_reads == "all"
    assert not verdict.history.columns.implicit


#: Two readers see two rows in contradictory orders, so no order of COMMITs fits; a third row is
#: in no answer.
FORKED = rows(
    txn("e", ("w", "z", 5)),
    txn("e", ("w", "z", -5)),
    txn("a", ("w", "x", 1)),
    txn("b", ("w", "y", 2)),
    txn("c", ("scan", SCAN, {"x": 1})),
    txn("d", ("scan", SCAN, {"y": 2})),
    *[txn("f", ("scan", SCAN, {"x": 1, "y": 2}))] * 12,
    txn("e", ("w", "z", -6)),  # so the lines do not list one session after the other
)


def test_without_an_order_each_predicate_read_has_a_view(monkeypatch):
    """If a short search does not find a source for each set-read, the views do."""
    views = []

    def replay(*of):
        views.append(replay_views(*of))
        return views[-1]

    monkeypatch.setattr("isolang.pipeline.implicit.replay_views", replay)
    for work in (0, 1_000_000):
        monkeypatch.setattr("isolang.pipeline.implicit._SHORT", work)
        verdict = check(FORKED, "pl-2l")
        assert (verdict.outcome, verdict.certified) == ("valid", True)
        assert verdict.history.set_reads == "all"
        accepted(verdict, "pl-2l")
        assert len(views) == 1  # in the first check
    assert verdict.witness is not views[0][1]
    assert check(FORKED, "pl-msr").outcome == "invalid"


@pytest.mark.parametrize("answer", [{"y": 2}, {"x": 1, "y": 2}])
def test_a_view_contains_what_was_read_depends_on(answer):
    """A predicate read that returns a row sees everything that the row's writer had read."""
    history = rows(
        txn("a", ("w", "x", 1)),
        txn("b", ("r", "x", 1), ("w", "y", 2)),
        txn("c", ("scan", SCAN, answer)),
        txn("d", ("scan", SCAN, {})),
    )
    whole, plan, problem = (
        history.written_out(),
        native_plan(load_spec("pl-2l")),
        build_problem(history),
    )
    base = engine.solve(history.columns, problem.native, plan.automata).result
    missed, witness = replay_views(history, base, whole, build_problem(whole).native, [3, 0, 1, 2])
    if "x" in answer:
        assert not len(missed)
        proves(whole, load_spec("pl-2l"), witness)
    else:
        (x,) = (k for k in range(2) if history.key_object(k) == "x")
        assert missed.tolist() == [[0, x]]


CYCLIC = """spec cyclic "monotonic over reads; a version order may contradict them"
include "operations.iso"
acyclic wr | so as causal
irreflexive (wr | so)^* ; tx^-1 ; rf ; statement ; (po ; statement)? ; missed as monotonic
"""


def test_dependencies_that_form_a_cycle_give_no_views(monkeypatch, tmp_path):
    """A level may allow them; then all set-reads become operations."""
    history = rows(
        txn("a", ("w", "x", 1)),
        txn("b", ("r", "x", 1), ("w", "x", 2)),
        txn("c", ("scan", SCAN, {})),
    )
    whole = history.written_out()
    (tmp_path / "cyclic.iso").write_text(CYCLIC)
    spec = load_spec(str(tmp_path / "cyclic.iso"))
    problem, plan = build_problem(history), native_plan(spec)
    assert plan.automata[-1].back
    base = engine.solve(history.columns, problem.native, plan.automata).result
    turned = replace(base, order_txn=np.array([1, 0], np.int32))
    assert replay_views(history, turned, whole, build_problem(whole).native, [2, 0, 1]) is None
    monkeypatch.setattr("isolang.pipeline.implicit._SHORT", 0)
    monkeypatch.setattr("isolang.pipeline.implicit.replay_views", lambda *_: None)
    verdict = check(FORKED, spec)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.history.set_reads == "all"


def test_what_an_own_write_decides_is_an_operation():
    """A row that its reader wrote, and did not return."""
    history = rows(txn("a", ("w", "x", 1), ("scan", SCAN, {})))
    assert history.columns.operations() == 2
    assert check(history, "ser").violation.anomaly == "not my own write"


OWN_WRITES = """
{:type :invoke, :process 0, :value [[:rp [:and [:not [:>= :b 0]] [:between :a 2 4]] nil] [:rp [:!= :a 0] nil]]}
{:type :invoke, :process 1, :value [[:insert :x {:a nil :b 2}] [:rp [:null :a] nil] [:w :x {:a nil :b 0}]]}
{:type :ok, :process 0, :value [[:rp [:and [:not [:>= :b 0]] [:between :a 2 4]] {}] [:rp [:!= :a 0] {}]]}
{:type :invoke, :process 0, :value [[:rp [:between :b 1 3] nil] [:insert :x {:a 1 :b 2}] [:rp [:between :a 1 2] nil]]}
{:type :ok, :process 0, :value [[:rp [:between :b 1 3] {}] [:insert :x {:a 1 :b 2}] [:rp [:between :a 1 2] {}]]}
{:type :invoke, :process 0, :value [[:rp [:> :b 2] nil] [:w :x {:a 1 :b 0}] [:w :x {:a 1 :b nil}]]}
{:type :ok, :process 0, :value [[:rp [:> :b 2] {}] [:w :x {:a 1 :b 0}] [:w :x {:a 1 :b nil}]]}
{:type :ok, :process 1, :value [[:insert :x {:a nil :b 2}] [:rp [:null :a] {}] [:w :x {:a nil :b 0}]]}
"""  # noqa: E501 - a record is a line


def test_a_set_read_is_of_its_own_statement_by_definition():
    """PL-1 lets a predicate read miss an own write; another one of the transaction has a source."""
    verdict = check(implied(load_history(io.BytesIO(OWN_WRITES.encode()), format="edn")), "pl-1")
    assert verdict.outcome == "valid"
    accepted(verdict, "pl-1")


def test_an_element_of_a_list_that_its_reader_appended_is_no_row():
    """It has no columns, and no predicate is true of it."""
    history = rows(
        txn("a", ("w", "x", {"a": 1})),
        txn("b", ("append", "l", 1), ("scan", (">", "a", 0), {"x": {"a": 1}})),
    )
    assert check(history, "ser").certified


def refused(history, spec, proof, match):
    """By both checkers."""
    for judge in (check_natively, check_proof):
        with pytest.raises((CertificateRejected, NotCertifiedError), match=match):
            judge(history, spec, proof)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"commits": [0, 1, 3, 2]}, "predicate read|violating cycle|does not show"),
        ({"commits": [0, 1, 2]}, "order of snapshots"),
        ({"commits": [0, 1, 2, 2]}, "order of snapshots"),
        ({"commits": [0, 1, 2, 4]}, "order of snapshots"),
        ({"seen": [1, 4]}, "own COMMIT"),
        ({"seen": [-1, 3]}, "own COMMIT"),
        ({"seen": [1]}, "predicate read"),
        ({"commits": None, "seen": None}, "what predicate reads saw"),
    ],
)
def test_a_witness_with_another_order_is_refused_by_both(changed, match):
    """One that is not of what is included, or in which a predicate read sees its own COMMIT."""
    verdict = check(GROWING, "ser")
    proof = verdict.certificate().proof
    assert (proof.commits.tolist(), proof.seen.tolist()) == ([0, 1, 2, 3], [1, 3])
    changed = {name: given and np.array(given) for name, given in changed.items()}
    refused(verdict.history, load_spec("ser"), replace(proof, **changed), match)


def test_an_order_against_the_versions_is_refused_by_both():
    """The reader sees both transactions, so that no cycle tells."""
    history = rows(
        txn("a", ("w", "x", 1)), txn("b", ("w", "x", 2)), txn("c", ("scan", SCAN, {"x": 2}))
    )
    proof = Witness.of([-1, -1, 1], [0, 2], [0, 1], [1, 0, 2], [2])
    refused(history, load_spec("ser"), proof, "version order")
    check_natively(history, load_spec("ser"), replace(proof, commits=np.array([0, 1, 2], np.int32)))


def test_implicit_set_reads_close_cycles():
    """A predicate read behind a row of its own session did not see it; one before it did."""
    unseen = rows(txn("a", ("w", "x", 1)), txn("a", ("scan", SCAN, {})))
    refused(unseen, load_spec("ser"), Witness.of([-1], [0, 1], [0], [0, 1], [0]), "cycle|not show")
    gone = rows(txn("a", ("scan", SCAN, {})), txn("a", ("w", "x", -1)), txn("b", ("w", "x", 1)))
    proof = Witness.of([-1, -1], [0, 2], [1, 2], [1, 0, 2], [1])
    refused(gone, load_spec("ser"), proof, "cycle|not show")
    # Without sessions it may have been there.
    for judge in (check_natively, check_proof):
        judge(gone, load_spec("ser-nosession"), proof)


BETWEEN = ("between", "value", 1, 3)
POSITIVE = (">", "value", 0)


@pytest.mark.parametrize(
    ("where", "value", "matches"),
    [
        (BETWEEN, 3, True),
        (BETWEEN, 1, True),
        (BETWEEN, 3.0, True),
        (BETWEEN, 4, False),
        (BETWEEN, 0, False),
        (("=", "value", 3), 3, True),
        (("<", "value", 3), 3, False),
        (("<", "value", 3), -5, True),
        ((">", "value", 3), 3, False),
        ((">", "value", 3), 9, True),
        (("=", "value", 3), "three", False),
        (("=", "value", "three"), "three", True),
        (("and", POSITIVE, ("!=", "value", 2)), 2, False),
        (("and", POSITIVE, ("!=", "value", 2)), 3, True),
        (("or", ("=", "value", 1), ("=", "value", 3)), 3, True),
        (("mod", "value", 2, 1), 3, True),
    ],
)
def test_a_row_that_was_seen_and_matches_is_refused_by_both(where, value, matches):
    """At the bounds of an interval, beside it, and where no column is bounded."""
    history = rows(txn("a", ("w", "x", value)), txn("b", ("scan", where, {})))
    proof = Witness.of([-1], [0, 1], [0], [0, 1], [1])
    if matches:
        refused(history, load_spec("ser"), proof, "matches, and did not return it")
    else:
        proves(history, load_spec("ser"), proof)


def test_the_version_that_is_seen_last_decides():
    """Of a row that comes and goes; what is written right behind a snapshot is not in it."""
    values = (1, -1, 2)
    history = rows(
        *(txn("a", ("w", "x", value)) for value in values), txn("b", ("scan", POSITIVE, {}))
    )
    for seen, missed in enumerate([False, True, False, True]):
        commits = [*range(seen), 3, *range(seen, 3)]
        proof = Witness.of([-1] * 3, [0, 3], [0, 1, 2], commits, [seen])
        if missed:
            refused(history, load_spec("ser-nosession"), proof, "matches, and did not return it")
        else:
            proves(history, load_spec("ser-nosession"), proof)


def test_a_row_of_which_it_stays_open_whether_it_matches_is_certified_by_nobody():
    """The reader of a file would have said so; the checkers do not take its word."""
    history = rows(
        txn("a", ("w", "x", -1)), txn("c", ("w", "y", -2)), txn("b", ("scan", POSITIVE, {}))
    )
    history.columns.set_value(1, history.columns.intern_value(*encode("text", "a value")))
    for judge in (check_natively, check_proof):
        with pytest.raises(NotCertifiedError, match="not certified"):
            judge(
                history, load_spec("ser"), Witness.of([-1] * 2, [0, 1, 2], [0, 1], [0, 1, 2], [2])
            )


def read_twice(spec, **more):
    """One order holds for all of it, whatever of it counts."""
    operations = [
        ("a", [("w", "x", 1)]),
        ("b", [("scan", SCAN, {"x": 1})]),
        ("a", [("w", "y", 2)]),
        ("b", [("scan", SCAN, {"x": 1, "y": 2})]),
    ]
    history = rows(
        *(
            Transaction(ops, session=session, label="a", group="g", begin=2 * i, end=2 * i + 1)
            for i, (session, ops) in enumerate(operations)
        )
    )
    verdict = check(history, spec)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    return verdict


@pytest.mark.parametrize(
    "body",
    [
        'acyclic wr["x"] | ww["x"] | rw["x"] as c',
        'acyclic so | wr | ww | rw["y"] as c',
        'acyclic so | wr | ww | rw | ([R["x"]] ; so) as c',
        "acyclic so | wr | ww | rw | ([R] ; so) as c",
        "acyclic so | wr | ww | rw | ([W] ; so ; [R]) as c",
        'acyclic so | ([label "a"] ; (wr | ww | rw)) as c',
        "for each x: acyclic so | wr[x] | ww[x] | rw[x] as c",
        "for each x: acyclic so | wr[x] | ww[x] as d\n"
        "for each x: irreflexive (so | wr[x])^+ ; rw[x] as c",
    ],
)
def test_names_tests_keys_and_statements_say_only_which_pairs_count(body):
    """What an order forbids of all pairs, it forbids of some: no set-read is made."""
    text = f'include "adya.iso"\n{body}\n'
    verdict = read_twice(load_spec(text))
    assert verdict.history.columns.implicit
    assert not verdict.history.set_reads
    accepted(verdict, text)


@pytest.mark.parametrize("spec", PARTIAL)
def test_levels_of_keys_tests_and_statements_need_no_set_reads(spec):
    """As it was recorded, each predicate read returned the rows that were there."""
    verdict = read_twice(spec)
    assert verdict.history.columns.implicit
    accepted(verdict, spec)


@pytest.mark.parametrize(
    "spec",
    [
        *("consistent-read", "first-updater-wins", "mutual-exclusion"),
        *("innodb-repeatable-read", "innodb-serializable", "postgresql-repeatable-read"),
        *("strong-partition-si", "strong-si", "sser"),
        'include "adya.iso"\nacyclic so | wr | ww | rw | group-rt | done as c\n',
    ],
)
def test_what_compares_times_of_transactions_stays_implicit(spec):
    """Groups, answers to COMMIT and locks among them; and the certificate says so to both."""
    verdict = check(timed(), spec)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.history.columns.implicit
    assert not verdict.history.set_reads
    accepted(verdict, spec)


@pytest.mark.parametrize(
    ("relation", "later"),
    [("group-rt", {}), ("done", {}), ("locked", {"y": 3}), ("late", {"y": 3})],
)
def test_an_order_against_times_is_refused_by_both(relation, later):
    """The scan, which is behind the write of y by its times, is said to have seen what was before:
    neither checker takes that for a witness.
    """
    ops = [
        [("w", "x", 1), ("w", "y", 2)],
        [("scan", SCAN, {}), *(("w", k, -v) for k, v in later.items())],
    ]
    history = rows(
        *(
            Transaction(op, session=str(i), group="g", begin=2 * i, end=2 * i + 1)
            for i, op in enumerate(ops)
        )
    )
    spec = load_spec(f'include "adya.iso"\nacyclic wr | ww | rw | {relation} as c\n')
    verdict = check(history, spec)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    n = len(history.columns.op_kind)
    orders = ([0, 1, 2], [0, 0]) if not later else ([0, 1, 3], [0, 1, 0])
    proof = Witness.of([-1] * n, *orders, [1, 0], [0])
    with pytest.raises((CertificateRejected, NotCertifiedError)):
        check_natively(history, spec, proof)
    with pytest.raises(CertificateRejected):
        check_proof(history, spec, proof)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        # Who missed the row read another one of the same writer, of another name, key or test.
        ('acyclic so | wr["a"] | rw["b"] as c', "does not show"),
        ("acyclic ([W] ; so) | wr | ww | rw as c", "does not show"),
        ("for each x: acyclic so | wr[x] | ww[x] | rw[x] as c", "does not show"),
    ],
)
def test_an_order_that_shows_nothing_is_refused_whatever_pairs_count(body, match):
    """The first writer precedes in its session who did not see it."""
    history = rows(txn("a", ("w", "b", 1), ("w", "a", 1)), txn("a", ("scan", SCAN, {})))
    proof = Witness.of([-1, -1], [0, 1, 2], [0, 0], [0, 1], [0])
    with pytest.raises(NotCertifiedError, match=match):
        check_natively(history, load_spec(f'include "adya.iso"\n{body}\n'), proof)


def test_stated_versions_and_initial_rows_stand_in_the_order():
    """The rows that were there at first are seen, and what is written stands as it was stated."""
    history = rows(
        Transaction([("w", "x", -1)], session="a", versions=[7]),
        Transaction([("w", "x", 2)], session="b", versions=[5]),
        txn("c", ("scan", SCAN, {"y": 3})),
        initial={"y": 3},
        versions="ordered",
    )
    verdict = check(history, "ser-nosession")
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    accepted(verdict, "ser-nosession")
    assert verdict.history.columns.implicit
    assert verdict.certificate().proof.order_txn.tolist() == [1, 0]


def test_the_certificate_names_the_set_reads_that_it_needs(tmp_path):
    """Read again, the history has as few set-reads as before; the file says which to add."""
    certificate = Certificate.load(check(PHANTOM, "ser").certificate().save(tmp_path))
    assert str(verify(certificate, PHANTOM, load_spec("ser"))).startswith("native checker (all)")
    forged = replace(certificate, set_reads=((0, 99),))
    with pytest.raises(CertificateRejected, match="set_reads"):
        verify(forged, PHANTOM, load_spec("ser"))
    certificate = Certificate.load(check(GROWING, "si").certificate().save(tmp_path))
    verify(certificate, GROWING, load_spec("si"))


def come_and_gone(folder, scans, *more):
    """40 rows come and go; predicate reads find none of them."""
    target = folder / "gone.edn"
    written = " ".join(f"[:w {k} 1]" for k in range(40))
    deleted = " ".join(f"[:delete {k}]" for k in range(40))
    lines = [written, deleted, *["[:rp [:> :value 0] {}]"] * scans, *more]
    target.write_text("".join(f"{{:type :ok, :process 0, :value [{line}]}}\n" for line in lines))
    return load_history(target)


def test_so_many_set_reads_are_left_implicit(tmp_path):
    """30 predicate reads, 40 keys: 1,200 set-reads; 25 make 1,000, which are operations."""
    assert not come_and_gone(tmp_path, 25).columns.implicit
    history = come_and_gone(tmp_path, 30)
    assert history.columns.implicit
    assert history.columns.operations() == 80
    assert history.written_out().columns.operations() == 1_280
    verdict = check(history, "ser")
    assert verdict.certified
    assert verdict.history.columns.operations() == 80


@pytest.mark.parametrize("seen", [(), ("[:r 1 1]",)])
def test_a_certificate_of_a_version_that_wrote_more_out_still_holds(tmp_path, seen):
    """It says nothing of set-reads, and numbers operations as they were then."""
    history = come_and_gone(tmp_path, 30, *seen)
    assert history.columns.implicit
    verdict = check(history.written_out(), "ser")
    assert verdict.outcome == ("invalid" if seen else "valid")
    made = json.loads(verdict.certificate().to_json())
    assert made["history"].pop("set_reads") == "all"
    old = Certificate.from_json(json.dumps(made))
    assert old.set_reads is None
    assert str(verify(old, history, load_spec("ser"))).startswith("native checker (all)")
    now = Certificate.from_json(check(history, "ser").certificate().to_json())
    assert now.set_reads == ()
    assert str(verify(now, history, load_spec("ser"))).startswith("native checker (all)")


def test_what_implicit_set_reads_could_violate_is_no_vacuous_check():
    """A predicate read that returned nothing may have met each row that others wrote."""
    history = rows(txn("a", ("w", "x", -1)), txn("b", ("w", "x", 1)), txn("c", ("scan", SCAN, {})))
    checks = [
        possible_violations(h, normal(load_spec("cc"))) for h in (history, history.written_out())
    ]
    assert checks[0] == checks[1]
    assert any(one.pairs.get("wr") for one in checks[0])


@pytest.mark.parametrize(
    ("value", "where", "stays"),
    [
        (1.5, (">", "value", 0), True),
        (-1.5, (">", "value", 0), True),
        (4.0, ("mod", "value", 2, 1), True),
        (1.5, ("mod", "value", 2, 1), False),
        (2**53 + 1, (">", "value", 2.5), False),
        (float(2**53), ("=", "value", 2**53 + 1), False),
    ],
)
def test_numbers_that_databases_compare_differently_keep_their_set_reads(value, where, stays):
    """Whether such a float matches is judged of every row, as it is read."""
    other = rows_of = [txn("a", ("w", "y", 2)), txn("a", ("w", "x", value))]
    found = {"y": 2} if where[0] == ">" and where[2] == 0 else {}
    read = [txn("b", ("scan", where, found))]
    try:
        history = History.from_transactions([*other[:1], *read, *rows_of[1:]])
    except HistoryError:
        assert not stays
        return
    columns = history.columns.implied()
    assert (columns is not None) == stays
    if columns is not None:
        verdict = check(replace(history, columns=columns), "ser")
        assert (verdict.outcome, verdict.certified) == ("valid", True)
        accepted(verdict, "ser")


@pytest.mark.slow
def test_small_histories_are_judged_as_the_oracle_judges_them(monkeypatch):
    """Also by both checkers, at levels of every kind, with and without a serial order first."""
    levels, asked, equal = Levels((*LEVELS, *PARTIAL[:-1])), 0, 0
    for number in range(20):
        rng = random.Random(number)
        if number % 2:
            monkeypatch.setattr(Implicit, "_serial", lambda *_: None)
        else:
            monkeypatch.undo()
        history = (row_history if number < 12 else equal_row_history)(rng)
        given = to_tool(history)
        if given.columns.implied() is None:
            continue
        equal += bool(omitted(implied(given)))
        for spec, expected in levels.expected(history, None).items():
            verdict = check(implied(given), spec)
            assert (spec, verdict.outcome, verdict.certified) == (spec, expected, True), number
            accepted(verdict, spec)
            asked += 1
    assert asked > 60
    assert equal > 0


MISSED_LATER = rows(
    txn("a", ("w", "x", -1), ("w", "y", 1)), txn("b", ("r", "x", -1), ("scan", SCAN, {}))
)
MISSED_BEFORE = rows(
    txn("a", ("w", "x", -1), ("w", "y", 1)), txn("b", ("scan", SCAN, {}), ("r", "x", -1))
)
#: What the predicate read sees of y says whether it saw the writer of x, which is read behind it.
READ_OLD_LATER = rows(
    txn("c", ("w", "y", 1)),
    txn("a", ("w", "y", -1), ("w", "x", -1)),
    txn("b", ("scan", SCAN, {}), ("r", "x", None)),
)
SEEN_TWICE = rows(
    txn("c", ("w", "y", 1)),
    txn("a", ("w", "y", -1), ("w", "z", 1)),
    txn("b", ("scan", SCAN, {}), ("scan", SCAN, {})),
)


@pytest.mark.parametrize(
    ("history", "source", "order", "seen", "accepts"),
    [
        (MISSED_LATER, [-1, -1, 0], [[0], [0]], [0], False),
        (MISSED_BEFORE, [-1, -1, 0], [[0], [0]], [0], True),
        (READ_OLD_LATER, [-1, -1, -1, 3], [[0, 1], [1]], [2], False),
        (READ_OLD_LATER, [-1, -1, -1, 3], [[0, 1], [1]], [0], True),
        (SEEN_TWICE, [-1, -1, -1], [[0, 1], [1]], [0, 0], True),
    ],
)
def test_read_committed_looks_at_what_was_read_before(history, source, order, seen, accepts):
    """Whom an earlier read shows, implicit or not, a later one must not miss."""
    starts = [0, len(order[0]), len(order[0]) + len(order[1])]
    committed = list(range(history.columns.transactions()))
    proof = Witness.of(source, starts, [t for one in order for t in one], committed, seen)
    if accepts:
        for judge in (check_natively, check_proof):
            judge(history, load_spec("rc-nosession"), proof)
    else:
        refused(history, load_spec("rc-nosession"), proof, "violating cycle|does not show")


def test_a_later_predicate_read_sees_what_an_earlier_one_saw():
    """With views in the wrong order the native checker is not shown that read committed holds."""
    history = rows(
        txn("a", ("w", "y", -1)),
        txn("b", ("scan", SCAN, {}), ("scan", SCAN, {})),
        txn("c", ("w", "y", 1)),
    )
    proof = Witness.of([-1, -1], [0, 2], [0, 2], [0, 1, 2], [1, 0])
    with pytest.raises(NotCertifiedError, match="does not show"):
        check_natively(history, load_spec("rc-nosession"), proof)
    check_natively(history, load_spec("rc-nosession"), replace(proof, seen=np.array([0, 1])))


@pytest.mark.parametrize("spec", ["rc", "pl-2", "pl-1", "pl-cs"])
def test_a_phantom_leaves_the_other_set_reads_implicit(spec):
    """Where no snapshot holds of all that a transaction read, each predicate read has its own."""
    history = rows(
        txn("d", ("scan", SCAN, {})),
        txn("a", ("w", "z", -1)),
        *[txn("d", ("scan", SCAN, {}))] * 3,
        txn("a", ("w", "x", 1), ("w", "y", 2)),
        txn("b", ("scan", SCAN, {"y": 2}), ("r", "x", 1)),
        txn("c", ("w", "z", 3)),
        txn("c", ("w", "z", -3)),
    )
    verdict = check(history, spec)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.history.columns.implicit
    accepted(verdict, spec)
    assert check(history, "pl-3").outcome == "invalid"


def test_all_anomalies_are_found_without_all_set_reads():
    """A wrong read, and a phantom that only an order shows: as with all set-reads as operations."""
    wrong = [txn("w", ("r", "q", 9)), txn("v", ("scan", SCAN, {"x": 1, "y": 2, "k": 8}))]
    for more in ([], wrong):
        history = rows(
            *[txn("d", ("scan", SCAN, {}))] * 4,
            txn("a", ("w", "x", 1), ("w", "y", 2)),
            txn("b", ("scan", SCAN, {"y": 2}), ("r", "x", 1)),
            txn("c", ("w", "z", 3)),
            txn("c", ("w", "z", -3)),
            *more,
        )
        told = [
            [(one.anomaly, one.count, one.certified) for one in found.anomalies]
            for found in map(findings_of, (history, history.written_out()))
        ]
        assert told[0] == told[1]
        assert len(told[0]) == (3 if more else 2)


def test_a_level_begins_with_the_set_reads_of_the_last_verdict(monkeypatch):
    """What an order contradicted at one level is refuted at the next level before any search."""
    first, single = check(PHANTOM, "cc"), levels_of(PHANTOM)
    assert first.history.set_reads
    begun = []

    def decide(history, *args, **options):
        begun.append(history.set_reads)
        return pipeline.decide(history, *args, **options)

    monkeypatch.setattr("isolang.pipeline.levels.decide", decide)
    found = levels_of(PHANTOM, with_set_reads=first.history)
    assert found.history is PHANTOM
    assert set(begun) == {first.history.set_reads}
    assert [(n, one.standing, one.anomaly) for n, one in found.levels.items()] == [
        (n, one.standing, one.anomaly) for n, one in single.levels.items()
    ]
    assert first.history.written_out() is PHANTOM.written_out()
    shown = check(versions(8), "cc")
    assert shown.history.set_reads
    again = check(shown.history, "cc")
    assert (again.outcome, again.certified, again.statistics) == ("invalid", True, {})


def versions(number):
    """A row of many versions, of which one matches; a reader misses it, and sees it."""
    wrote = [txn(f"s{i % 5}", ("w", "x", -i)) for i in range(1, number)]
    middle = len(wrote) // 2
    return rows(
        *[txn("d", ("scan", SCAN, {}))] * 4,
        *wrote[:middle],
        txn("a", ("w", "x", 1)),
        txn("b", ("scan", SCAN, {}), ("r", "x", 1)),
        *wrote[middle:],
    )


@pytest.mark.parametrize("spec", ["ser", "si", "psi", "cc", "ra"])
def test_a_row_that_was_missed_is_told_by_what_its_reader_knew(spec, monkeypatch):
    """Its versions refute each other, with no word of sessions, and without the whole history."""
    solved = []
    solve = PairRun.solve
    monkeypatch.setattr(PairRun, "solve", lambda run: solved.append(run) or solve(run))
    verdict = check(versions(60), spec)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert len(solved) == 1  # without the set-read
    accepted(verdict, spec)
    steps = verdict.refutation.steps
    assert {e.relation for s in steps if isinstance(s, CycleStep) for e in s.edges} == {"wr", "rw"}
    assert verdict.violation.anomaly == "phantom"
    (case,) = verdict.violation.argument.conclusion.cases  # too long to be told
    assert case.argument.conclusion.anomaly == "phantom"


def test_a_refutation_of_a_row_that_was_missed_serves_the_levels_below():
    """One certificate for all levels that a single transaction shows to be violated."""
    levels = levels_of(versions(30)).levels
    by_psi = {n for n, one in levels.items() if one.follows_from == "psi" and one.certified}
    assert {"psi-nosession", "cc", "cc-nosession", "ser"} <= by_psi
    assert levels["rc"].standing == "satisfied"


@pytest.mark.parametrize("spec", ["cc", "cc-nosession", "psi", "psi-nosession"])
def test_all_versions_of_a_row_that_was_missed_are_refuted_at_once(spec):
    """Not one in each round, of which each looks for all return paths."""
    history = versions(60).written_out()
    plan = native_plan(load_spec(spec))
    problem = build_problem(history)
    found = engine.solve(history.columns, problem.native, plan.automata, strategy="cdcl")
    check_natively(history, load_spec(spec), found.result)
    assert isinstance(found.result, Refutation)
    assert found.statistics["rounds"] <= 4


def table_with_a_phantom(rng):
    """Three rows, written and read one after the other; one predicate read misses a row."""
    held, missed = {}, False
    for i in range(20):
        if rng.random() < 0.5:
            new = {key: i if rng.random() < 0.3 else -i for key in rng.sample("xyz", 2)}
            held |= new
            ops = [("w", key, value) for key, value in new.items()]
        else:
            rows_found = {key: value for key, value in held.items() if value > 0}
            if i > 10 and rows_found and not missed:
                missed = rows_found.pop(min(rows_found))
            ops = [("scan", SCAN, rows_found)]
        yield txn(f"s{rng.randrange(5)}", *ops)


@pytest.mark.parametrize("spec", ["cc", "cc-nosession"])
def test_refutations_of_set_reads_of_several_keys_hold(spec):
    """A set-read may lead to a version that another read of its transaction missed."""
    plan, refuted = native_plan(load_spec(spec)), 0
    for seed in range(60):
        history = History.from_transactions(list(table_with_a_phantom(random.Random(seed))))
        problem = build_problem(history)
        result = engine.solve(history.columns, problem.native, plan.automata).result
        check_natively(history, load_spec(spec), result)
        refuted += isinstance(result, Refutation)
    assert refuted


@pytest.mark.parametrize("missed", ["a row of unknown outcome alone", "a row that others left"])
@pytest.mark.parametrize("level", ["ser", "pl-2", "pl-1"])
def test_a_missed_row_that_was_there_in_every_version_is_told(missed, level):
    """No version explains such a read, and no other transaction has one that could."""
    other = [("scan", ("=", "value", 1), {"x": 1})] if "unknown" in missed else [("w", "x", 3)]
    status = "maybe" if "unknown" in missed else "aborted"
    history = rows(
        txn(0, ("scan", ("=", "value", 1), {})),
        Transaction(other, session=1, status=status),
        initial={"x": 1},
    )
    verdict = check(history, load_spec(level))
    assert (verdict.outcome, verdict.certified) == ("valid" if level == "pl-1" else "invalid", True)


def table_with_an_unread_phantom(transactions):
    """100 rows, written and read in turn by 24 sessions; one predicate read misses a row."""
    rng = random.Random(1)
    held = {key: {"v": rng.randrange(1000), "u": key} for key in range(100)}
    played = [txn("first", *[("w", key, dict(row)) for key, row in held.items()])]
    missed = False
    for number in range(transactions):
        ops = []
        if number % 2:
            low = rng.randrange(900)
            found = {key: dict(row) for key, row in held.items() if low <= row["v"] < low + 100}
            if number >= transactions * 3 // 4 and found and not missed:
                missed = True
                del found[min(found)]
            ops.append(("scan", ("and", (">=", "v", low), ("<", "v", low + 100)), found))
        else:
            for key in rng.sample(range(100), 2):
                held[key] = {"v": rng.randrange(1000), "u": 100 + 2 * number + len(ops)}
                ops.append(("w", key, dict(held[key])))
        played.append(txn(f"s{number % 24}", *ops))
    return rows(*played)


@pytest.mark.parametrize(("spec", "size"), [("cc", 200), ("psi", 200), ("cc-nosession", 600)])
def test_a_search_starts_from_the_order_that_few_predicate_reads_contradict(
    spec, size, monkeypatch
):
    """From another order, even a search over 200 transactions takes 15,000 decisions."""
    answers = []
    solve = PairRun.solve
    monkeypatch.setattr(PairRun, "solve", lambda run: answers.append(solve(run)) or answers[-1])
    verdict = check(table_with_an_unread_phantom(size), spec)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert len(answers) > 2
    assert sum(one.statistics["decisions"] for one in answers) < 2000
    assert check(table_with_an_unread_phantom(size), "ser").outcome == "invalid"


@pytest.mark.slow
def test_a_search_keeps_the_order_that_few_predicate_reads_contradict():
    """If it may move all transactions, it takes more than a minute."""
    verdict = check(table_with_an_unread_phantom(1200), "ryw", timeout=60)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert check(table_with_an_unread_phantom(1200), "ser").outcome == "invalid"


@pytest.mark.parametrize("spec", ["ryw", "mr", "pl-2l"])
def test_repairs_of_likely_orders_change_no_verdict(spec):
    """Transactions that are held in a wrong order refute nothing."""
    plan, repaired = native_plan(load_spec(spec)), set()
    for seed in range(120):
        rng = random.Random(seed)
        history = History.from_transactions(list(table_with_a_phantom(rng)))
        problem = build_problem(history)
        order = list(range(history.columns.transactions()))
        rng.shuffle(order)
        found = engine.solve(history.columns, problem.native, plan.automata, likely_order=order)
        check_natively(history, load_spec(spec), found.result)
        expected = engine.solve(history.columns, problem.native, plan.automata).result
        assert isinstance(found.result, Witness) == isinstance(expected, Witness)
        if found.statistics.get("repair_rounds"):
            repaired.add(type(found.result))
    assert repaired == {Witness, Refutation}


def test_a_likely_order_names_transactions_of_the_history():
    """Any other number is refused."""
    history = GROWING.written_out()
    plan = native_plan(load_spec("cc"))
    problem = build_problem(history)
    for order in ([4], [-1]):
        with pytest.raises(ValueError, match="likely_order: no such transaction"):
            engine.solve(history.columns, problem.native, plan.automata, likely_order=order)


@pytest.mark.parametrize("spec", LEVELS)
def test_no_likely_order_changes_a_verdict(spec):
    """A misleading order does not, nor one that lacks some transactions."""
    plan = native_plan(load_spec(spec))
    for history in (GROWING.written_out(), PHANTOM.written_out()):
        problem = build_problem(history)
        every = list(range(len(history.columns.txn_status)))
        for order in ([], every, every[::-1], every[1::2]):
            found = engine.solve(history.columns, problem.native, plan.automata, likely_order=order)
            check_natively(history, load_spec(spec), found.result)
            expected = check(history, spec).outcome
            assert isinstance(found.result, Witness) == (expected == "valid")
