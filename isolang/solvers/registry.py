"""The table of all solvers with their capabilities, and the choice of an encoding and a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from isolang.encodings.registry import ENCODINGS, Encoding
from isolang.errors import SolverError
from isolang.problem.prune import PRUNE
from isolang.solvers.plugins import load_plugins

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula, Theory
    from isolang.language.classify.plan import Route
    from isolang.solvers.answer import Solution

#: The native engine's own encoding, which creates variables only when needed and always prunes.
EVENT_GRAPH: Final = "event-graph"
#: The native solver. With its own encoding, it is the whole engine; with other encodings, it is
#: only the engine's solver for clauses and acyclic graphs.
NATIVE: Final = "native"


class Solver(Struct, frozen=True, kw_only=True):
    """A solver, or a library of several solvers.

    Attributes:
        name: the name by which users select the solver.
        module: the module with the solver's ``solve`` function.
        theories: the theories that the solver supports, most suitable first.
        package: the Python package required by the solver; empty if there is none.
        extra: the extra that installs the package (``pip install isolang[extra]``); empty if the
            package is a core dependency.
        cores: whether the solver reports which reads make a formula unsatisfiable.
        incremental: whether the solver continues from its state when clauses are added.
        deadline: ``yes`` if the solver stops at the deadline, ``between rounds`` if it may stop
            only between two calls, ``z3 only`` if only its part ``z3`` does.
        parts: whether the name stands for several solvers; ``name:part`` selects one of them.
        progress: whether the solver reports its progress.
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
        """The error message for a missing solver, with the command to install it."""
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
        """Import the solver's package, and solve a formula in one of the solver's theories.

        Args:
            formula: the formula to solve.
            until: the ``time.perf_counter()`` value at which to stop; ``None`` for no limit.
            seed: the seed for breaking ties.
            part: the solver to use, if this row stands for several (``parts``).
            progress: a function called from time to time with the current phase.
            work: the work limit, as counted by ``isolang.limits.Work``; 0 for no limit. Solvers
                that do not support it ignore it.

        Raises:
            TimeoutError: if ``until`` has passed, or the work is used up.
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
    """The names of an encoding, a solver (``sat`` or ``sat:glucose4``), and a pruning stage."""

    encoding: str
    solver: str
    prune: str

    def __str__(self) -> str:
        """Return the three names in the form users type: ``encoding/solver/prune``."""
        return f"{self.encoding}/{self.solver}/{self.prune}"

    @property
    def is_engine(self) -> bool:
        """Return whether the pair is the native engine with its own encoding."""
        return self.encoding == EVENT_GRAPH

    @property
    def of_specification(self) -> bool:
        """Return whether the encoding starts from a specification's text, not from automata."""
        return not self.is_engine and ENCODINGS[self.encoding].of == "specification"

    def shares_with(self, other: Pair) -> bool:
        """Return whether two pairs have an encoding, a solver or a pruning stage in common."""
        solvers = self.solver.split(":")[0] == other.solver.split(":")[0]
        encodings = self.encoding.split("+")[0] == other.encoding.split("+")[0]
        return solvers or encodings or self.prune == other.prune


ENGINE: Final = Pair(EVENT_GRAPH, NATIVE, "fixpoint")


def solver_of(name: str) -> tuple[Solver, str]:
    """Return the solver with a name such as ``sat:glucose4``, and the part after the colon.

    The part is empty if the name has no colon.

    Raises:
        SolverError: if no solver has the name, or the solver is not installed.
    """
    base, _, part = name.partition(":")
    if base not in SOLVERS:
        load_plugins()
    solver = SOLVERS.get(base)
    if solver is None:
        raise SolverError(f"unknown solver (got {name!r}, expected {_listed(SOLVERS)})")
    if not solver.installed:
        raise SolverError(f"solver {base}: {solver.missing}")
    if part:
        known = import_module(solver.module).names() if solver.parts else []
        if part not in known:
            msg = f"solver {base}: unknown part (got {part!r}, expected {_listed(known)})"
            raise SolverError(msg)
    return solver, part


def theory_of(encoding: str, solver: Solver) -> Theory | None:
    """Return the best theory that an encoding can produce and a solver supports.

    If there is no such theory, return ``None``.
    """
    makers = ENCODINGS[encoding].makers
    return next((theory for theory in solver.theories if theory in makers), None)


def applicable_encodings(route: Route | None = None) -> tuple[str, ...]:
    """Return the encodings that apply to a specification, starting with the engine's own."""
    if route is None or route.kind == "event graph":
        return EVENT_GRAPH, *ENCODINGS
    any_spec = tuple(name for name, row in ENCODINGS.items() if row.of == "specification")
    return any_spec if route.kind == "relational" else (EVENT_GRAPH, *any_spec)


def starts_from_polygraph(encoding: str) -> bool:
    """Return whether an encoding starts from the polygraph of an event graph."""
    return encoding != EVENT_GRAPH and ENCODINGS[encoding].of == "polygraph"


