"""The native pre-pass and builder agree with a slow model of the same definitions."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from support.problem_model import APPEND, IN, READ, READ_LIST, SETS, WRITE, Model, RefusedError

from isolang import _native
from isolang.certify.anomalies import anomalies_of, are_incompatible, initial_values_disagree
from isolang.certify.errors import NotCertifiedError
from isolang.certify.facts import Facts
from isolang.errors import UnsupportedError
from isolang.history import History
from isolang.problem import AnomalyKind, build_problem

MAX_TXNS = 5


@st.composite
def registers(draw):
    """Columns of a small register history: few values, all statuses, failed operations, sources."""
    columns = _native.Columns()
    values = [0, *(columns.intern_value(1, i) for i in range(1, 4))]
    keys = [columns.intern_key(3, name, draw(st.sampled_from(values[:2]))) for name in "xy"]
    named = draw(st.booleans())
    total = 0
    sources = []
    for t in range(draw(st.integers(1, MAX_TXNS))):
        columns.begin_transaction(t % 3, draw(st.sampled_from([0, 0, 0, 0, 2, 2, 1, 3])), t, t)
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from([READ, READ, WRITE]))
            value = draw(st.sampled_from(values[1:] if kind == WRITE else [*values, values[1], -1]))
            ok = draw(st.integers(0, 9)) > 0
            if kind == READ and value >= 0 and draw(st.integers(0, 3)) == 0:
                kind = draw(st.sampled_from(SETS))
                value = columns.add_list(draw(st.lists(st.sampled_from(values), max_size=2)))
            if kind == READ and value == 0 and draw(st.integers(0, 5)) == 0:
                kind, value = READ_LIST, columns.add_list([])
            columns.add_op(kind, draw(st.sampled_from(keys)), value, total, ok)
            if kind == READ and named and draw(st.booleans()):
                sources.append(total)
            total += 1
    for op in sources:
        columns.set_source(op, draw(st.integers(-3, total - 1)))
    return columns


@st.composite
def lists(draw, unique: bool = False):
    """Columns of a small list history: reads are prefixes of one final list, some damaged."""
    columns = _native.Columns()
    values = [columns.intern_value(1, i) for i in range(1, 12)]
    keys = [columns.intern_key(3, name) for name in "xy"[: draw(st.integers(1, 2))]]
    plan = []
    fresh = iter(values)
    for _ in range(draw(st.integers(1, MAX_TXNS))):
        status = draw(st.sampled_from([0, 0, 0, 0, 0, 2, 1]))
        ops = []
        for _ in range(draw(st.integers(0, 3))):
            key = draw(st.sampled_from(keys))
            if draw(st.booleans()):
                value = next(fresh, values[0]) if unique or draw(st.integers(0, 7)) else values[0]
                ops.append((APPEND, key, value, draw(st.integers(0, 14)) > 0))
            else:
                ops.append((READ_LIST, key, None, True))
        plan.append((status, ops))
    final = {k: [] for k in keys}
    for i in draw(st.permutations(range(len(plan)))):
        status, ops = plan[i]
        if status != 1 or draw(st.integers(0, 3)) == 0:
            for kind, key, value, ok in ops:
                if kind == APPEND and (ok or draw(st.integers(0, 3)) == 0):
                    final[key].append(value)
    position = 0
    for t, (status, ops) in enumerate(plan):
        columns.begin_transaction(t, status, t, t)
        own = {k: [] for k in keys}
        for kind, key, value, ok in ops:
            position += 1
            if kind == APPEND:
                columns.add_op(kind, key, value, position, ok)
                own[key] += [value] if ok else []
                continue
            seen = final[key][: draw(st.integers(0, len(final[key])))]
            if own[key]:
                seen = [v for v in seen if v not in own[key]]
                seen += own[key][: draw(st.sampled_from([len(own[key])] * 4 + [1, 0]))]
            damage = draw(st.integers(0, 11))
            if damage == 0 and seen:
                i = draw(st.integers(0, len(seen) - 1))
                seen[i] = draw(st.sampled_from(values))
            elif damage == 1 and len(seen) > 1:
                seen = draw(st.permutations(seen))
            elif damage == 2 and seen:
                seen.insert(draw(st.integers(0, len(seen))), draw(st.sampled_from(seen)))
            elif damage == 3 and seen:
                del seen[draw(st.integers(0, len(seen) - 1))]
            if damage == 4:
                columns.add_op(READ_LIST, key, -1, position)
            elif not seen and draw(st.booleans()):
                columns.add_op(READ, key, 0, position)
            else:
                columns.add_op(READ_LIST, key, columns.add_list(seen), position)
    return columns


def describe(columns) -> str:
    """The history as text, for failures."""
    history = History(columns=columns, name="<memory>", format="memory")
    return "\n".join(
        f"{t} {history.status(t)}: "
        + " ".join(
            f"{history.describe_op(o)}@{columns.op_source[o]}" for o in history.operations_of(t)
        )
        for t in range(columns.transactions())
    )


def told(columns, order):
    """The order, by what its list reads showed to whom: two equal reads of one tell the same."""
    start, first, values = (
        column.tolist() for column in (columns.op_start, columns.list_start, columns.list_values)
    )

    def shown(op):
        number = int(columns.op_value[op])
        return bisect_right(start, op) - 1, tuple(values[first[number] : first[number + 1]])

    return {(key, a, b, shown(op)) for key, a, b, op in order}


def compare(columns) -> None:
    try:
        expected = Model(columns).run()
    except RefusedError:
        with pytest.raises(_native.NotExpressible):
            _native.build_problem(columns)
        return
    problem = _native.build_problem(columns)
    n = columns.transactions()
    assert problem.n == n
    if not expected.refused:  # else only the anomalies are to be believed
        assert problem.inclusion.tolist() == expected.inclusion
    assert (problem.ignored_failed_ops, problem.ignored_unknown_reads) == (
        expected.failed,
        expected.unknown,
    )
    txn, op = problem.writer_txn.tolist(), problem.writer_op.tolist()
    start = problem.key_start.tolist()
    key_of = {}
    for key in range(columns.n_keys()):
        group = range(start[key], start[key + 1])
        assert txn[group[0]] == n
        assert len(group) == len({txn[w] for w in group})
        initial = int(columns.initial_value[key])
        value = {w: initial if op[w] < 0 else int(columns.op_value[op[w]]) for w in group}
        assert {(txn[w], value[w], op[w]) for w in group} == expected.writers[key]
        key_of |= dict.fromkeys(group, key)
    first, candidate = problem.candidate_start.tolist(), problem.candidate.tolist()
    reads = {}
    for r, read in enumerate(problem.read_op.tolist()):
        chosen = candidate[first[r] : first[r + 1]]
        assert len(set(chosen)) == len(chosen)
        assert (
            {key_of[w] for w in chosen} <= {int(problem.read_key[r])} == {int(columns.op_key[read])}
        )
        assert (
            columns.op_start[problem.read_txn[r]]
            <= read
            < columns.op_start[problem.read_txn[r] + 1]
        )
        reads[read] = frozenset(txn[w] for w in chosen)
    assert reads == expected.reads
    assert list(reads) == sorted(reads)
    order = {
        (key_of[a], txn[a], txn[b], o)
        for a, b, o in zip(
            problem.vo_before.tolist(),
            problem.vo_after.tolist(),
            problem.vo_op.tolist(),
            strict=True,
        )
    }
    assert bool(problem.refusal) == expected.refused
    if not expected.refused:
        assert told(columns, order) == told(columns, expected.order)
    anomalies = [tuple(row) for row in problem.anomalies.tolist()]
    assert set(anomalies) == expected.anomalies
    assert len(set(anomalies)) == len(anomalies)
    assert [a[2] for a in anomalies] == sorted(a[2] for a in anomalies)
    assert problem.impossible.tolist() == sorted(expected.impossible)
    assert problem.impossible_reason[:, 1].tolist() == sorted(expected.impossible)
    assert problem.unfinished.tolist() == [int(s == 2) for s in columns.txn_status] + [0]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(registers())
def test_register_histories(columns):
    """Inclusion, writers, candidates and anomalies of registers."""
    note(describe(columns))
    compare(columns)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(lists())
def test_list_histories(columns):
    """The same for lists, with the order that reads show and damaged reads."""
    note(describe(columns))
    compare(columns)


@settings(max_examples=100, deadline=None)
@given(lists(unique=True))
def test_list_histories_without_repeated_elements(columns):
    """Unique elements are never ambiguous, so that fewer histories are refused."""
    note(describe(columns))
    compare(columns)


class Mixed:
    """Seeded histories with a register x and a list y: denser than what hypothesis draws."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        columns = self.columns = _native.Columns()
        self.values = [0, *(columns.intern_value(1, i) for i in range(1, 14))]
        self.x = columns.intern_key(3, "x", rng.choice(self.values[:2]))
        self.y = columns.intern_key(3, "y")
        self.final: list[int] = []
        self.fresh = iter(self.values[1:])
        self.position = 0
        few = rng.randint(1, 3)  # register values
        named = rng.random() < 0.2
        self.repeats = rng.choice([0.0, 0.02, 0.3])  # how often an append repeats an element
        wrong_use = rng.random() < 0.05
        statuses = rng.choice([[0], [0, 0, 0, 2, 2, 1], [0, 2, 2, 2]])
        for t in range(rng.randint(2, 6)):
            columns.begin_transaction(rng.randint(0, 2), rng.choice(statuses), t, t)
            for _ in range(rng.randint(1, 4)):
                ok = rng.random() < 0.95
                if rng.random() < 0.6:
                    kind = rng.choice([READ, WRITE])
                    value = self.values[rng.randint(1 if kind == WRITE else 0, few)]
                    self.add(kind, self.x, value, ok)
                else:
                    self.list_op(t, ok)
                if wrong_use and rng.random() < 0.2:
                    key = rng.choice([self.x, self.y])
                    kind = rng.choice([READ, WRITE, APPEND])
                    self.add(kind, key, rng.choice(self.values), ok)
        for op in range(self.position):
            if named and columns.op_kind[op] == READ and rng.random() < 0.7:
                writes = [o for o in range(self.position) if columns.op_kind[o] == WRITE]
                columns.set_source(op, rng.choice([*writes, -1, -2, -3]))

    def add(self, kind: int, key: int, value: int, ok: bool) -> None:
        self.columns.add_op(kind, key, value, self.position, ok)
        self.position += 1

    def list_op(self, t: int, ok: bool) -> None:
        rng, columns = self.rng, self.columns
        if rng.random() < 0.5:
            value = next(self.fresh, self.values[1])
            if rng.random() < self.repeats:
                value = rng.choice(self.values[1:4])
            self.add(APPEND, self.y, value, ok)
            if columns.txn_status[t] != 1 and rng.random() < 0.97:
                self.final.append(value)
            return
        seen = self.final[: rng.choice([rng.randint(0, len(self.final)), len(self.final)])]
        own = [
            int(columns.op_value[o])
            for o in range(columns.op_start[t], self.position)
            if columns.op_kind[o] == APPEND and columns.op_ok[o]
        ]
        if own and rng.random() < 0.9:
            seen = [v for v in self.final if v not in own] + own[: rng.choice([1, len(own), 9])]
        if seen and rng.random() < 0.1:
            seen[rng.randrange(len(seen))] = rng.choice(self.values[1:])
        if rng.random() < 0.05:
            rng.shuffle(seen)
        if seen and rng.random() < 0.05:
            seen.insert(rng.randint(0, len(seen)), rng.choice(seen))
        self.add(READ_LIST, self.y, columns.add_list(seen), ok)


