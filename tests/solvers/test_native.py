"""The native solver of clauses with an acyclic graph, against enumeration."""

import itertools
import random

import networkx as nx
import numpy as np
import pytest

from isolang import _native


def random_instance(rng):
    variables, nodes = rng.randint(1, 9), rng.randint(2, 6)
    literals = [s * v for v in range(1, variables + 1) for s in (1, -1)]
    clauses = [
        [rng.choice(literals) for _ in range(rng.choice([1, 2, 2, 3, 3, 3]))]
        for _ in range(rng.randint(0, 3 * variables))
    ]
    edges = [
        (rng.randrange(nodes), rng.randrange(nodes), rng.choice([0, *literals * 2]))
        for _ in range(rng.randint(0, 14))
    ]
    edges = [(u, v, x) for u, v, x in edges if x or u < v]
    return variables, nodes, clauses, edges


def holds(model, literal):
    return literal == 0 or model[abs(literal)] == (literal > 0)


def is_model(model, nodes, clauses, edges):
    if not all(any(holds(model, x) for x in clause) for clause in clauses):
        return False
    graph = nx.DiGraph((u, v) for u, v, x in edges if holds(model, x))
    return nx.is_directed_acyclic_graph(graph)


def models(variables, nodes, clauses, edges):
    for values in itertools.product([0, 1], repeat=variables):
        if is_model((None, *values), nodes, clauses, edges):
            yield (None, *values)


def flat(clauses):
    return np.array([x for clause in clauses for x in (*clause, 0)], dtype=np.int32)


def rows(edges):
    return np.array(edges, dtype=np.int32).reshape(-1, 3)


@pytest.mark.parametrize("seed", range(120))
def test_against_enumeration(seed):
    """Answers, models and cores; in two portions, with and without assumptions."""
    rng = random.Random(seed)
    variables, nodes, clauses, edges = random_instance(rng)
    solver = _native.AcyclicSolver(nodes, seed)
    assert solver.new_variables(variables, rng.random() < 0.5) == 1
    half, part = len(clauses) // 2, len(edges) // 2
    solver.add_clauses(flat(clauses[:half]))
    solver.add_edges(rows(edges[:part]))
    assert solver.solve() is any(models(variables, nodes, clauses[:half], edges[:part]))
    solver.add_clauses(flat(clauses[half:]))
    solver.add_edges(rows(edges[part:]))
    instance = (nodes, clauses, edges)
    everything = list(models(variables, *instance))
    for _ in range(4):
        assumed = [v * rng.choice([1, -1]) for v in range(1, variables + 1) if rng.random() < 0.4]
        possible = [m for m in everything if all(holds(m, x) for x in assumed)]
        answer = solver.solve(assumptions=assumed)
        assert answer is bool(possible)
        if answer:
            model = solver.model()
            assert is_model(model, *instance)
            assert all(holds(model, x) for x in assumed)
        else:
            core = solver.core()
            assert set(core) <= set(assumed)
            assert not [m for m in everything if all(holds(m, x) for x in core)]
    assert solver.solve() is bool(everything)


def knots_in_a_row(rng, density, distant, variables=600):
    """Clauses (this many a variable) and edges among neighbours, and a share among distant ones."""

    def near(v, reach):
        return min(max(1, v + rng.randint(-reach, reach)), variables)

    def literal(v):
        return v * rng.choice([1, -1])

    clauses = []
    for _ in range(int(density * variables)):
        v = rng.randint(1, variables)
        reach = variables if rng.random() < distant else 6
        clauses.append([literal(near(v, reach)) for _ in range(3)])
    edges = []
    for _ in range(variables // 2):
        v = rng.randint(1, variables)
        edges.append((near(v, 5) - 1, near(v, 5) - 1, literal(near(v, 3))))
    return variables, [(u, v, x) for u, v, x in edges if u != v], clauses


@pytest.mark.slow
@pytest.mark.parametrize(("density", "distant", "first"), [(2.6, 0.02, 40), (2.8, 0.03, 0)])
def test_distant_decisions_stay(density, distant, first):
    """With groups along the row conflicts take back what is near; without, all that came later."""
    kept, answers = 0, set()
    for seed in range(first, first + 60):
        variables, edges, clauses = knots_in_a_row(random.Random(seed), density, distant)
        found = []
        for apart in (0, 20):
            solver = _native.AcyclicSolver(variables, seed)
            for v in range(variables):
                solver.new_variables(1, group=v // 3 * apart)
            solver.add_clauses(flat(clauses))
            solver.add_edges(rows(edges))
            found.append(solver.solve())
            assert not found[-1] or is_model(solver.model(), variables, clauses, edges)
        assert found[0] is found[1]
        answers.add(found[0])
        kept += solver.statistics()["decisions_kept"]
    assert answers == {True, False}
    assert kept > 100


def test_pigeons_need_search():
    """Six pigeons in five holes: conflicts are counted and can be capped."""
    holes, pigeons = 5, 6
    solver = _native.AcyclicSolver(0)
    solver.new_variables(holes * pigeons)
    at = lambda p, h: 1 + p * holes + h  # noqa: E731
    clauses = [[at(p, h) for h in range(holes)] for p in range(pigeons)]
    for h in range(holes):
        clauses += [[-at(p, h), -at(q, h)] for p, q in itertools.combinations(range(pigeons), 2)]
    solver.add_clauses(flat(clauses))
    assert solver.solve(max_conflicts=3) is None
    assert solver.solve() is False
    assert solver.core() == []
    assert solver.statistics()["conflicts"] > 3


def test_bad_input_is_refused():
    """Nothing is added when a part of it is wrong."""
    solver = _native.AcyclicSolver(2)
    solver.new_variables(1)
    with pytest.raises(ValueError, match="of no variable"):
        solver.add_clauses(flat([[1], [2]]))
    with pytest.raises(ValueError, match="does not end"):
        solver.add_clauses(np.array([1], dtype=np.int32))
    with pytest.raises(ValueError, match="out of range"):
        solver.add_edges(rows([(0, 2, 0)]))
    with pytest.raises(ValueError, match="of no variable"):
        solver.solve(assumptions=[0])
    assert solver.solve(assumptions=[-1]) is True


def test_deadline():
    """A hard instance with little time ends with the time."""
    solver = _native.AcyclicSolver(0)
    holes, pigeons = 11, 12
    solver.new_variables(holes * pigeons)
    clauses = [[1 + p * holes + h for h in range(holes)] for p in range(pigeons)]
    for h in range(holes):
        clauses += [
            [-(1 + p * holes + h), -(1 + q * holes + h)]
            for p, q in itertools.combinations(range(pigeons), 2)
        ]
    solver.add_clauses(flat(clauses))
    with pytest.raises(_native.OutOfTime):
        solver.solve(seconds=0.2)
