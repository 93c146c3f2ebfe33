"""The solvers found by pySMT, for formulas over integers, bit-vectors, or clauses alone."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from isolang.arrays import np
from isolang.errors import SolverError
from isolang.problem.until import remaining_seconds
from isolang.solvers.answer import Solution
from isolang.solvers.z3 import resource_limit, solver_statistics

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula

_LOGIC = {"difference": "QF_IDL", "bitvector": "QF_BV", "none": "QF_BOOL"}
# The logics declared in files. They differ for clauses, because SMT-LIB has no purely Boolean
# logic.
_SMTLIB_LOGIC = {**_LOGIC, "none": "QF_UF"}


@cache
def _solver_classes() -> dict[str, Any]:
    """Return the classes of the solvers found by pySMT; the search is slow and runs only once."""
    from pysmt.environment import Environment

    return dict(Environment().factory.all_solvers())


def names() -> list[str]:
    """Return the names of the SMT solvers found by pySMT."""
    return sorted(_solver_classes())


def terms(formula: Formula, environment: Any) -> tuple[list[Any], list[Any]]:
    """Translate a formula into pySMT terms.

    Returns:
        The assertions, and the symbol of each variable by number. Variables are numbered from 1,
        and entry 0 is ``True``.
    """
    from pysmt.typing import BVType

    manager, types = environment.formula_manager, environment.type_manager
    symbol = [manager.TRUE()]
    symbol += [manager.Symbol(f"v{i}", types.BOOL()) for i in range(1, formula.variables + 1)]

    def term(literal: int) -> Any:
        return symbol[literal] if literal >= 0 else manager.Not(symbol[-literal])

    assertions = [
        manager.Or([term(literal) for literal in clause]) for clause in formula.clause_list()
    ]
    if formula.theory in ("difference", "bitvector"):
        sort = types.INT() if formula.theory == "difference" else BVType(formula.width)
        less = manager.LT if formula.theory == "difference" else manager.BVULT
        label = [manager.Symbol(f"n{i}", sort) for i in range(formula.nodes)]
        for u, v, literal in formula.edges.tolist():
            up = less(label[u], label[v])
            assertions.append(manager.Or(term(-literal), up) if literal else up)
    return assertions, symbol


def to_smtlib(formula: Formula) -> str:
    """Return the text of a formula in SMT-LIB 2."""
    from io import StringIO

    from pysmt.environment import Environment
    from pysmt.smtlib.script import SmtLibCommand, SmtLibScript

    environment = Environment()
    assertions, symbol = terms(formula, environment)
    script = SmtLibScript()
    script.add_command(SmtLibCommand("set-logic", [_SMTLIB_LOGIC[formula.theory]]))
    known = set(symbol[1:])
    for assertion in assertions:
        known |= environment.fvo.get_free_variables(assertion)
    for one in sorted(known, key=lambda s: (s.symbol_name()[0], int(s.symbol_name()[1:]))):
        script.add_command(SmtLibCommand("declare-fun", [one]))
    for assertion in assertions:
        script.add_command(SmtLibCommand("assert", [assertion]))
    script.add_command(SmtLibCommand("check-sat", []))
    out = StringIO()
    script.serialize(out, daggify=False)
    return out.getvalue()


def solve(
    formula: Formula,
    *,
    until: float | None = None,
    seed: int = 0,
    name: str = "",
    work: int = 0,
) -> Solution:
    """Solve a formula whose theory is ``difference``, ``bitvector`` or ``none``.

    The limits apply only to Z3, because pySMT cannot pass limits to other solvers.

    Raises:
        TimeoutError: if ``time.perf_counter()`` has passed ``until``, or the work is used up.
        SolverError: if pySMT finds no SMT solver, or the solver called ``name`` does not support
            the theory.
    """
    from pysmt.environment import Environment
    from pysmt.exceptions import NoLogicAvailableError, SolverReturnedUnknownResultError
    from pysmt.logics import convert_logic_from_string, get_closer_logic

    found = _solver_classes()
    if not found:
        raise SolverError("pysmt: no SMT solver is installed; hint: pip install z3-solver")
    name = name or ("z3" if "z3" in found else min(found))
    # Z3 detects the logic itself, and is slower if it is given one.
    logic_name = "QF_UFLIRA" if name == "z3" else _LOGIC[formula.theory]
    try:
        logic = get_closer_logic(found[name].LOGICS, convert_logic_from_string(logic_name))
    except NoLogicAvailableError:
        raise SolverError(
            f"pysmt:{name} does not support the required logic {logic_name}"
        ) from None
    # The environment must be the current one. Otherwise pySMT records each term's type in the
    # global environment, where the terms of all formulas share a few hashes and stay until the
    # process ends.
    with Environment() as environment:
        assertions, symbol = terms(formula, environment)
        remaining = remaining_seconds(until)
        limit: dict[str, int] = {}
        if name == "z3":
            limit |= {"timeout": max(1, int(remaining * 1000))} if remaining is not None else {}
            limit |= {"rlimit": resource_limit(work)} if work else {}
        with found[name](environment=environment, logic=logic, solver_options=limit) as solver:
            for assertion in assertions:
                solver.add_assertion(assertion)
            try:
                satisfiable = solver.solve()
            except SolverReturnedUnknownResultError:
                raise TimeoutError from None
            statistics = (
                solver_statistics(solver.z3) if name == "z3" else {}
            )  # pySMT returns no statistics
            if not satisfiable:
                return Solution(satisfiable=False, statistics=statistics)
            values = np.zeros(formula.variables + 1, np.int8)
            for variable in range(1, formula.variables + 1):
                values[variable] = solver.get_value(symbol[variable]).is_true()
    return Solution(satisfiable=True, values=values, statistics=statistics)
