"""Generated histories: their truth against the oracle and the tool, and what the options mean."""

import numpy as np
import pytest
from oracle import semantics
from oracle.history import from_columns, has_time
from oracle.levels import LEVELS as CHECKS
from oracle.levels import SLOWER

from isolang.api import check, load_spec
from isolang.errors import HistoryError, SpecError
from isolang.history import columns as c
from isolang.language.hierarchy import IMPLIES
from isolang.problem import build_problem
from isolang.simulator import BUGS, LEVELS, RULES, Workload, change_reads, generate
from isolang.simulator.truth import implied_levels

ORACLE = {level: {**CHECKS, **SLOWER}[level] for level in LEVELS if level in {**CHECKS, **SLOWER}}


def small(seed, rule, bugs=(), **options):
    """A history that the oracle can decide: six transactions of two operations."""
    values = (0, 1, 2)[seed % 3]
    given = {"sessions": 4, "transactions": 6, "operations": 2, "keys": 2, "values": values}
    return generate(Workload(rule=rule, bugs=bugs, seed=seed, **(given | options)))


def wrong(history):
    """The levels of whose verdict the truth and the oracle think differently."""
    plain = from_columns(history.columns)
    assert has_time(plain)
    try:
        found = semantics.satisfied(plain, list(ORACLE.values()), limit=20_000)
    except semantics.TooLargeError:
        return None
    known = {level: history.truth.verdict(level) for level in ORACLE}
    return [
        (level, known[level], holds)
        for level, holds in zip(ORACLE, found, strict=True)
        if known[level] is not None and known[level] != holds
    ]


@pytest.mark.parametrize("rule", RULES)
def test_rules_against_the_oracle(rule):
    """What satisfies a level by construction satisfies it by brute force."""
    judged = 0
    for seed in range(40):
        odd = {"info_rate": 0.2, "abort_rate": 0.2} if seed % 2 else {}
        found = wrong(small(seed, rule, **odd))
        judged += found is not None
        assert not found, seed
    assert judged >= 20


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_against_the_oracle(bug):
    """A planted anomaly violates its levels and leaves the weaker ones, under every rule."""
    judged = 0
    for rule in RULES:
        for seed in range(4):
            found = wrong(small(seed, rule, (bug,), transactions=3))
            judged += found is not None
            assert not found, (rule, seed)
    assert judged >= 16


@pytest.mark.parametrize("rule", [r for r in RULES if RULES[r].reads != "replica"])
def test_lists_against_the_oracle(rule):
    """List reads are prefixes of one order, under every rule that has lists."""
    bugs = [(), *((bug,) for bug in BUGS)]
    for seed in range(18):
        history = small(seed, rule, bugs[seed % len(bugs)], lists=True, transactions=4)
        assert not wrong(history), seed


def library(levels):
    """Those of the levels that the library has."""
    found = {}
    for level in levels:
        try:
            found[level] = load_spec(level)
        except SpecError:
            continue
    return found


@pytest.mark.parametrize("rule", RULES)
def test_larger_histories_against_the_tool(rule):
    """The same truth for histories that no brute force decides."""
    specs = library(LEVELS)
    assert {"sser", "strong-si", "ser", "si", "pc", "pl-2", "pl-1"} <= set(specs)
    for seed, bugs in enumerate([(), *((bug,) for bug in BUGS)]):
        history = generate(
            Workload(
                rule=rule,
                bugs=bugs,
                sessions=5,
                transactions=40,
                operations=5,
                keys=12,
                values=(0, 4)[seed % 2],
                info_rate=0.05,
                abort_rate=0.05,
                seed=seed,
            )
        )
        for level, spec in specs.items():
            known = history.truth.verdict(level)
            if known is not None:
                verdict = check(history, spec)
                assert (verdict.outcome == "valid") is known, (level, bugs)


def test_no_rule_gives_more_than_it_says():
    """Each rule's histories violate, sooner or later, each next stronger level of the library."""
    specs = library(LEVELS)
    for rule in RULES.values():
        for level in LEVELS:
            if rule.level not in IMPLIES[level] or level not in specs:
                continue
            found = (
                check(
                    generate(Workload(rule=rule.name, keys=6, sessions=6, operations=5, seed=seed)),
                    specs[level],
                ).outcome
                for seed in range(10)
            )
            assert "invalid" in found, (rule.name, level)


