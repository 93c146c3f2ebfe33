"""Simpler violations: parts keep the numbers of the whole, and what is smaller is still refuted."""

import io
import itertools
import random
import time
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from oracle.before import Before
from oracle.generate_crossed import crossed_history
from oracle.pipeline import to_tool

from isolang import History, Transaction, check, load_spec
from isolang.api import load_history
from isolang.certify.proofs import check_proof
from isolang.certify.steps import CycleStep, Edge, RupStep, Source
from isolang.errors import HistoryError, IsolangError
from isolang.explain import smaller
from isolang.explain.part import Sources, part_of
from isolang.explain.shrink import shrink
from isolang.explain.smaller import Finder, difficulty
from isolang.explain.violation import plain
from isolang.language.classify.event_graph import classify
from isolang.language.classify.route import route
from isolang.limits import Work
from isolang.pipeline.exported import export_part
from isolang.pipeline.minimal import anomaly_of, minimise
from isolang.problem import build_problem
from isolang.report import page
from isolang.solvers import engine as native_engine

PADDED = History.from_transactions(
    [
        *(Transaction([("w", f"p{i}", i)], session=f"p{i}") for i in range(30)),
        Transaction([("r", "p3", 3), ("r", "x", None), ("w", "x", 1)], session="a"),
        *(Transaction([("r", f"p{i}", i)], session=f"q{i}") for i in range(30)),
        Transaction([("r", "x", None), ("w", "x", 2), ("w", "z", 9)], session="b"),
    ]
)


def test_minimise_leaves_nothing_that_can_go():
    """Of 62 transactions, two; of their operations, those of the lost update."""
    plan = classify(load_spec("si"))
    verdict = check(PADDED, plan)
    small = minimise(verdict, plan)
    assert [small.name_of(t) for t in range(small.t0)] == [PADDED.name_of(30), PADDED.name_of(61)]
    assert [small.describe_op(op) for op in range(small.columns.operations())] == [
        "r(x, nil)", "w(x, 1)", "r(x, nil)", "w(x, 2)",
    ]  # fmt: skip
    assert check(small, plan).violation.anomaly == "lost update"


@pytest.mark.parametrize(
    "ops",
    [
        [[("r", "x", 7)], [("w", "y", 1)]],
        [[("w", "x", 1), ("w", "x", 2)], [("r", "x", 1)], [("w", "y", 1)]],
    ],
)
def test_minimise_intrinsic_anomalies(ops):
    """A read that is wrong by itself stays wrong by itself."""
    plan = classify(load_spec("ser"))
    verdict = check(
        History.from_transactions([Transaction(o, session=i) for i, o in enumerate(ops)]), plan
    )
    small = minimise(verdict, plan)
    assert small.t0 == len(ops) - 1
    assert check(small, plan).violation.anomaly == verdict.violation.anomaly


def test_parts_map_back_to_the_whole():
    """Steps about a part, in the numbers of the whole, and back."""
    part = part_of(PADDED, [*PADDED.operations_of(30), *PADDED.operations_of(61)])
    assert part.txns == (30, 61, PADDED.t0)
    key = {part.history.key(k): k for k in range(part.history.columns.n_keys())}["x"]
    inner = [
        CycleStep("SI", (Edge("rw", 0, 1, key, 1, 2), Edge("rw", 1, 0, key, 3, 2))),
        RupStep(((False, Source(1, 2)),)),
    ]
    outer = part.to_whole(inner)
    assert outer[0].edges[0].a == 30
    assert outer[0].edges[0].b == 61
    assert outer[0].edges[0].op == PADDED.operations_of(30)[1]
    assert outer[0].edges[0].writer == PADDED.t0
    assert part.to_part(outer) == inner


