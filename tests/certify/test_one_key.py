"""Refutations of checks whose walks stay with one key."""

import pytest
from oracle.history import parse
from oracle.pipeline import to_tool
from support.certify import verdicts_of_both

from isolang.api import load_spec
from isolang.language.classify.event_graph import Plan
from isolang.language.classify.route import route
from isolang.problem import build_problem
from isolang.solvers import engine


@pytest.mark.parametrize(
    "history",
    [
        "r(x,nil) w(x,1) || notin(x,{1}) r(x,1) w(x,2) || w(x,1)",
        "r(x,9) w(x,1) @8-11 || r(x,nil) w(x,3) @13-15 || r(x,nil) w(x,9) @2-13",
        "r(y,nil) w(y,2) @1-5 || r(y,2) w(y,2) @4-10 || r(y,nil) w(y,1) @8-11",
    ],
)
@pytest.mark.parametrize("presolve", [True, False])
def test_several_steps_of_the_version_order_are_one(history, presolve):
    """``ww[x]`` is a total order: the engine may go from version to version."""
    given, plan = to_tool(parse(history)), route(load_spec("pl-cs"))
    assert isinstance(plan, Plan)
    native = build_problem(given).native
    said = engine.solve(given.columns, native, plan.automata, presolve=presolve).result
    assert verdicts_of_both(given, plan.spec, said) == ("accepted", "accepted")