# --- what the options mean ---


def test_equal_seeds_give_equal_histories():
    """And other seeds others."""
    one, same, other = (generate(Workload(seed=seed)).columns for seed in (1, 1, 2))
    for name in ("op_kind", "op_key", "op_value", "txn_begin", "txn_end", "txn_session"):
        assert np.array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.op_value, other.op_value)


def test_numbers_do_not_depend_on_the_machine():
    """The random numbers are the simulator's own: these figures hold everywhere."""
    columns = generate(Workload(transactions=50, values=7, key_distribution="zipfian")).columns
    assert int(columns.op_key.sum()) == 7867
    assert int(columns.txn_end.sum()) == 4313


def test_times_are_true():
    """A transaction begins before it ends, a session's next after that, and no two events share an
    instant."""
    columns = generate(Workload(transactions=300, info_rate=0.1, abort_rate=0.1)).columns
    finished = columns.txn_status != c.INDETERMINATE
    assert columns.has_time
    assert (columns.txn_begin[finished] < columns.txn_end[finished]).all()
    assert (columns.txn_end[~finished] == c.UNKNOWN_END).all()
    events = np.concatenate([columns.txn_begin, columns.txn_end[finished]])
    assert len(np.unique(events)) == len(events)
    for session in range(columns.sessions):
        mine = np.flatnonzero(columns.txn_session == session)
        assert (columns.txn_end[mine[:-1]] < columns.txn_begin[mine[1:]]).all()
        assert finished[mine[:-1]].all(), "who does not learn an outcome starts a new session"


@pytest.mark.parametrize("rmw", [0.0, 0.5, 1.0])
def test_shares(rmw):
    """Reads, aborts and unknown outcomes have the shares that were asked for."""
    w = Workload(
        transactions=4000,
        read_share=0.6,
        read_modify_write=rmw,
        info_rate=0.1,
        abort_rate=0.2,
        keys=5000,
    )
    columns = generate(w).columns
    assert columns.operations() == 8 * 4000
    assert np.mean(columns.op_kind == c.READ) == pytest.approx(0.6, abs=0.03)
    assert np.mean(columns.txn_status == c.INDETERMINATE) == pytest.approx(0.1, abs=0.02)
    assert np.mean(columns.txn_status == c.ABORTED) == pytest.approx(0.2, abs=0.02)
    known = columns.op_value[columns.op_kind == c.WRITE] > 0
    assert known.all()


@pytest.mark.parametrize(
    ("name", "first_fifth"),
    [("uniform", 0.2), ("hotspot", 0.8), ("exponential", 0.51), ("zipfian", 0.69)],
)
def test_key_distributions(name, first_fifth):
    """The first fifth of 100 keys gets the share of the operations that the definition says."""
    columns = generate(Workload(transactions=3000, key_distribution=name)).columns
    assert np.mean(columns.op_key < 20) == pytest.approx(first_fifth, abs=0.02)


def test_values():
    """All different, or this many, uniform or skewed."""

    def written(**options):
        columns = generate(Workload(transactions=2000, **options)).columns
        writes = columns.op_kind == c.WRITE
        values = [columns.value(v)[1] for v in columns.op_value[writes].tolist()]
        return list(zip(columns.op_key[writes].tolist(), values, strict=True))

    unique = written()
    assert len(set(unique)) == len(unique)
    few = [value for _, value in written(values=4)]
    assert set(few) == {1, 2, 3, 4}
    assert few.count(1) / len(few) == pytest.approx(0.25, abs=0.03)
    skewed = [value for _, value in written(values=4, value_theta=1.0)]
    assert skewed.count(1) / len(skewed) == pytest.approx(0.48, abs=0.03)


def test_read_modify_write_and_mini_transactions():
    """Every write follows a read of its key; mini-transactions touch at most two keys."""
    for options in ({"read_modify_write": 1.0}, {"mini_transactions": True}):
        history = generate(Workload(transactions=500, read_share=0.6, **options))
        columns = history.columns
        for txn in range(columns.transactions()):
            seen = set()
            for op in history.operations_of(txn):
                key = int(columns.op_key[op])
                assert columns.op_kind[op] == c.READ or key in seen
                seen.add(key)
            assert len(seen) <= 2 or "read_modify_write" in options