@given(st.sets(st.integers(0, 61), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_shrink_finds_what_is_needed(needed):
    """With a test that wants some transactions and nothing else, exactly these are left."""
    part = part_of(PADDED, range(PADDED.columns.operations()))

    def accept(smaller):
        return needed <= set(smaller.txns[:-1])

    small = shrink(part, accept, by_transaction=True, enough=lambda: False)
    assert set(small.txns[:-1]) == needed


def test_shrink_does_not_ask_without_what_is_kept():
    """What is known to be needed costs no attempt, and all else is left out."""
    part = part_of(PADDED, range(PADDED.columns.operations()))
    asked = []

    def accept(smaller):
        asked.append(smaller)
        return True

    keep = {7, 8, 40}
    small = shrink(part, accept, by_transaction=True, enough=lambda: False, keep=keep)
    assert set(small.txns[:-1]) == keep
    assert all(keep <= set(one.txns) for one in asked)


@given(st.sets(st.integers(0, 61), min_size=1, max_size=6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_shrink_goes_on_with_what_was_needed(needed, by_transaction):
    """If each accepted part is narrowed to what is needed, one accepted attempt suffices."""
    part = part_of(PADDED, range(PADDED.columns.operations()))
    accepted = []

    def accept(smaller):
        if needed <= set(smaller.txns[:-1]):
            accepted.append(smaller)
        return accepted[-1:] == [smaller]

    def narrow(smaller):
        kept = [i for i, op in enumerate(smaller.ops) if PADDED.transaction_of(op) in needed]
        return smaller.narrowed(kept)

    small = shrink(part, accept, by_transaction=by_transaction, enough=lambda: False, narrow=narrow)
    assert set(small.txns[:-1]) == needed
    if by_transaction:
        assert len(accepted) == 1


def test_shrink_stops_when_it_has_to():
    """Then the best so far is returned."""
    part = part_of(PADDED, range(PADDED.columns.operations()))
    assert shrink(part, lambda _: True, by_transaction=True, enough=lambda: True) is part


def test_cost_prefers_fewer_cycles_then_shorter_ones_an_rw_counting_as_two_edges():
    """The order in which docs/anomalies.md ranks violations."""
    so, wr, rw = (Edge(r, 0, 1, 0, 0, 0) for r in ("so", "wr", "rw"))
    ranked = [
        [CycleStep("c", (wr, wr))],
        [CycleStep("c", (wr, rw))],
        [CycleStep("c", (wr, wr, wr))],
        [CycleStep("c", (rw, rw))],
        [CycleStep("c", (wr, wr, rw))],
        [CycleStep("c", (wr,) * 21 + (rw,))],
        [CycleStep("c", (wr,)), CycleStep("c", (wr,))],
        [CycleStep("c", (wr, so))],
        [CycleStep("c", (wr,))] * 5,
    ]
    assert sorted(ranked, key=difficulty) == ranked


names = st.sampled_from("xy")
operations = st.one_of(
    st.tuples(st.just("w"), names, st.integers(1, 2)),
    st.tuples(st.just("r"), names, st.sampled_from([None, 1, 2])),
)
histories = st.lists(
    st.tuples(st.integers(0, 2), st.lists(operations, min_size=1, max_size=3)),
    min_size=2,
    max_size=5,
)


@pytest.mark.slow
@given(histories, st.sampled_from(["pl-2", "pc", "si", "ser", "strong-si", "sser"]))
@settings(max_examples=250, deadline=None)
def test_whatever_is_explained_is_proved(rows, level):
    """Simplified refutations are certified, by both checkers, and every text can be made."""
    history = History.from_transactions(
        [Transaction(ops, session=s, begin=2 * i, end=2 * i + 3) for i, (s, ops) in enumerate(rows)]
    )
    spec = load_spec(level)
    verdict = check(history, spec)
    assert verdict.outcome != "unknown"
    assert verdict.certified, verdict.certified_reason
    if verdict.outcome == "invalid":
        check_proof(history, spec, verdict.refutation)
        assert verdict.violation.transactions
        for how, outcome in verdict.violation.relaxed.items():
            relaxed = classify(spec)
            from isolang.language.classify.route import (
                without_real_time,
                without_sessions,
            )

            if outcome == "unknown":  # there was no time for it
                continue
            drop = without_sessions if how == "without sessions" else without_real_time
            assert check(history, drop(relaxed)).outcome == outcome


SHOWN_ORDER = [
    (0, [("append", "x", 1)]),
    (0, [("append", "x", 2)]),
    (1, [("r", "x", [2, 1])]),
]


@pytest.mark.slow
@given(histories, st.sampled_from(["pl-2", "pc", "si", "ser", "sser"]))
@example(SHOWN_ORDER, "ser")
@settings(max_examples=120, deadline=None)
def test_whether_a_refutation_needs_rw(rows, level):
    """What asks first whether all but ``ww`` and ``rw`` fit in one line misses no refutation."""
    history = History.from_transactions(
        [Transaction(ops, session=s, begin=2 * i, end=2 * i + 3) for i, (s, ops) in enumerate(rows)]
    )
    plan = classify(load_spec(level))
    problem = build_problem(history)
    assume(not problem.anomalies(limit=1))

    def engine(problem, automata, work, strategy):
        answer = native_engine.solve(history.columns, problem.native, automata, work=work)
        return None if answer.outcome == "valid" else answer.result.steps, answer.work

    finder = Finder(problem, plan, engine)
    without = [
        replace(a, steps={r: s for r, s in a.steps.items() if r != "rw"}) for a in plan.automata
    ]
    found = finder.without_rw([CycleStep("c", (Edge("rw", 0, 1, 0, 0, 0),))])
    assert (found is None) == (engine(problem, without, 0, "auto")[0] is None)


def test_a_part_without_a_possible_source_is_not_the_same():
    """Leaving out one of two possible sources of a read makes another claim than the whole."""
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session=1),
            Transaction([("w", "x", 1)], session=2),
            Transaction([("r", "x", 1), ("r", "x", 1), ("r", "y", None)], session=3),
        ]
    )
    sources = Sources(build_problem(history))
    assert sources.keeps_candidates(part_of(history, [0, 1, 2]))
    assert sources.keeps_candidates(part_of(history, [0, 1, 3])), "both reads are one"
    assert not sources.keeps_candidates(part_of(history, [0, 2]))
    assert sources.keeps_candidates(part_of(history, [0, 4]))


def test_runs_of_session_edges_are_one_edge():
    """A cycle through a session shows where it enters and where it leaves."""
    session = [[("w", "x", 1)], *([("w", f"p{i}", 1)] for i in range(5)), [("r", "x", None)]]
    history = History.from_transactions([Transaction(ops, session=0) for ops in session])
    verdict = check(history, load_spec("ser"))
    edges = verdict.violation.argument.conclusion.edges
    assert [(e.source, e.relation, e.target) for e in edges] == [
        ("T1", "so", "T7"),
        ("T7", "rw", "T1"),
    ]


@pytest.mark.parametrize(("limit", "amount"), [("_RELAXED_WORK", 1), ("_LARGEST_WHOLE", 5000)])
def test_the_whole_is_looked_at_again_for_a_limited_amount_of_work(monkeypatch, limit, amount):
    """Beyond it the cycle is shortened all the same, and what is not known is not claimed."""
    session = [[("w", "x", 1)], *([("w", f"p{i}", 1)] for i in range(5000)), [("r", "x", None)]]
    history = History.from_transactions([Transaction(ops, session=0) for ops in session])
    enough = check(history, load_spec("ser"))
    monkeypatch.setattr(smaller, limit, amount)
    too_little = check(history, load_spec("ser"))
    assert dict(enough.violation.relaxed) == {"without sessions": "valid"}
    assert dict(too_little.violation.relaxed) == {"without sessions": "unknown"}
    assert too_little.violation.argument == enough.violation.argument
    assert too_little.certified


def told(history, level):
    """Everything that a user sees or saves of an invalid verdict, but for what it took."""
    verdict = check(history, level)
    part = minimise(verdict, classify(load_spec(level)))
    return (
        plain(verdict.violation),
        verdict.certificate().to_json(),
        [part.describe_op(op) for op in range(part.columns.operations())],
    )


LATE = [
    *([("r", "x", None), ("w", f"p{i}", 1)] for i in range(30)),
    [("w", "x", 1), ("w", "y", 1)],
    *([("r", f"p{i}", 1), ("w", f"q{i}", 1)] for i in range(30)),
    [("r", "y", 1), ("r", "q29", 1), ("r", "x", None)],
]


def test_equal_histories_have_equal_explanations_however_slow_the_machine():
    """The limits are of work: a clock that runs away changes neither words nor certificate."""
    late = History.from_transactions(
        [Transaction(ops, session=i % 3) for i, ops in enumerate(LATE)]
    )
    for history, level in ((PADDED, "si"), (late, "ser"), (late, "pc")):
        quick = told(history, level)
        with pytest.MonkeyPatch.context() as patch:
            now = itertools.count(time.perf_counter(), 60.0)
            patch.setattr(time, "perf_counter", lambda now=now: next(now))
            slow = told(history, level)
        assert slow == quick


def test_nobody_looks_for_the_simplest_violation_where_nobody_reads_it(monkeypatch):
    """The verdict and its certificate are there all the same."""
    history = History.from_transactions(
        [Transaction(ops, session=i % 3) for i, ops in enumerate(LATE)]
    )

    def never(*arguments, **options):
        raise AssertionError("looked for")

    monkeypatch.setattr(smaller.Finder, "simplest", never)
    verdict = check(history, "ser", simplest=False)
    assert verdict.outcome == "invalid"
    assert verdict.certified


def test_the_smallest_part_may_be_invalid_under_another_name():
    """What the rest hid is a simpler violation, and no reason to give the whole history."""
    lost = [
        Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
        Transaction([("r", "x", None), ("w", "x", 2)], session="b"),
    ]
    history = History.from_transactions([*lost, *(
        Transaction([("w", f"p{i}", i)], session=f"p{i}") for i in range(30)
    )])  # fmt: skip
    verdict = check(history, "ser")
    assert verdict.violation.anomaly == "lost update"
    renamed = replace(verdict, violation=replace(verdict.violation, anomaly="G-single"))
    assert minimise(renamed, classify(load_spec("ser"))).t0 == 2


def test_the_smallest_part_is_explained_afresh():
    """Its name is that of what is left, whatever the violation of the whole is called."""
    lost = [
        Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
        Transaction([("r", "x", None), ("w", "x", 2)], session="b"),
    ]
    plan = classify(load_spec("ser"))
    verdict = check(History.from_transactions(lost), plan)
    renamed = replace(verdict, violation=replace(verdict.violation, anomaly="G-single"))
    assert anomaly_of(minimise(renamed, plan), plan) == "lost update"


@pytest.mark.slow
def test_a_part_of_any_mixture_is_invalid_and_so_is_its_file(tmp_path):
    """Whatever the history has: a page can be made, and the smallest part violates the level."""
    found = Counter()
    for seed in range(120):
        rng = random.Random(seed)
        crossed = crossed_history(rng, wanted=frozenset({"predicates"} if seed % 3 else ()))
        with suppress(IsolangError):  # not every level can judge every history
            history = to_tool(crossed.history, crossed.initial, crossed.error)
            told = isinstance(crossed.initial, Before) and crossed.initial.told
            history = replace(history, options={"unwritten_initial": True} if told else {})
            for name in rng.sample(("ser", "si", "ra", "pl-2", "pl-2-99", "rc", "pl-3u"), 2):
                found[_part_and_file(history, name, tmp_path)] += 1
    assert found.keys() == {"none", "refused", "file"}
    assert found["file"] > 20


def _part_and_file(history, level, folder):
    verdict = check(history, level, threads=1)
    if verdict.outcome != "invalid":
        return "none"
    page(verdict, name="history")
    plan = route(verdict.spec)
    part = minimise(verdict, plan)
    assert check(part, level, threads=1).outcome == "invalid"
    try:
        found = export_part(part, plan)
    except HistoryError:
        return "refused"  # the format cannot express every part
    file = folder / "part.edn"
    found.save(file)
    again = check(
        load_history(file, unwritten_initial="--unwritten-initial" in found.reading),
        plan,
        threads=1,
    )
    assert (again.outcome, again.certified) == ("invalid", True)
    assert again.violation.anomaly == found.anomaly == anomaly_of(part, plan)
    return "file"


@pytest.mark.parametrize(
    ("lines", "options", "size"),
    [
        # Without the write, the read would be one of a version that no transaction wrote.
        (
            ["{:versions :ordered}", "{:type :ok, :value [[:r :x nil]], :versions [0]}",
             "{:type :ok, :value [[:w :x 1]], :versions [0]}"],
            {},
            2,
        ),
        # Without the second write, the read value would be the initial value.
        (
            ["{:type :ok, :value [[:w :x 2] [:w :x 5]]}", "{:type :ok, :value [[:r :x 2]]}"],
            {"initial": 1},
            3,
        ),
    ],
)  # fmt: skip
def test_a_part_is_invalid_for_the_reason_of_the_whole(lines, options, size):
    """No removal makes something else wrong, and a checker accepts the proof for the part."""
    history = load_history(io.BytesIO("\n".join(lines).encode()), "edn", **options)
    verdict = check(history, "ser", threads=1)
    part = minimise(verdict, route(verdict.spec))
    again = check(part, "ser", threads=1)
    assert (again.outcome, again.certified) == ("invalid", True)
    assert again.violation.anomaly == verdict.violation.anomaly
    assert part.columns.operations() == size


def _exported(lines, options, level="ser"):
    history = load_history(io.BytesIO("\n".join(lines).encode()), "edn", **options)
    verdict = check(history, level, threads=1)
    plan = route(verdict.spec)
    return export_part(minimise(verdict, plan), plan)


@pytest.mark.parametrize(
    ("lines", "options", "reading", "shown"),
    [
        # Two rows existed at first, and each transaction changed one of them.
        (
            ['{:type :ok, :f :init, :value {"a" {:on true}, "b" {:on true}}}',
             '{:type :ok, :value [[:rp [:= :on true] {"a" {:on true} "b" {:on true}}]'
             ' [:w "a" {:on false}]]}',
             '{:type :ok, :value [[:rp [:= :on true] {"a" {:on true} "b" {:on true}}]'
             ' [:w "b" {:on false}]]}'],
            {},
            "",
            ':f :init, :value {"a" {:on true}, "b" {:on true}}',
        ),
        # The value that both read was there before.
        (
            ["{:type :ok, :value [[:r :x 8] [:w :x 1]]}",
             "{:type :ok, :value [[:r :x 8] [:w :x 2]]}"],
            {"unwritten_initial": True},
            "",
            ":f :init, :value {:x 8}",
        ),
        # Only with the option, nil and 8 cannot both have been there before.
        (
            ["{:type :ok, :value [[:r :x 8]]}", "{:type :ok, :value [[:r :x nil]]}"],
            {"unwritten_initial": True},
            "--unwritten-initial",
            "; isocheck check --unwritten-initial\n",
        ),
    ],
)  # fmt: skip
def test_the_file_of_a_part_has_the_initial_values(tmp_path, lines, options, reading, shown):
    """It is invalid with the options that stand beside it, for the same reason."""
    found = _exported(lines, options)
    assert found.reading == reading
    assert shown in found.text.decode()
    assert ("read it with" in found.described()) == bool(reading)
    found.save(tmp_path / "part.edn")
    back = load_history(tmp_path / "part.edn", unwritten_initial=bool(reading))
    again = check(back, "ser", threads=1)
    assert (again.outcome, again.violation.anomaly) == ("invalid", found.anomaly)


def test_the_file_of_a_part_leaves_out_what_it_does_not_need():
    """Overlapping transactions of a session have no lines of one process, and need no times."""
    lost = [
        Transaction([("r", "x", None), ("w", "x", 1)], session="a", begin=1, end=5),
        Transaction([("r", "x", None), ("w", "x", 2)], session="a", begin=2, end=6),
    ]
    verdict = check(History.from_transactions(lost), "ser-nosession", threads=1)
    plan = route(verdict.spec)
    found = export_part(minimise(verdict, plan), plan)
    assert "without the times of transactions" in found.described()
    assert b":time" not in found.text


def test_a_part_that_no_file_can_express_is_not_saved():
    """The message says why."""
    lines = ["{:type :ok, :value [[:w :x 8] [:w :x 9]]}", "{:type :ok, :value [[:r :x 8]]}"]
    with pytest.raises(HistoryError, match="the initial transaction may have overwritten"):
        _exported(lines, {"initial": 1})


def lists_with_a_read_in_another_order(transactions):
    """Sessions append to five lists and read them; one late read shows an order of its own."""
    draw = random.Random(5)
    lists: list[list[int]] = [[] for _ in range(5)]
    played = []
    for number in range(transactions):
        one, other, read = draw.sample(range(5), 3)
        ops = [("r", f"l{read}", list(lists[read]))]
        for key in (one, other) if draw.random() < 0.3 else ():
            lists[key].append(number)
            ops.append(("append", f"l{key}", number))
        played.append(Transaction(ops, session=number % 20))
    wrong = [*lists[0][1:40], lists[0][0]]
    played.append(Transaction([("r", "l1", list(lists[1])), ("r", "l0", wrong)], session=7))
    return History.from_transactions(played)


def test_long_lists_in_contradictory_orders_have_a_small_part():
    """It begins with the writers of their elements, without which they would be thin-air reads."""
    plan = route(load_spec("ser"))
    verdict = check(lists_with_a_read_in_another_order(1500), plan)
    assert verdict.violation.anomaly == "incompatible order"
    work = Work(5_000_000)
    part = minimise(verdict, plan, work=work)
    assert part.t0 <= 42
    assert work.left
    assert check(part, plan).outcome == "invalid"


@pytest.mark.parametrize("allowed", [0, 20_000, 200_000, 10_000_000])
def test_a_search_for_a_part_ends_with_its_work(allowed):
    """Whatever is left at the end is a part that is still invalid; equal work gives equal parts."""
    plan = route(load_spec("si"))
    verdict = check(PADDED, plan)
    parts = []
    for _ in range(2):
        work = Work(allowed)
        parts.append(minimise(verdict, plan, work=work))
        assert 0 <= work.left < allowed or not allowed
    assert parts[0].t0 == parts[1].t0
    assert check(parts[0], plan).outcome == "invalid"
    assert parts[0].t0 == 2 or allowed < 10_000_000


def test_reads_that_lost_a_candidate_are_seen():
    """By columns, as one read after another would be: also of reads that share a row."""
    draw = random.Random(3)
    compared = 0
    for _ in range(60):
        played = [
            Transaction(
                [
                    draw.choice((("w", key, draw.randrange(3)), ("r", key, draw.randrange(3))))
                    for key in draw.choices("xyz", k=draw.randint(1, 4))
                ],
                session=draw.randrange(3),
            )
            for _ in range(8)
        ]
        history = History.from_transactions(played)
        sources = Sources(build_problem(history))
        for _ in range(10):
            operations = range(history.columns.operations())
            part = part_of(history, draw.sample(operations, draw.randint(0, len(operations))))
            inner = Sources(build_problem(part.history))
            every = inner._native.read_op.tolist()
            expected = all(
                len(inner.candidates(op)) == len(sources.candidates(part.ops[op])) for op in every
            )
            assert sources.keeps_candidates(part) == expected
            assert sources.keeps_candidates(part, every) == expected
            compared += not expected
    assert compared > 50
