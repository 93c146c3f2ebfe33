"""Polygraphs, encodings, exports and solvers, each for itself; that they agree is another file."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from msgspec.structs import replace
from support.cli import ENVIRONMENT, LOST_UPDATE, VALID, hard_text, run_here
from support.paths import ROOT
from support.sampling import quick_first

from isolang import History, Transaction, check, load_history, load_spec
from isolang.cli.solvers import disagreements
from isolang.encodings.decode import topological_order
from isolang.encodings.export import to_dimacs, to_gnf
from isolang.encodings.hyper_polygraph import reachability
from isolang.encodings.registry import ENCODINGS
from isolang.encodings.relational.formula import RelationalInput
from isolang.errors import SolverError
from isolang.language.classify.event_graph import classify
from isolang.output.contest import ContestRow
from isolang.problem import build_problem
from isolang.problem.chains import chains_allowed
from isolang.problem.polygraph import build_polygraph
from isolang.problem.prune import PRUNE
from isolang.solvers.acyclic_order import AcyclicOrder
from isolang.solvers.pysmt import names as smt_names
from isolang.solvers.registry import SOLVERS, choose_pair, solver_of, stages_of
from isolang.solvers.sat import names as sat_names

SER = classify(load_spec("ser"))
not_ours = pytest.mark.skipif(
    "ISOLANG_SANITIZED" in os.environ, reason="processes, or other people's native code"
)


def polygraph(path, prune, plan=SER):
    problem = build_problem(load_history(str(path)))
    return build_polygraph(problem, plan.automata, prune)


def formula(path, encoding, theory, prune):
    if encoding == "relational":
        problem = build_problem(load_history(str(path)))
        return ENCODINGS[encoding].encode(RelationalInput(problem=problem, spec=SER.spec), theory)
    return ENCODINGS[encoding].encode(polygraph(path, prune), theory)


@pytest.mark.parametrize(
    ("encoding", "theory", "variables", "clauses"),
    [
        ("one_variable", "acyclicity", 1, 0),
        ("monosat", "acyclicity", 4, 3),
        ("monosat+raw", "acyclicity", 4, 3),
        ("hyper_polygraph", "acyclicity", 3, 3),
        ("hyper_polygraph+2width", "acyclicity", 3, 5),
        ("integer_order", "difference", 4, 3),
    ],
)
def test_the_worked_example(encoding, theory, variables, clauses):
    """The sizes that docs/encodings.md gives for its three transactions."""
    found = formula(ROOT / "examples/three.txt", encoding, theory, "known")
    assert (found.variables, found.clause_count) == (variables, clauses)
    assert np.count_nonzero(found.edges[:, 2]) == 3


def test_the_worked_example_in_relations():
    """The constant, and both directions of one open pair; what is not decided counts as both."""
    found = formula(ROOT / "examples/three.txt", "relational", "acyclicity", "none")
    assert (found.variables, found.clause_list()) == (3, [[1]])
    assert sorted(found.edges[found.edges[:, 2] != 0, 2].tolist()) == [-3, -3, -2, 2, 3]


OBJECTS = ("queue.edn", "store.edn")  # logs of objects, for `isocheck linearize`


def test_pruning_settles_more_and_more():
    """Each stage leaves fewer choices; settled and open pairs are together all pairs."""
    for path in (ROOT / "examples").glob("*.*"):
        if path.suffix not in (".txt", ".edn", ".bincode") or path.name in OBJECTS:
            continue
        stages = [polygraph(path, prune) for prune in PRUNE]
        assert len({len(p.open) + len(p.settled) for p in stages if not p.contradiction}) == 1
        for less, more in pairwise(stages):
            if not more.contradiction:
                assert len(more.open) <= len(less.open)
                assert len(more.choice_read) <= len(less.choice_read)
    assert len(polygraph(ROOT / "examples/three.txt", "fixpoint").open) == 0


def test_where_writers_are_combined():
    """As docs/encodings.md says."""
    allowed = {
        name: chains_allowed(classify(load_spec(name)).automata)
        for name in ("ser", "si", "sser", "strong-si", "pl-3", "si-nosession", "pc", "pl-2", "pl-1")
    }
    assert {name for name, yes in allowed.items() if not yes} == {"pc", "pl-2", "pl-1"}


def test_reading_from_a_later_writer():
    """Without ``wr`` a read may be of a later write: the reader's own one does not follow it."""
    spec = load_spec('include "adya.iso"\nacyclic so | ww | rw as backwards')
    assert not chains_allowed(classify(spec).automata)
    history = History.from_transactions(
        [
            Transaction([("r", "x", 1), ("w", "x", 2)], session="a"),
            Transaction([("w", "x", 1)], session="a"),
        ]
    )
    for encoding in ENCODINGS:
        prune = "known" if "known" in stages_of(encoding) else "none"
        assert check(history, spec, encoding=encoding, prune=prune).outcome == "valid"


