"""The solvers with their capabilities, and the pairs of an encoding and a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from isolang.encodings.registry import ENCODINGS, Encoding
from isolang.errors import SolverError
from isolang.problem.polygraph import PRUNE
from isolang.solvers.plugins import load_plugins

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula, Theory
    from isolang.language.classify.plan import Route
    from isolang.solvers.answer import Solution

#: The native engine's own encoding, which makes variables on demand and always prunes.
EVENT_GRAPH: Final = "event-graph"
#: The native solver: with its own encoding the whole engine, else only its clauses and its graph.
NATIVE: Final = "native"


class Solver(Struct, frozen=True, kw_only=True):
    """A solver, or a library of several solvers.

    Attributes:
        name: the name that users type.
        module: the module of its ``solve`` function.
        theories: the theories that it can solve, the best one first.
        package: the Python package that it needs; empty if it needs none.
        extra: the extra that installs it (``pip install isolang[extra]``); empty for a core
            dependency.
        cores: whether it returns the reads that an unsatisfiable formula needs.
        incremental: whether it continues from its state when clauses are added.
        deadline: ``yes`` if it stops at the deadline; otherwise when, or for which solver, it does.
        parts: whether ``name:part`` chooses one of several solvers.
        progress: whether it reports progress.
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
    progress: bool = False

    @property
    def installed(self) -> bool:
        """Return whether the solver's package is installed."""
        return not self.package or find_spec(self.package) is not None

    @property
    def missing(self) -> str:
        """The error message for a solver that is not installed."""
        what = f"isolang[{self.extra}]" if self.extra else self.package
        return f"not installed; pip install '{what}'"

    def solve(
        self,
        formula: Formula,
        *,
        until: float | None,
        seed: int,
        part: str = "",
        progress: Callable[[str], object] | None = None,
        work: int = 0,
    ) -> Solution:
        """Solve a formula of one of the solver's theories; this imports its package.

        Args:
            formula: the formula to solve.
            until: the time of ``time.perf_counter`` at which to stop; ``None`` for no limit.
            seed: breaks ties.
            part: the solver to use, if this one has ``parts``.
            progress: called now and then with the current phase.
            work: the limit of work, as ``isolang.limits.Work`` counts it; 0 for no limit. It has no
                effect on solvers that cannot be limited in this way.

        Raises:
            TimeoutError: the time is past ``until``, or the work is used up.
        """
        function: Callable[..., Solution] = import_module(self.module).solve
        more: dict[str, object] = {"name": part} if part else {}
        if self.progress:
            more["progress"] = progress
        if work:
            more["work"] = work
        return function(formula, until=until, seed=seed, **more)


