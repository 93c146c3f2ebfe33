"""pySMT: integers, bit-vectors or plain clauses, with whatever SMT solver it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isolang.errors import SolverError
from isolang.solvers.answer import Answer, seconds_left

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula

_LOGIC = {"difference": "QF_IDL", "bitvector": "QF_BV", "none": "QF_BOOL"}
# In files: SMT-LIB has no logic of Booleans alone.
_SMTLIB_LOGIC = {**_LOGIC, "none": "QF_UF"}


def names() -> list[str]:
    """The SMT solvers that pySMT finds."""
    from pysmt.environment import Environment

    return sorted(Environment().factory.all_solvers())


def terms(formula: Formula, environment: Any) -> tuple[list[Any], list[Any]]:
    """A formula as pySMT terms of an environment.

    Returns:
        What is asserted; and the symbol of each variable, from 1 (entry 0 is ``True``).
    """
    from pysmt.typing import BVType

    manager, types = environment.formula_manager, environment.type_manager
    symbol = [manager.TRUE()]
    symbol += [manager.Symbol(f"v{i}", types.BOOL()) for i in range(1, formula.variables + 1)]

    def term(literal: int) -> Any:
        return symbol[literal] if literal >= 0 else manager.Not(symbol[-literal])

    said = [manager.Or([term(literal) for literal in clause]) for clause in formula.clause_list()]
    if formula.theory in ("difference", "bitvector"):
        sort = types.INT() if formula.theory == "difference" else BVType(formula.width)
        less = manager.LT if formula.theory == "difference" else manager.BVULT
        label = [manager.Symbol(f"n{i}", sort) for i in range(formula.nodes)]
        for u, v, literal in formula.edges.tolist():
            up = less(label[u], label[v])
            said.append(manager.Or(term(-literal), up) if literal else up)
    return said, symbol


def to_smtlib(formula: Formula) -> str:
    """A formula in SMT-LIB 2."""
    from io import StringIO

    from pysmt.environment import Environment
    from pysmt.smtlib.script import SmtLibCommand, SmtLibScript

    environment = Environment()
    said, symbol = terms(formula, environment)
    script = SmtLibScript()
    script.add_command(SmtLibCommand("set-logic", [_SMTLIB_LOGIC[formula.theory]]))
    known = set(symbol[1:])
    for assertion in said:
        known |= environment.fvo.get_free_variables(assertion)
    for one in sorted(known, key=lambda s: (s.symbol_name()[0], int(s.symbol_name()[1:]))):
        script.add_command(SmtLibCommand("declare-fun", [one]))
    for assertion in said:
        script.add_command(SmtLibCommand("assert", [assertion]))
    script.add_command(SmtLibCommand("check-sat", []))
    out = StringIO()
    script.serialize(out, daggify=False)
    return out.getvalue()


def solve(formula: Formula, *, until: float | None = None, seed: int = 0, name: str = "") -> Answer:
    """Solve a formula whose theory is ``difference``, ``bitvector`` or ``none``.

    Only Z3 takes a deadline through pySMT.

    Raises:
        TimeoutError: the moment ``until`` (of ``time.perf_counter``) came.
        SolverError: pySMT finds no SMT solver.
    """
    from pysmt.environment import Environment
    from pysmt.exceptions import SolverReturnedUnknownResultError

    found = names()
    if not found:
        raise SolverError("pysmt: it finds no SMT solver; hint: pip install z3-solver")
    name = name or ("z3" if "z3" in found else found[0])
    environment = Environment()
    said, symbol = terms(formula, environment)
    left = seconds_left(until)
    options = {"timeout": max(1, int(left * 1000))} if left is not None and name == "z3" else {}
    logic = None if name == "z3" else _LOGIC[formula.theory]
    with environment.factory.Solver(name=name, logic=logic, solver_options=options) as solver:
        for assertion in said:
            solver.add_assertion(assertion)
        try:
            satisfiable = solver.solve()
        except SolverReturnedUnknownResultError:
            raise TimeoutError from None
        if not satisfiable:
            return Answer(satisfiable=False)
        values = np.zeros(formula.variables + 1, np.int8)
        for variable in range(1, formula.variables + 1):
            values[variable] = solver.get_value(symbol[variable]).is_true()
    return Answer(satisfiable=True, values=values)