def test_overwriting_seen_by_a_check_without_versions() -> None:
    """Combined writers would hide that r missed b's write: ``so | irw`` has no path through a's."""
    spec = load_spec('include "adya.iso"\nacyclic wr | ww | rw as serial\nacyclic so | irw as mine')
    assert not chains_allowed(classify(spec).automata)
    history = History.from_transactions(
        [
            Transaction([("w", "x", 1), ("w", "y", 1)], session="w"),
            Transaction([("r", "y", 1), ("w", "x", 2)], session="a"),
            Transaction([("r", "x", 2), ("w", "x", 3)], session="b"),
            Transaction([("r", "x", 1)], session="b"),
        ]
    )
    for encoding in ENCODINGS:
        prune = "known" if "known" in stages_of(encoding) else "none"
        assert check(history, spec, encoding=encoding, prune=prune).outcome == "invalid"


@not_ours
@pytest.mark.parametrize("encoding", ["binary_labeling", "relational"])
@pytest.mark.parametrize(("path", "satisfiable"), [("three.txt", True), ("counter.txt", False)])
def test_dimacs(encoding, path, satisfiable):
    """What other SAT solvers read says the same."""
    from pysat.formula import CNF
    from pysat.solvers import Solver

    text = to_dimacs(formula(ROOT / "examples" / path, encoding, "none", "none"))
    with Solver(name="minisat22", bootstrap_with=CNF(from_string=text)) as solver:
        assert solver.solve() == satisfiable
    assert any(line.startswith(("c 1: T", "c 2: T")) for line in text.splitlines())


@pytest.mark.parametrize(("path", "satisfiable"), [("three.txt", True), ("counter.txt", False)])
def test_gnf(path, satisfiable):
    """Read back by the format's own rules: edge variables are positive, and nobody shares one."""
    from isolang import _native

    for encoding in ("one_variable", "monosat", "hyper_polygraph", "relational"):
        text = to_gnf(formula(ROOT / "examples" / path, encoding, "acyclicity", "none"))
        lines = [line.split() for line in text.splitlines() if not line.startswith("c ")]
        (header,) = (line for line in lines if line[0] == "p")
        (graph,) = (line for line in lines if line[0] == "digraph")
        (acyclic,) = (line for line in lines if line[0] == "acyclic")
        edges = [[int(x) for x in line[2:]] for line in lines if line[0] == "edge"]
        clauses = [[int(x) for x in line] for line in lines if line[0].lstrip("-").isdigit()]
        assert int(header[3]) == len(clauses)
        assert int(graph[3]) == len(edges)
        guards = [variable for _, _, variable in edges]
        assert len(set(guards)) == len(guards)
        assert 0 < min(guards) <= max(guards) < int(acyclic[2]) == int(header[2])
        assert [int(acyclic[2]), 0] in clauses
        solver = _native.AcyclicSolver(int(graph[2]))
        solver.new_variables(int(header[2]))
        solver.add_clauses(np.array([x for clause in clauses for x in clause], np.int32))
        solver.add_edges(np.array(edges, np.int32).reshape(-1, 3))
        assert solver.solve() is satisfiable