SOLVERS: Final[dict[str, Solver]] = {
    row.name: row
    for row in (
        Solver(
            name=NATIVE, module="isolang.solvers.native", theories=("acyclicity", "none"),
            cores=True, incremental=True, progress=True,
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


class Pair(Struct, frozen=True, order=True):
    """An encoding, a solver (``sat``, or ``sat:glucose4``), and a stage of pruning."""

    encoding: str
    solver: str
    prune: str

    def __str__(self) -> str:
        """Return the pair as users type it: ``encoding/solver/prune``."""
        return f"{self.encoding}/{self.solver}/{self.prune}"

    @property
    def is_engine(self) -> bool:
        """Return whether the pair is the native engine with its own encoding."""
        return self.encoding == EVENT_GRAPH

    @property
    def of_specification(self) -> bool:
        """Return whether the encoding starts from a specification as it is written."""
        return not self.is_engine and ENCODINGS[self.encoding].of == "specification"

    def shares_with(self, other: Pair) -> bool:
        """Return whether two pairs have an encoding, a solver or a stage of pruning in common."""
        solvers = self.solver.split(":")[0] == other.solver.split(":")[0]
        encodings = self.encoding.split("+")[0] == other.encoding.split("+")[0]
        return solvers or encodings or self.prune == other.prune


ENGINE: Final = Pair(EVENT_GRAPH, NATIVE, "fixpoint")


def solver_of(name: str) -> tuple[Solver, str]:
    """Return the solver of a name such as ``sat:glucose4``, and its part; ``""`` without one.

    Raises:
        SolverError: no solver has the name, or the solver is not installed.
    """
    base, _, part = name.partition(":")
    if base not in SOLVERS:
        load_plugins()
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
    """Return the theory in which a solver takes an encoding; ``None`` if there is none."""
    makers = ENCODINGS[encoding].makers
    return next((theory for theory in solver.theories if theory in makers), None)


def applicable(route: Route | None = None) -> tuple[str, ...]:
    """Return the encodings that apply to a specification, the native engine's own first.

    Args:
        route: the route of the specification; ``None`` if all encodings apply.
    """
    if route is None or route.kind == "event graph":
        return EVENT_GRAPH, *ENCODINGS
    any_spec = tuple(name for name, row in ENCODINGS.items() if row.of == "specification")
    return any_spec if route.kind == "relational" else (EVENT_GRAPH, *any_spec)


def starts_from_polygraph(encoding: str) -> bool:
    """Return whether an encoding starts from the polygraph of an event graph."""
    return encoding != EVENT_GRAPH and ENCODINGS[encoding].of == "polygraph"


def stages_of(encoding: str) -> tuple[str, ...]:
    """Return the stages of pruning that are possible before an encoding."""
    if encoding == EVENT_GRAPH:
        return ("fixpoint",)
    return PRUNE if starts_from_polygraph(encoding) else ("none",)


def fitting(route: Route | None = None, *, installed: bool = True) -> Iterator[tuple[str, str]]:
    """Yield all pairs (encoding, solver) that fit, with those of plugins; the engine's own first.

    Args:
        route: the route of the specification; ``None`` if all encodings apply.
        installed: whether to leave out solvers that are not installed.
    """
    load_plugins()
    for encoding in applicable(route):
        if encoding == EVENT_GRAPH:
            yield EVENT_GRAPH, NATIVE
            continue
        for solver in SOLVERS.values():
            if theory_of(encoding, solver) and (solver.installed or not installed):
                yield encoding, solver.name


def choose_pair(
    encoding: str = "auto",
    solver: str = "auto",
    prune: str = "auto",
    *,
    route: Route | None = None,
) -> tuple[Pair, str]:
    """Choose a pair; replace each ``auto`` by a choice.

    Args:
        encoding: the name of an encoding, or ``auto``.
        solver: the name of a solver, or ``auto``.
        prune: a stage of pruning, or ``auto``.
        route: the route of the specification; ``None`` if all encodings apply.

    Returns:
        The pair, and a sentence with the reason for the choice, which is empty if there was none.

    Raises:
        SolverError: there is no such pair, its solver is not installed, or the pair does not apply
            to the specification.
    """
    if encoding not in ("auto", EVENT_GRAPH, *ENCODINGS):
        load_plugins()
    if encoding != "auto":
        _require_encoding(encoding, (EVENT_GRAPH, *ENCODINGS), route)
    _require_stage(prune, PRUNE)
    names = applicable(route)
    why = []
    if encoding == "auto" and solver in ("auto", NATIVE):
        if EVENT_GRAPH in names and prune in ("auto", "fixpoint"):
            if solver == "auto":
                why.append("the native engine was the fastest on all histories measured")
            return ENGINE, "; ".join(why)
        encoding = next(name for name in names if name != EVENT_GRAPH)
        if EVENT_GRAPH in names:
            why.append(f"{encoding}, as the engine's own encoding always prunes")
        elif solver == "auto":
            assert route is not None
            why.append(f"{encoding}, as {route.spec.name} is decided relationally")
            solver = NATIVE
    if encoding == EVENT_GRAPH:
        if solver not in ("auto", NATIVE):
            raise SolverError(f"{EVENT_GRAPH} is the encoding of the native engine (got {solver})")
        if prune not in ("auto", "fixpoint"):
            msg = f"{EVENT_GRAPH} always prunes to the fixpoint (got {prune}); try one_variable"
            raise SolverError(msg)
        return ENGINE, ""
    if solver == "auto":
        there = (s for s in SOLVERS.values() if s.installed and theory_of(encoding, s))
        found = next(there, None)
        if found is None:
            raise SolverError(f"encoding {encoding}: no solver that takes it is installed")
        solver = found.name
        why.append(f"{solver} is the first installed solver that takes {encoding}")
    row, _ = solver_of(solver)
    if encoding == "auto":
        fit = {theory_of(name, row): name for name in reversed(names) if name != EVENT_GRAPH}
        encoding = next(fit[theory] for theory in row.theories if theory in fit)
        if route is None or route.kind == "event graph":
            why.append(f"{encoding} suits {solver} best")
        else:
            why.append(f"{encoding}, as {route.spec.name} is decided {_how(route)}")
    if theory_of(encoding, row) is None:
        takers = _listed(s.name for s in SOLVERS.values() if theory_of(encoding, s))
        raise SolverError(f"{solver} does not take {encoding} (got {solver}, expected {takers})")
    if prune == "auto" and starts_from_polygraph(encoding):
        why.append("pruning first makes every solver faster")
    return Pair(encoding, solver, _stage(encoding, prune)), "; ".join(why)


def take_encoding(encoding: str, prune: str, route: Route) -> tuple[Encoding, str]:
    """Return the encoding of a name, and the stage of pruning before it.

    Raises:
        SolverError: no encoding has the name, or the encoding does not apply to the specification.
    """
    if encoding not in ENCODINGS:
        load_plugins()
    _require_encoding(encoding, tuple(ENCODINGS), route)
    _require_stage(prune, PRUNE)
    return ENCODINGS[encoding], _stage(encoding, prune)


def _require_encoding(encoding: str, names: Sequence[str], route: Route | None) -> None:
    if encoding not in names:
        raise SolverError(f"no such encoding (got {encoding!r}, expected {_listed(names)})")
    if route is not None and encoding not in applicable(route):
        raise SolverError(
            f"{encoding} is an encoding of event graphs, and {route.spec.name} is decided "
            f"{_how(route)} (got {encoding}, expected {_listed(applicable(route))})"
        )


def _require_stage(prune: str, stages: Sequence[str]) -> None:
    if prune not in ("auto", *stages):
        raise SolverError(f"no such pruning (got {prune!r}, expected {_listed(stages)})")


def _stage(encoding: str, prune: str) -> str:
    """Return the stage of pruning before an encoding; for ``auto``, its last stage."""
    stages = stages_of(encoding)
    if prune == "auto":
        return stages[-1]
    if prune not in stages:
        msg = f"{encoding} takes a problem as it is, unpruned (got {prune}, expected {stages[0]})"
        raise SolverError(msg)
    return prune


def _how(route: Route) -> str:
    return "relationally" if route.kind == "relational" else f"by {route.kind}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
