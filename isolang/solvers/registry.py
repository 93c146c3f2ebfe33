"""The solvers, one line each with what they can do, and the pairs of an encoding and a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

from isolang.encodings.registry import ENCODINGS
from isolang.errors import SolverError
from isolang.problem.polygraph import PRUNE

if TYPE_CHECKING:
    from isolang.encodings.formula import Theory
    from isolang.language.plan import Route
    from isolang.solvers.answer import Answer

#: The native engine's own encoding: it makes variables on demand, and always prunes.
EVENT_GRAPH: Final = "event-graph"
NATIVE: Final = "native"


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """One back end.

    Attributes:
        name: as users type it.
        module: where its ``solve`` is.
        theories: what it can solve, what suits it best first.
        package: the Python package that it needs; empty for none.
        extra: the extra that installs it: ``pip install isolang[extra]``; empty for a core
            dependency.
        cores: whether it says which reads an unsatisfiable formula needs.
        incremental: whether it goes on from where it was when clauses are added.
        deadline: ``yes``, or between which steps it looks at the clock.
        parts: whether ``name:part`` chooses one of several solvers.
    """

    name: str
    module: str
    theories: tuple[Theory, ...]
    package: str = ""
    extra: str = ""
    cores: bool = False
    incremental: bool = False
    deadline: Literal["yes", "between rounds", "z3 only"] = "yes"
    parts: bool = False

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return not self.package or find_spec(self.package) is not None

    @property
    def missing(self) -> str:
        """What to say where it is not installed."""
        what = f"isolang[{self.extra}]" if self.extra else self.package
        return f"not installed; pip install '{what}'"

    def solve(self, formula: Any, *, until: float | None, seed: int, part: str = "") -> Answer:
        """Solve a formula of one of its theories; imports the package.

        Raises:
            TimeoutError: the moment ``until`` (of ``time.perf_counter``) came.
        """
        function: Callable[..., Answer] = import_module(self.module).solve
        more = {"name": part} if part else {}
        return function(formula, until=until, seed=seed, **more)


SOLVERS: Final[dict[str, Solver]] = {
    row.name: row
    for row in (
        Solver(
            name=NATIVE, module="isolang.solvers.acyclic", theories=("acyclicity", "none"),
            cores=True, incremental=True,
        ),
        Solver(
            name="sat", module="isolang.solvers.sat", theories=("acyclicity", "none"),
            package="pysat", extra="sat", cores=True, incremental=True,
            deadline="between rounds", parts=True,
        ),
        Solver(
            name="clingo", module="isolang.solvers.clingo", theories=("acyclicity", "none"),
            package="clingo", extra="clingo",
        ),
        Solver(
            name="z3", module="isolang.solvers.z3",
            theories=("difference", "bitvector", "acyclicity", "none"), package="z3", cores=True,
        ),
        Solver(
            name="pysmt", module="isolang.solvers.pysmt",
            theories=("difference", "bitvector", "none"), package="pysmt", deadline="z3 only",
            parts=True,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """An encoding, a solver (``sat``, or ``sat:glucose4``), and a stage of pruning."""

    encoding: str
    solver: str
    prune: str

    def __str__(self) -> str:
        """As users type it: ``encoding/solver/prune``."""
        return f"{self.encoding}/{self.solver}/{self.prune}"

    @property
    def is_engine(self) -> bool:
        """Whether it is the native engine with its own encoding."""
        return self.encoding == EVENT_GRAPH

    def shares_with(self, other: Pair) -> bool:
        """Whether two pairs have an encoding, a solver or a stage of pruning in common."""
        solvers = self.solver.split(":")[0] == other.solver.split(":")[0]
        encodings = self.encoding.split("+")[0] == other.encoding.split("+")[0]
        return solvers or encodings or self.prune == other.prune


ENGINE: Final = Pair(EVENT_GRAPH, NATIVE, "fixpoint")


def solver_of(name: str) -> tuple[Solver, str]:
    """The solver of a name, and its part (``sat:glucose4``), or ``""``.

    Raises:
        SolverError: there is none, or it is not installed.
    """
    base, _, part = name.partition(":")
    solver = SOLVERS.get(base)
    if solver is None:
        raise SolverError(f"no such solver (got {name!r}, expected {_listed(SOLVERS)})")
    if not solver.installed:
        raise SolverError(f"solver {base}: {solver.missing}")
    if part:
        known = import_module(solver.module).names() if solver.parts else []
        if part not in known:
            msg = f"solver {base}: no such part (got {part!r}, expected {_listed(known)})"
            raise SolverError(msg)
    return solver, part


def theory_of(encoding: str, solver: Solver) -> Theory | None:
    """The theory in which a solver takes an encoding; ``None`` if they do not fit."""
    makers = ENCODINGS[encoding].makers
    return next((theory for theory in solver.theories if theory in makers), None)


def fitting(*, installed: bool = True) -> Iterator[tuple[str, str]]:
    """All pairs (encoding, solver) that fit, the engine's own first.

    Args:
        installed: only those whose solver is installed.
    """
    yield EVENT_GRAPH, NATIVE
    for encoding in ENCODINGS:
        for solver in SOLVERS.values():
            if theory_of(encoding, solver) and (solver.installed or not installed):
                yield encoding, solver.name


def choose_pair(
    encoding: str = "auto", solver: str = "auto", prune: str = "auto"
) -> tuple[Pair, str]:
    """Choose a pair; what is ``auto`` is filled in.

    Returns:
        The pair, and why it is this one, as a sentence; empty if nothing was left to choose.

    Raises:
        SolverError: there is no such pair, or it is not installed.
    """
    if prune != "auto" and prune not in PRUNE:
        raise SolverError(f"no such pruning (got {prune!r}, expected {_listed(PRUNE)})")
    if encoding not in ("auto", EVENT_GRAPH, *ENCODINGS):
        expected = _listed([EVENT_GRAPH, *ENCODINGS])
        raise SolverError(f"no such encoding (got {encoding!r}, expected {expected})")
    why = []
    if encoding == "auto" and solver in ("auto", NATIVE):
        if prune in ("auto", "fixpoint"):
            if solver == "auto":
                why.append("the native engine was the fastest on all histories measured")
            return Pair(EVENT_GRAPH, NATIVE, "fixpoint"), _sentence(why)
        encoding = next(iter(ENCODINGS))
        why.append(f"{encoding}, as the engine's own encoding always prunes")
    if encoding == EVENT_GRAPH:
        if solver not in ("auto", NATIVE):
            raise SolverError(f"{EVENT_GRAPH} is the encoding of the native engine (got {solver})")
        if prune not in ("auto", "fixpoint"):
            msg = f"{EVENT_GRAPH} always prunes to the fixpoint (got {prune}); try one_variable"
            raise SolverError(msg)
        return Pair(EVENT_GRAPH, NATIVE, "fixpoint"), ""
    if solver == "auto":
        there = (s for s in SOLVERS.values() if s.installed and theory_of(encoding, s))
        found = next(there, None)
        if found is None:
            raise SolverError(f"encoding {encoding}: no solver that takes it is installed")
        solver = found.name
        why.append(f"{solver} is the first installed solver that takes {encoding}")
    row, _ = solver_of(solver)
    if encoding == "auto":
        fit = {theory_of(name, row): name for name in reversed(ENCODINGS)}
        encoding = next(fit[theory] for theory in row.theories if theory in fit)
        why.append(f"{encoding} suits {solver} best")
    if theory_of(encoding, row) is None:
        takers = _listed(s.name for s in SOLVERS.values() if theory_of(encoding, s))
        raise SolverError(f"{solver} does not take {encoding} (got {solver}, expected {takers})")
    if prune == "auto":
        prune = "fixpoint"
        why.append("pruning first makes every solver faster")
    return Pair(encoding, solver, prune), _sentence(why)


def not_an_event_graph(route: Route) -> str:
    """Why encodings do not apply to a specification of another kind, as a sentence."""
    how = f"by {route.kind}" if route.kind != "event graph" else "through another specification"
    return f"encodings are of event graphs, and {route.spec.name} is decided {how}"


def _sentence(reasons: list[str]) -> str:
    return "; ".join(reasons)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