@not_ours
@pytest.mark.parametrize("encoding", ["integer_order", "binary_labeling", "relational"])
@pytest.mark.parametrize(("path", "answer"), [("three.txt", "sat"), ("counter.txt", "unsat")])
def test_smtlib(tmp_path, capfd, encoding, path, answer):
    import z3

    out = tmp_path / "out.smt2"
    run = run_here(
        capfd, "encode", "--spec", "ser", "--encoding", encoding, "--to", "smt2",
        ROOT / "examples" / path, out,
    )  # fmt: skip
    assert run.code == 0
    solver = z3.Solver()
    solver.from_file(str(out))
    assert str(solver.check()) == answer
    assert re.search(r"; node \d+: T1, SER\n", out.read_text())


def test_encode_says_what_a_format_cannot_say(tmp_path, capfd):
    history = tmp_path / "h"
    history.write_text(VALID)
    for encoding, to in (("monosat", "dimacs"), ("integer_order", "gnf"), ("nothing", "gnf")):
        run = run_here(
            capfd, "encode", "--spec", "si", "--encoding", encoding, "--to", to, history, "-"
        )
        assert run.code == 2
        assert "expected" in run.err


def test_the_order_under_changes():
    """Edges come and go; whether one closes a cycle is what networkx says."""
    rng = random.Random(4)
    for _ in range(40):
        nodes, order, edges = 8, AcyclicOrder(8), []
        for _ in range(60):
            if edges and rng.random() < 0.2:
                edges = edges[: rng.randrange(len(edges))]
                order.shrink(len(edges))
            u, v = rng.randrange(nodes), rng.randrange(nodes)
            graph = nx.MultiDiGraph()
            graph.add_nodes_from(range(nodes))
            graph.add_edges_from((a, b) for a, b, _ in edges)
            literal = rng.choice([0, rng.randint(1, 99)])
            cycle = order.add(u, v, literal)
            if not nx.has_path(graph, v, u):
                assert cycle is None
                edges.append((u, v, literal))
                continue
            on = nx.MultiDiGraph((a, b) for a, b, x in edges if x in (0, *cycle))
            on.add_edge(u, v)
            assert not nx.is_directed_acyclic_graph(on), "the literals do make a cycle"


def test_sorting_and_reachability():
    rng = np.random.default_rng(5)
    for _ in range(60):
        edges = rng.integers(0, 7, (rng.integers(0, 12), 2)).astype(np.int32)
        graph = nx.DiGraph(edges.tolist())
        graph.add_nodes_from(range(7))
        order = topological_order(7, edges[:, 0], edges[:, 1])
        reach = reachability(7, edges)
        assert (order is not None) == (reach is not None) == nx.is_directed_acyclic_graph(graph)
        if order is not None:
            rank = np.argsort(order)
            assert (rank[edges[:, 0]] < rank[edges[:, 1]]).all()
            paths = [[nx.has_path(graph, u, v) for v in range(7)] for u in range(7)]
            assert reach.tolist() == paths


@pytest.mark.slow
@not_ours
def test_z3_lets_go_of_its_solvers():
    """Its module keeps every user propagator; with each one, a solver and megabytes would stay."""
    import gc

    import z3

    def alive():
        gc.collect()
        return sum(issubclass(type(o), z3.Solver) for o in gc.get_objects())

    made = formula(ROOT / "examples/counter.txt", "one_variable", "acyclicity", "none")

    def solve():
        assert not SOLVERS["z3"].solve(made, until=None, seed=0).satisfiable

    solve()  # the first one makes what the library keeps
    before = alive()
    solve()
    solve()
    assert alive() == before


@not_ours
def test_every_solver_by_name():
    """Whatever name is offered can be used."""
    named = [("sat", n) for n in sat_names()] + [("pysmt", n) for n in smt_names()]
    assert {"cadical195", "glucose4", "minisat22"} < {n for _, n in named}
    for path, satisfiable in (("three.txt", True), ("counter.txt", False)):
        made = formula(ROOT / "examples" / path, "binary_labeling", "none", "none")
        for solver, name in named:
            answer = SOLVERS[solver].solve(made, until=None, seed=0, part=name)
            assert answer.satisfiable == satisfiable, name