def stages_of(encoding: str) -> tuple[str, ...]:
    """Return the stages to which a polygraph may be pruned before being encoded."""
    if encoding == EVENT_GRAPH:
        return ("fixpoint",)
    return PRUNE if starts_from_polygraph(encoding) else ("none",)


def supported_pairs(
    route: Route | None = None, *, installed: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield pairs of an encoding that applies to a specification and a solver that supports it.

    Plugins are included. The engine with its own encoding comes first.
    """
    load_plugins()
    for encoding in applicable_encodings(route):
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
    """Choose an encoding, a solver and a pruning stage for each argument that is ``auto``.

    Raises:
        SolverError: if there is no such pair, its solver is not installed, or the pair does not
            apply to the specification.
    """
    if encoding not in ("auto", EVENT_GRAPH, *ENCODINGS):
        load_plugins()
    if encoding != "auto":
        _require_encoding(encoding, (EVENT_GRAPH, *ENCODINGS), route)
    _require_stage(prune, PRUNE)
    names = applicable_encodings(route)
    why = []
    if encoding == "auto" and solver in ("auto", NATIVE):
        if EVENT_GRAPH in names and prune in ("auto", "fixpoint"):
            if solver == "auto":
                why.append("the native engine was the fastest on all measured histories")
            return ENGINE, "; ".join(why)
        encoding = next(name for name in names if name != EVENT_GRAPH)
        if EVENT_GRAPH in names:
            why.append(f"{encoding}, because the engine's own encoding always prunes")
        elif solver == "auto":
            assert route is not None
            why.append(f"{encoding}, because {route.spec.name} is decided relationally")
            solver = NATIVE
    if encoding == EVENT_GRAPH:
        if solver not in ("auto", NATIVE):
            raise SolverError(f"only the native engine supports {EVENT_GRAPH} (got {solver})")
        if prune not in ("auto", "fixpoint"):
            msg = f"{EVENT_GRAPH} always prunes to the fixpoint (got {prune}); try one_variable"
            raise SolverError(msg)
        return ENGINE, ""
    if solver == "auto":
        there = (s for s in SOLVERS.values() if s.installed and theory_of(encoding, s))
        found = next(there, None)
        if found is None:
            raise SolverError(f"encoding {encoding}: no installed solver supports it")
        solver = found.name
        why.append(f"{solver} is the first installed solver that takes {encoding}")
    row, _ = solver_of(solver)
    if encoding == "auto":
        fit = {theory_of(name, row): name for name in reversed(names) if name != EVENT_GRAPH}
        encoding = next(fit[theory] for theory in row.theories if theory in fit)
        if route is None or route.kind == "event graph":
            why.append(f"{encoding} works best with {solver}")
        else:
            why.append(f"{encoding}, as {route.spec.name} is decided {_route_description(route)}")
    if theory_of(encoding, row) is None:
        takers = _listed(s.name for s in SOLVERS.values() if theory_of(encoding, s))
        raise SolverError(f"{solver} does not support {encoding} (got {solver}, expected {takers})")
    if prune == "auto" and starts_from_polygraph(encoding):
        why.append("pruning first makes every solver faster")
    return Pair(encoding, solver, _stage(encoding, prune)), "; ".join(why)


def find_encoding(encoding: str, prune: str, route: Route) -> tuple[Encoding, str]:
    """Return the encoding with this name, and the stage to prune to before encoding.

    Raises:
        SolverError: if no encoding has the name, or the encoding does not apply to the
            specification.
    """
    if encoding not in ENCODINGS:
        load_plugins()
    _require_encoding(encoding, tuple(ENCODINGS), route)
    _require_stage(prune, PRUNE)
    return ENCODINGS[encoding], _stage(encoding, prune)


def _require_encoding(encoding: str, names: Sequence[str], route: Route | None) -> None:
    if encoding not in names:
        raise SolverError(f"unknown encoding (got {encoding!r}, expected {_listed(names)})")
    if route is not None and encoding not in applicable_encodings(route):
        raise SolverError(
            f"{encoding} encodes event graphs, but {route.spec.name} is decided "
            f"{_route_description(route)} (got {encoding}, expected "
            f"{_listed(applicable_encodings(route))})"
        )


def _require_stage(prune: str, stages: Sequence[str]) -> None:
    if prune not in ("auto", *stages):
        raise SolverError(f"unknown stage of pruning (got {prune!r}, expected {_listed(stages)})")


def _stage(encoding: str, prune: str) -> str:
    """Return the stage to prune to before encoding; ``auto`` means the furthest stage."""
    stages = stages_of(encoding)
    if prune == "auto":
        return stages[-1]
    if prune not in stages:
        msg = f"{encoding} encodes only unpruned problems (got {prune}, expected {stages[0]})"
        raise SolverError(msg)
    return prune


def _route_description(route: Route) -> str:
    return "relationally" if route.kind == "relational" else f"by {route.kind}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
