"""Violations as graphs and as data: what draws them has to read no sentence."""

import io
import json
import subprocess
import sys

import networkx as nx
import pytest
from oracle.history import parse
from oracle.pipeline import to_tool
from support.cli import ENVIRONMENT

from isolang import check, load_history, load_spec
from isolang.explain.violation import plain

SKEW = "r(x,nil) r(y,nil) w(x,1) || r(x,nil) r(y,nil) w(y,1)"
# Two writes of one value: either may be the source.
TREE = "w(x,1) w(y,1) || w(x,1) w(y,2) || r(x,1) r(y,nil) -> r(x,nil)"


def violation(text, level="ser"):
    """Why a history violates a level."""
    return check(to_tool(parse(text)), load_spec(level)).violation


def test_the_graph_of_a_cycle():
    """Its transactions are the nodes, with what they did and where; its edges say why."""
    graph = violation(SKEW).graph()
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.graph == {"name": "write skew", "check": "SER"}
    assert dict(graph.nodes(data=True)) == {
        0: {
            "label": "T1", "session": "0", "status": "committed",
            "operations": "r(y, nil)  w(x, 1)", "where": "<memory> transaction 1",
            "file": "<memory>", "unit": "record", "position": 1,
        },
        1: {
            "label": "T2", "session": "1", "status": "committed",
            "operations": "r(x, nil)  w(y, 1)", "where": "<memory> transaction 2",
            "file": "<memory>", "unit": "record", "position": 2,
        },
    }  # fmt: skip
    edges = {(a, b): data for a, b, data in graph.edges(data=True)}
    assert edges[0, 1] == {
        "relation": "rw", "key": "y", "step": "conclusion", "assumed": False, "because": "",
        "reason": "T1 read y = nil, the initial value, which T2 overwrote",
        "where": "<memory> transaction 1, operation 2; <memory> transaction 2, operation 3",
    }  # fmt: skip
    assert nx.is_strongly_connected(graph)


def test_every_cycle_of_a_tree_is_in_the_graph():
    """Each edge says in which step of the argument it stands; each step is a closed walk."""
    found = violation(TREE)
    steps = dict(found.cycles())
    assert len(steps) > 1
    graph = found.graph()
    for step, cycle in steps.items():
        edges = [(a, b) for a, b, where in graph.edges(data="step") if where == step]
        assert edges == [edge.ends for edge in cycle.edges] or sorted(edges) == sorted(
            edge.ends for edge in cycle.edges
        )
        assert nx.is_strongly_connected(nx.DiGraph(edges))


@pytest.mark.parametrize("text", [SKEW, TREE])
def test_graphs_can_be_written(text):
    """All attributes are such that GraphML takes them, and gives them back."""
    graph = violation(text).graph()
    out = io.BytesIO()
    nx.write_graphml(graph, out)
    out.seek(0)
    again = nx.read_graphml(out, node_type=int, force_multigraph=True)
    assert dict(again.nodes(data=True)) == dict(graph.nodes(data=True))
    assert again.number_of_edges() == graph.number_of_edges()


def test_a_wrong_read_has_no_edges():
    """No cycle is to blame, so the graph shows the transactions alone."""
    graph = violation("w(x,1) w(x,2) || r(x,1)").graph()
    assert sorted(label for _, label in graph.nodes(data="label")) == ["T1", "T2"]
    assert not graph.edges


def test_places_are_in_parts(tmp_path):
    """File and line stand apart, so that a page can link to them."""
    path = tmp_path / "skew.edn"
    path.write_text(
        "{:type :ok, :process 0, :value [[:r :x nil] [:w :y 1]]}\n"
        "{:type :ok, :process 1, :value [[:r :y nil] [:w :x 1]]}\n"
    )
    found = plain(check(load_history(path), load_spec("ser")).violation)
    places = [txn["place"] for txn in found["transactions"]]
    assert places == [{"file": str(path), "unit": "line", "position": i} for i in (1, 2)]
    assert [op["key"] for op in found["transactions"][0]["operations"]] == [":x", ":y"]


def test_every_number_of_the_argument_is_a_shown_operation():
    """Edges, lemmas and cases refer to operations that the transactions list."""
    found = plain(violation(TREE))
    shown = {op["number"] for txn in found["transactions"] for op in txn["operations"]}

    def operations(node):
        if isinstance(node, dict):
            yield from node.get("operations", ())
            for part in node.values():
                yield from operations(part)
        elif isinstance(node, list):
            for part in node:
                yield from operations(part)

    spoken_of = set(operations(found["argument"]))
    assert spoken_of
    assert spoken_of <= shown
    assert json.loads(json.dumps(found)) == found


def test_networkx_is_imported_when_a_graph_is_asked_for():
    """A check does not pay for it."""
    program = "import sys, isolang.explain.violation; print('networkx' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert result.stdout == "False\n"