@pytest.mark.slow
def test_mixed_histories():
    """A register and a list in one history; and the generator reaches every kind of result."""
    reached = Counter()
    for seed in range(2500):
        columns = Mixed(seed).columns
        try:
            compare(columns)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        try:
            problem = _native.build_problem(columns)
        except _native.NotExpressible:
            reached["refused"] += 1
            continue
        reached.update(set(problem.anomalies[:, 0].tolist()))
        reached["optional"] += 2 in problem.inclusion
        reached["forced"] += bool(((problem.inclusion == IN) & (problem.unfinished == 1)).any())
        reached["impossible"] += len(problem.impossible) > 0
        reached["clean"] += len(problem.anomalies) == 0
        reached["choice"] += len(problem.candidate) > len(problem.read_op)
    kinds = set(AnomalyKind) - {AnomalyKind.CONTRADICTING_VERSIONS}  # these state no versions
    results = [*kinds, "refused", "optional", "forced", "impossible", "clean", "choice"]
    assert {r: reached[r] for r in results if reached[r] < 10} == {}


def agree(seed: int) -> None:
    """Compare the builder with the certificate checkers on one history."""
    columns = Mixed(seed).columns
    history = History(columns=columns, name="<memory>", format="memory")
    problem, facts = build_problem(history), Facts(history)
    native = problem.native
    named = problem.anomalies()
    forced = (native.inclusion[:-1] == IN) & (native.unfinished[:-1] == 1)
    assert set(facts.forced) == set(forced.nonzero()[0].tolist())
    for a in named:
        if a.kind is AnomalyKind.INCOMPATIBLE_ORDER:
            assert are_incompatible(facts, a.op, a.other_op), a
        elif a.other_op is not None and facts.is_read(a.other_op):
            assert a.kind is AnomalyKind.TWO_VALUES
            assert initial_values_disagree(facts, a.op, a.other_op), a
        else:
            assert a.kind in set(map(int, anomalies_of(facts, a.op))), a
    for r, op in enumerate(native.read_op.tolist()):
        start, end = native.candidate_start[r], native.candidate_start[r + 1]
        sources = native.writer_txn[native.candidate[start:end]].tolist()
        if not anomalies_of(facts, op):
            assert sorted(sources) == facts.candidates(op), op

    def seen(op: int) -> tuple[int, ...]:
        names = ("op_kind", "op_key", "op_value", "op_source")
        return (facts.txn_of[op], *(int(getattr(columns, name)[op]) for name in names))

    wrong = {seen(a.op) for a in named}  # a repeated read is reported once
    for t in (native.inclusion[:-1] == IN).nonzero()[0].tolist():
        for op in history.operations_of(t):
            assert seen(op) in wrong or not anomalies_of(facts, op), op


@pytest.mark.slow
def test_the_checkers_reading_agrees():
    """The builder and the certificate checkers find the same anomalies, sources and forced ones."""
    refused = 0
    for seed in range(2500):
        try:
            agree(seed)
        except (UnsupportedError, NotCertifiedError):
            refused += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
    assert refused < 500