@pytest.mark.slow
@not_ours
def test_pysmt_lets_go_of_its_terms():
    """It would note the types of all terms of a process in one table, and search it ever longer."""
    import gc

    from pysmt.fnode import FNode

    def alive():
        gc.collect()
        return sum(issubclass(type(o), FNode) for o in gc.get_objects())

    made = formula(ROOT / "examples/counter.txt", "integer_order", "difference", "none")

    def solve():
        assert not SOLVERS["pysmt"].solve(made, until=None, seed=0).satisfiable

    solve()  # the first one makes what the library keeps
    before = alive()
    solve()
    solve()
    assert alive() == before


# --- choosing ---


@pytest.mark.slow
@not_ours
def test_a_solver_that_is_not_installed(monkeypatch, tmp_path, capfd):
    """It is said, with the extra that has it, and never passed over."""
    gone = replace(SOLVERS["clingo"], package="no_such_package")
    monkeypatch.setitem(SOLVERS, "clingo", gone)
    with pytest.raises(SolverError, match=r"not installed; pip install 'isolang\[clingo\]'"):
        solver_of("clingo")
    history = tmp_path / "h"
    history.write_text(VALID)
    assert run_here(capfd, "--spec", "si", "--solver", "clingo", history).code == 2
    run = run_here(
        capfd, "solvers", "--spec", "si", "--only", "one_variable", "-o", "json", history
    )
    rows = {row["solver"]: row for row in run.reports()}
    assert rows["clingo"]["verdict"] == "not installed"
    assert "isolang[clingo]" in rows["clingo"]["detail"]
    assert rows["native"]["verdict"] == "valid"


def test_pairs_that_do_not_fit():
    for encoding, solver, prune in (
        ("integer_order", "sat", "auto"),
        ("event-graph", "z3", "auto"),
        ("event-graph", "native", "none"),
        ("auto", "sat:kissat404", "auto"),
        ("auto", "clingo:x", "auto"),
    ):
        with pytest.raises(SolverError, match="got"):
            choose_pair(encoding, solver, prune)


def test_auto():
    assert str(choose_pair()[0]) == "event-graph/native/fixpoint"
    assert str(choose_pair("integer_order")[0]) == "integer_order/z3/fixpoint"
    pair, why = choose_pair(prune="none")
    assert (pair.solver, pair.prune) == ("native", "none")
    assert "always prunes" in why


@not_ours
@pytest.mark.parametrize("solver", ["sat:glucose4", "clingo", "z3", "native"])
def test_deadlines(solver):
    """A solver that has a deadline keeps it; the verdict is unknown."""
    import io

    history = load_history(
        io.BytesIO(hard_text(transactions=60, sessions=25, keys=3).encode()), "plume"
    )
    verdict = check(
        history,
        load_spec("ser"),
        solver=solver,
        encoding="one_variable" if solver != "z3" else "auto",
        prune="none",
        timeout=0.2,
    )
    assert verdict.outcome == "unknown"
    assert verdict.cause == "timeout"


@not_ours
def test_a_core_is_proved_by_itself():
    """Where the solver has a core, the refutation needs no read beyond it."""
    history = History.from_transactions(
        [
            Transaction([("r", "x", None), ("w", "x", 1)], session="a"),
            Transaction([("r", "x", None), ("w", "x", 2)], session="b"),
            *(
                Transaction([("w", f"k{i}", i), ("r", f"k{i + 1}", None)], session=f"c{i}")
                for i in range(5)
            ),
        ]
    )
    for solver in ("native", "sat", "z3"):
        verdict = check(history, load_spec("si"), solver=solver, prune="none", encoding="auto")
        assert (verdict.outcome, verdict.certified) == ("invalid", True)
        assert verdict.violation.anomaly == "lost update"


# --- compare ---


