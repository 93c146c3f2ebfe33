"""Circuits and their clauses say the same, by all assignments of a few variables."""

from __future__ import annotations

import random
from itertools import product

import numpy as np

from isolang import _native
from isolang.encodings.relational.circuit import FALSE, TRUE, Circuit

INPUTS = 5


def solver_of(circuit: Circuit) -> _native.AcyclicSolver:
    solver = _native.AcyclicSolver(0, 0)
    solver.new_variables(circuit.variables)
    solver.add_clauses(np.frombuffer(circuit.clauses, dtype=np.int32))
    return solver


def test_constants() -> None:
    circuit = Circuit()
    a, b = circuit.new(), circuit.new()
    assert circuit.both(a, TRUE) == a
    assert circuit.both(FALSE, a) == FALSE
    assert circuit.both(a, -a) == FALSE
    assert circuit.any_of([a, b, -a]) == TRUE
    assert circuit.any_of([]) == FALSE
    assert circuit.all_of([a, b]) == circuit.both(b, a)


def test_clauses_mean_what_the_gates_do() -> None:
    """A stated disjunction of random gates has exactly the models that it should have."""
    rng = random.Random(3)
    for _ in range(60):
        circuit = Circuit()
        inputs = [circuit.new() for _ in range(INPUTS)]
        literals = list(inputs)
        for _ in range(rng.randint(1, 14)):
            some = [rng.choice(literals) * rng.choice((1, -1)) for _ in range(rng.randint(1, 6))]
            make = circuit.all_of if rng.random() < 0.5 else circuit.any_of
            literals.append(make(some))
        clauses = [
            [rng.choice(literals) * rng.choice((1, -1)) for _ in range(rng.randint(1, 3))]
            for _ in range(rng.randint(1, 4))
        ]
        for clause in clauses:
            circuit.state(clause)
        solver = solver_of(circuit)
        for values in product((0, 1), repeat=INPUTS):
            model = [0, 1, *values]
            expected = all(any(circuit.value(x, model) for x in c) for c in clauses)
            fixed = [v if x else -v for v, x in zip(inputs, values, strict=True)]
            assert solver.solve(assumptions=fixed) is expected


def test_named_literals_are_exact() -> None:
    """A name is true iff its gate is, in both directions."""
    circuit = Circuit()
    a, b, c = (circuit.new() for _ in range(3))
    gate = circuit.any_of([circuit.both(a, b), -c])
    name = circuit.alias_of(gate)
    solver = solver_of(circuit)
    for values in product((0, 1), repeat=3):
        fixed = [v if x else -v for v, x in zip((a, b, c), values, strict=True)]
        expected = circuit.value(gate, [0, 1, *values])
        assert solver.solve(assumptions=[*fixed, name]) is expected
        assert solver.solve(assumptions=[*fixed, -name]) is not expected


def test_a_pair_is_decided_by_two_variables() -> None:
    """`-v` asks for the opposite order, not for the absence of this one."""
    circuit = Circuit()
    pair = circuit.pair()
    circuit.state((-pair,))
    assert circuit.clauses.tolist()[-2:] == [pair + 1, 0]
    assert (circuit.guard(pair), circuit.guard(-pair)) == (-(pair + 1), -pair)