def test_lists():
    """Appends and list reads; a key gives way after this many appends."""
    columns = generate(Workload(transactions=500, keys=5, lists=True, appends=10)).columns
    assert set(columns.op_kind.tolist()) == {c.APPEND, c.READ_LIST}
    appended = np.bincount(columns.op_key[columns.op_kind == c.APPEND])
    assert appended.max() == 10
    assert np.diff(columns.list_start).max() <= 10


def test_a_session_each():
    """As many sessions as transactions, still only this many at a time."""
    columns = generate(Workload(transactions=200, sessions=4, session_each=True)).columns
    assert columns.sessions == 200
    events = sorted([(t, 1) for t in columns.txn_begin] + [(t, -1) for t in columns.txn_end])
    assert max(np.cumsum([step for _, step in events])) <= 4


@pytest.mark.parametrize("bug", BUGS)
def test_where_a_bug_stands(bug):
    """The truth names the planted transactions, which use keys that nobody else uses."""
    history = generate(Workload(bugs=(bug,), transactions=100, keys=7))
    columns = history.columns
    (plant,) = history.truth.planted
    labels = {history.name_of(t): t for t in range(columns.transactions())}
    planted = [labels[name] for name in plant.transactions]
    mine = [op for t in planted for op in history.operations_of(t)]
    assert {int(columns.op_key[op]) for op in mine} == set(plant.keys)
    others = np.setdiff1d(np.arange(columns.operations()), mine)
    assert not np.isin(columns.op_key[others], plant.keys).any()
    assert 40 <= planted[0] <= 60
    assert any(bug in note for note in history.notes)


def test_all_bugs_at_once():
    """One history can have several anomalies; it keeps what all of them leave."""
    history = generate(Workload(rule="strict-serializable", bugs=tuple(BUGS)))
    assert [plant.bug for plant in history.truth.planted] == list(BUGS)
    assert history.truth.satisfies == ("pl-1",)
    assert set(history.truth.violates) == set(LEVELS) - {"pl-1"}


def test_the_levels_of_a_truth():
    """No level is both, and both sets are closed under implication."""
    for rule in RULES:
        for bug in BUGS:
            truth = generate(Workload(rule=rule, bugs=(bug,), transactions=5)).truth
            assert not set(truth.satisfies) & set(truth.violates)
            for level in truth.satisfies:
                assert implied_levels(level) <= set(truth.satisfies)
            for level in LEVELS:
                assert level in truth.violates or not implied_levels(level) & set(truth.violates)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "snapshoot"}, "did you mean 'snapshot'"),
        ({"bugs": ("lost",)}, "unknown bug"),
        ({"bugs": ("long fork", "long fork")}, r"only once \(got long fork, long fork\)"),
        ({"key_distribution": "zipf"}, "unknown key distribution"),
        ({"read_share": 1.5}, "between 0 and 1"),
        ({"read_share": 0.2, "read_modify_write": 1.0}, "fewer reads"),
        ({"read_share": 0.2, "mini_transactions": True}, "at least half"),
        ({"sessions": 0}, "at least 1"),
        ({"sessions": "many"}, "expected a whole number"),
        ({"keys": 2**40}, "keys must be at most 2,147,483,647"),
        ({"info_rate": 0.6, "abort_rate": 0.6}, "more than 1"),
        ({"rule": "causal", "lists": True}, "lists have one order"),
        ({"bugs": ("long fork",), "sessions": 3}, "fewer sessions"),
        ({"bugs": ("lost session guarantee",), "session_each": True}, "each is to have its own"),
    ],
)
def test_refusals(options, message):
    """What makes no sense is an error that says why."""
    with pytest.raises(HistoryError, match=message):
        generate(Workload(**options))


def test_changed_reads():
    """Only this many reads change, to values that somebody else writes last; the original stays."""
    history = generate(Workload(rule="strict-serializable", values=3, keys=10, seed=4))
    before = history.columns.op_value.copy()
    changed = change_reads(history, 5, seed=1)
    assert np.array_equal(history.columns.op_value, before)
    assert not build_problem(changed).anomaly_counts()
    differ = [
        op
        for op in range(history.columns.operations())
        if history.op_value(op) != changed.op_value(op)
    ]
    assert len(differ) == 5
    assert all(history.columns.op_kind[op] == c.READ for op in differ)