@pytest.mark.slow
@not_ours
def test_compare(tmp_path, capfd):
    """Each pair has a row with the same verdict and its costs, in all outputs."""
    for name, text in (("valid", VALID), ("lost", LOST_UPDATE)):
        (tmp_path / name).write_text(text)
    where = [tmp_path / "valid", tmp_path / "lost"]
    run = run_here(
        capfd, "solvers", "--spec", "si", "--only", "event-graph", "--only", "monosat/native",
        "--repeat", 2, "-o", "json", *where,
    )  # fmt: skip
    assert run.code == 0
    assert {(r["history"], r["verdict"]) for r in run.reports()} == {
        (str(where[0]), "valid"),
        (str(where[1]), "invalid"),
    }
    common = ["solvers", "--spec", "si", "--only", "native", "--prune", "none"]
    rows = run_here(capfd, *common, "-o", "json", where[0]).reports()
    assert {r["encoding"] for r in rows} == {
        "event-graph", "one_variable", "monosat", "monosat+raw", "hyper_polygraph",
        "hyper_polygraph+2width", "binary_labeling", "relational",
    }  # fmt: skip
    for row in rows:
        assert row["peak_mb"] > 1
        assert row["total"] >= row["prune"] + row["encode"] + row["solve"] - 0.01
        assert row["variables"] >= 0
    only = ["--only", "one_variable/native"]
    run = run_here(capfd, "solvers", "--spec", "si", *only, "-o", "csv", where[0])
    assert run.out.startswith("history,transactions,spec,encoding,solver,")
    plot = tmp_path / "plot.svg"
    run = run_here(capfd, "solvers", "--spec", "si", *only, "--plot", plot, where[0])
    assert "one_variable" in run.out
    assert "<svg" in plot.read_text()


@pytest.mark.campaign
@pytest.mark.slow
def test_compare_tells_of_each_pair_as_it_ends(tmp_path, capfd, monkeypatch):
    """On stderr with text, as a row of its own with JSON and CSV; --total limits all of them."""
    from isolang.jobs import contest

    path = tmp_path / "h"
    path.write_text(VALID)
    common = ["solvers", "--spec", "si", "--only", "native", "--prune", "none", path]
    run = run_here(capfd, *common)
    each = re.findall(r"^(\d)/8  \S+/native/\S+: valid, \d+\.\d\d s$", run.err, re.MULTILINE)
    assert each == [*"12345678"]
    before: list[str] = []
    ran = contest.run

    def noted(*given):
        before.append(capfd.readouterr().out)
        return ran(*given)

    monkeypatch.setattr("isolang.cli.solvers.run", noted)
    for form, header in (("json", 0), ("csv", 1)):
        before.clear()
        run_here(capfd, *common, "-o", form)
        assert [text.count("\n") for text in before] == [header, *[1] * 7]
    before.clear()
    run = run_here(capfd, *common, "-o", "json", "--total", 0)
    assert not before
    assert {(row["verdict"], row["detail"]) for row in run.reports()} == {
        ("unknown", "not run, because the time limit of --total was over")
    }


@pytest.mark.slow
@not_ours
def test_compare_says_what_goes_wrong(tmp_path, capfd):
    """Before the runs what makes no sense; after them, under the table, why there is no verdict."""
    path = tmp_path / "h"
    path.write_text(VALID)
    common = ["solvers", "--spec", "si", "--only", "event-graph", "--only", "one_variable/z3"]
    for option, value in (
        ("--plot", "picture.foo"),
        ("--plot", tmp_path / "none/picture.svg"),
        ("--memory", -1),
        ("--timeout", 0),
        ("--only", "sat:nobody"),
        ("--prune", "some"),
    ):
        run = run_here(capfd, *common, option, value, path)
        assert (run.code, run.out) == (2, "")
        assert str(value).removeprefix("sat:") in run.err
    run = run_here(capfd, *common, tmp_path / "missing")
    assert run.code == 2
    assert "event-graph/native/fixpoint: error:" in run.out
    run = run_here(capfd, *common, "--memory", 38, path)
    assert "one_variable/z3/fixpoint: unknown: memory" in run.out


@pytest.mark.slow
@not_ours
def test_compare_ends_what_takes_too_long(tmp_path, capfd):
    path = tmp_path / "hard"
    path.write_text(hard_text(transactions=80, sessions=25, keys=3))
    run = run_here(
        capfd, "solvers", "--spec", "ser", "--timeout", 0.3, "--prune", "none",
        "--only", "one_variable/native", "-o", "json", path,
    )  # fmt: skip
    (row,) = run.reports()
    assert (row["verdict"], row["total"]) == ("unknown", None)
    assert row["detail"].startswith("timeout")


def test_compare_notices_disagreements():
    rows = {
        verdict: ContestRow(
            history="h", spec="s", encoding="e", solver="s", prune_stage="none", detail="d",
            verdict=verdict,
        )
        for verdict in ("valid", "invalid", "unknown", "wrong")
    }  # fmt: skip
    assert disagreements([rows["valid"], rows["unknown"]]) == []
    (text,) = disagreements([rows["valid"], rows["invalid"]])
    assert "disagreement: valid by e/s/none; invalid by e/s/none" in text
    (text,) = disagreements([rows["wrong"]])
    assert "is wrong" in text


@pytest.mark.slow
@not_ours
@pytest.mark.parametrize(
    ("script", "lines"),
    [
        (
            "tiny_encoding",
            ["si: valid by partial_order and native", "ser: invalid by partial_order and native"],
        ),
        (
            "tiny_solver",
            [
                "si: valid by one_variable and backtracking",
                "ser: invalid by one_variable and backtracking",
            ],
        ),
    ],
)
def test_the_examples_of_the_checklists(script, lines):
    done = subprocess.run(
        [sys.executable, f"examples/{script}.py"],
        capture_output=True, text=True, check=True, env=ENVIRONMENT, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.splitlines() == lines


def test_the_documents_show_what_the_examples_do():
    """The snippets of the checklists are lines of the example files."""
    text = (ROOT / "docs" / "adding-an-encoding.md").read_text()
    snippets = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    for snippet, script in zip(snippets, ("tiny_encoding", "tiny_solver"), strict=True):
        shown = snippet.split("check(")[0].strip()
        assert shown in (ROOT / f"examples/{script}.py").read_text()


@pytest.mark.slow
@not_ours
@pytest.mark.parametrize("spec", quick_first(["psi", "rc", "ra-vis"], rest="campaign"))
def test_specs_that_are_no_event_graphs(tmp_path, capfd, spec):
    """The relational encoding is of all specifications; the others say that they are not."""
    path = tmp_path / "h"
    path.write_text(VALID)
    run = run_here(capfd, "--spec", spec, "--solver", "z3", "-o", "json", path)
    (report,) = run.reports()
    assert (run.code, report["encoding"], report["certified"]) == (0, "relational", True)
    assert "is decided by" in report["choice"]
    run = run_here(capfd, "solvers", "--spec", spec, "--timeout", 20, "-o", "json", path)
    assert {(r["encoding"], r["verdict"]) for r in run.reports()} == {
        ("event-graph", "valid"),
        ("relational", "valid"),
    }
    to_gnf = ["--to", "gnf", path, "-"]
    run = run_here(capfd, "encode", "--spec", spec, "--encoding", "relational", *to_gnf)
    assert run.code == 0
    assert "digraph int" in run.out
    for command in (
        ("check", "--encoding", "monosat", path),
        ("check", "--encoding", "relational", "--prune", "known", path),
        ("check", "--cross-check", "monosat/sat/none", path),
        ("encode", "--encoding", "monosat", *to_gnf),
    ):
        run = run_here(capfd, *command, "--spec", spec)
        assert run.code == 2
        assert "expected" in run.err


@pytest.mark.parametrize("solver", ["native", "sat", "clingo", "z3", "pysmt"])
def test_a_specification_that_runs_relationally(tmp_path, capfd, solver):
    """Any solver decides it; ``flag`` checks are judged, and both verdicts are certified."""
    spec = tmp_path / "mine.iso"
    spec.write_text(
        'include "adya.iso"\nempty (wr ; ww) & id as no-return\n'
        "empty (so | wr) & (rw ; ww) as strange\nflag acyclic so | wr | ww | rw as SER\n"
    )
    open_order = "w(0,1,1,1)\nw(0,2,2,2)\nr(0,1,3,3)\nw(1,1,3,3)\n"
    for text, meets in ((VALID, True), (open_order, True), (LOST_UPDATE, False)):
        path = tmp_path / "h"
        path.write_text(text)
        run = run_here(capfd, "--spec", spec, "--solver", solver, "-o", "json", path)
        (report,) = run.reports()
        assert (report["verdict"], report["certified"]) == ("valid", True)
        assert (report["encoding"], report["solver"]) == ("relational", solver)
        said = "does not hold, because some choice satisfies it" if meets else "holds"
        assert report["level"]["notes"][-1] == f"flag `SER` {said}"
